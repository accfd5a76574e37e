"""Graphs of an exported program: nodes, values, symbols and module scopes from its JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from core.errors import BrokenFile
from core.formats import _json
from core.formats._json import Json
from core.graph_builder import GraphBuilder
from core.ir import Attribute, AttributeValue, Dim, Finding, Graph, GraphRef
from core.limits import NESTING, NODES, check

_SYMBOL: Final = re.compile(r"Symbol\('([^']+)'[^)]*\)|Integer\((-?\d+)\)")
_TENSORS: Final = {"as_tensor", "as_tensors", "as_optional_tensor", "as_optional_tensors", "as_nested_tensors"}
_SYMBOLS: Final = {"as_sym_int", "as_sym_bool", "as_sym_float"}
_SYMBOL_LISTS: Final = {"as_sym_ints", "as_sym_bools", "as_sym_floats"}


def json_object(value: Json) -> dict[str, Json]:
    """The object itself, an empty one where it is something else."""
    return value if isinstance(value, dict) else {}


def json_list(value: Json) -> list[Json]:
    """The array itself, an empty one where it is something else."""
    return value if isinstance(value, list) else []


class ExportGraphs:
    """Builds the main graph and the graphs of higher-order operators.

    Attributes:
        graphs: the main graph first.
    """

    def __init__(
        self, program: Mapping[str, Json], tensors: Mapping[str, int], dtypes: Mapping[int, str], path: str
    ) -> None:
        self._tensors, self._dtypes, self._path = tensors, dtypes, path
        self.findings: list[Finding] = []
        self._graphs: dict[int, Graph] = {}
        self._count = self._nodes = 0
        module = json_object(program.get("graph_module"))
        graph = module.get("graph")
        if not isinstance(graph, dict):
            found = _json.kind(graph)
            raise BrokenFile(
                "has the wrong type", path=path, field="graph_module.graph", expected="an object", found=found
            )
        self._build(graph, json_object(module.get("signature")), None, 0)
        self.graphs = tuple(self._graphs[index] for index in sorted(self._graphs))

    def _build(
        self, graph: Mapping[str, Json], signature: Mapping[str, Json], parent: tuple[int, int, str] | None, depth: int
    ) -> int:
        check("the nesting of graphs", depth, NESTING, path=self._path)
        index, self._count = self._count, self._count + 1
        builder = GraphBuilder(index, "subgraph" if parent else "main", "", parent)
        self._values(builder, graph)
        stored = self._stored_inputs(builder, signature)
        for item in json_list(graph.get("inputs")):
            for name in _names(item):
                if name not in stored:
                    builder.inputs.append(builder.value(name))
        nodes = json_list(graph.get("nodes"))
        self._nodes += len(nodes)
        check("the number of nodes", self._nodes, NODES, path=self._path)
        for node in nodes:
            self._node(builder, json_object(node), depth)
        for item in json_list(graph.get("outputs")):
            builder.outputs.extend(builder.value(name) for name in _names(item))
        self.findings += builder.findings
        self._graphs[index] = builder.finish()
        return index

    def _values(self, builder: GraphBuilder, graph: Mapping[str, Json]) -> None:
        for name, meta in json_object(graph.get("tensor_values")).items():
            entry = json_object(meta)
            code = entry.get("dtype")
            dtype = self._dtypes.get(code) if isinstance(code, int) else None
            shape = tuple(_dim(size) for size in json_list(entry.get("sizes")))
            builder.set_type(builder.value(_json.text(name)), dtype, shape)
        for kind, word in (("sym_int_values", "int64"), ("sym_bool_values", "bool"), ("sym_float_values", "float64")):
            for name in json_object(graph.get(kind)):
                builder.set_type(builder.value(_json.text(name)), word, ())

    def _stored_inputs(self, builder: GraphBuilder, signature: Mapping[str, Json]) -> set[str]:
        """Inputs that are weights: tied to their tensors, and no inputs for a person."""
        stored: set[str] = set()
        for spec in json_list(signature.get("input_specs")):
            for kind, body in json_object(spec).items():
                entry = json_object(body)
                target = next((entry[key] for key in entry if key.endswith("_name")), None)
                argument = json_object(entry.get("arg")).get("name")
                if kind not in ("parameter", "buffer", "tensor_constant") or not isinstance(argument, str):
                    continue
                stored.add(argument)
                tensor = self._tensors.get(_json.text(target)) if isinstance(target, str) else None
                if tensor is not None:
                    builder.initializer(builder.value(argument), tensor)
        return stored

    def _node(self, builder: GraphBuilder, node: Mapping[str, Json], depth: int) -> None:
        domain, op_type, overload = _target(node.get("target"))
        inputs: list[int] = []
        attributes: list[Attribute] = []
        children: list[int] = []
        for item in json_list(node.get("inputs")):
            entry = json_object(item)
            name, argument = str(entry.get("name") or "arg"), entry.get("arg")
            values = list(_names(argument))
            if values:
                inputs.extend(builder.value(value) for value in values)
                continue
            value = self._attribute(builder, argument, depth, children)
            attributes.append(Attribute(_json.text(name), value))
        outputs = [builder.value(name) for item in json_list(node.get("outputs")) for name in _names(item)]
        label = node.get("name")
        made = builder.node(
            op_type,
            _json.text(label) if isinstance(label, str) else (builder.value_names[outputs[0]] if outputs else ""),
            inputs, outputs, domain=domain, overload=overload, attributes=attributes,
            scope=_scope(json_object(node.get("metadata")).get("nn_module_stack")),
        )  # fmt: skip
        for child in children:
            builder.subgraph(made, child)

    def _attribute(self, builder: GraphBuilder, argument: Json, depth: int, children: list[int]) -> AttributeValue:
        for kind, body in json_object(argument).items():
            if kind == "as_graph":
                graph = json_object(json_object(body).get("graph"))
                child = self._build(graph, {}, (builder.index, builder.node_count, "graph"), depth + 1)
                children.append(child)
                return GraphRef(child)
            if kind == "as_none":
                return None
            if kind == "as_scalar_type" and isinstance(body, int):
                return self._dtypes.get(body, f"ScalarType {body}")
            return _plain(body)
        return None


def _names(argument: Json) -> Iterator[str]:
    """Values that an argument takes, in order."""
    for kind, body in json_object(argument).items():
        if kind in _TENSORS:
            yield from _tensor_names(body)
        elif kind in _SYMBOLS:
            name = json_object(body).get("as_name")
            if isinstance(name, str):
                yield _json.text(name)
        elif kind in _SYMBOL_LISTS:
            for item in json_list(body):
                name = json_object(item).get("as_name")
                if isinstance(name, str):
                    yield _json.text(name)


def _tensor_names(body: Json) -> Iterator[str]:
    if isinstance(body, list):
        for item in body:
            yield from _tensor_names(item)
        return
    entry = json_object(body)
    inner = entry.get("as_tensor", entry)
    name = json_object(inner).get("name")
    if isinstance(name, str):
        yield _json.text(name)


def _plain(body: Json) -> AttributeValue:
    match body:
        case list():
            return tuple(_plain(item) for item in body)
        case dict():
            return _json.text(str(body))[:2000]
        case str():
            return _json.text(body)
        case _:
            return body


def _target(target: Json) -> tuple[str, str, str]:
    """``torch.ops.aten.add.Tensor`` as domain ``aten``, operator ``add``, overload ``Tensor``."""
    text = _json.text(target) if isinstance(target, str) else "unknown"
    parts = text.split(".")
    if text.startswith("torch.ops.") and len(parts) >= 4:
        overload = ".".join(parts[4:])
        return parts[2], parts[3], "" if overload == "default" else overload
    return "", parts[-1] if len(parts) < 3 else ".".join(parts[-2:]), ""


def _scope(stack: Json) -> str:
    """Innermost module path of ``key,path,class;key,path,class``."""
    if not isinstance(stack, str) or not stack:
        return ""
    parts = stack.rsplit(";", 1)[-1].split(",")
    return _json.text(parts[1]) if len(parts) >= 3 and not parts[1].startswith("_empty_nn_module_stack") else ""


def _dim(size: Json) -> Dim:
    entry = json_object(size)
    number = entry.get("as_int")
    if isinstance(number, int):
        return number if number >= 0 else None
    expression = json_object(entry.get("as_expr")).get("expr_str")
    if not isinstance(expression, str):
        return None
    return _SYMBOL.sub(lambda m: m[1] or m[2], _json.text(expression)[:2000])[:200]
