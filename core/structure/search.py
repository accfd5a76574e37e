"""Find nodes, values, tensors and metadata by the query language of ``core.structure.query``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from core.dtypes import UNKNOWN_CODE, dtype_at
from core.ir import Attribute, AttributeValue, EncodedAttribute, Graph, Model, Node
from core.structure.query import Term, parse

Kind = Literal["node", "value", "tensor", "metadata"]
_ONLY_NODES = frozenset({"op", "domain", "scope", "attr"})
_ONLY_STORED = frozenset({"bytes", "params"})
_SIZES = frozenset({"dtype", "shape", "rank", "bytes", "params"})


@dataclass(frozen=True, slots=True)
class Hit:
    """One find.

    Attributes:
        id: ``g0.n3``, ``g0.v7``, ``t5``, or the key of a metadata entry.
        where: in words: graph, operator type, scope, dtype and shape.
    """

    kind: Kind
    id: str
    name: str
    where: str

    def to_json(self) -> dict[str, str]:
        """Plain values; keys of the ``find`` verb."""
        return {"kind": self.kind, "id": self.id, "name": self.name, "where": self.where}


def find(model: Model, query: str, limit: int = 1000) -> list[Hit]:
    """Everything that all terms of ``query`` hold for: nodes, then tensors, values, metadata.

    Reads bytes of attributes from disk only for ``attr:name=value``.

    Raises:
        UsageError: if the query makes no sense.
    """
    terms = parse(query)
    return list(islice(_hits(model, terms), limit)) if terms else []


def _hits(model: Model, terms: list[Term]) -> Iterator[Hit]:
    fields = {term.field for term in terms if not term.negated}
    kinds = [term for term in terms if term.field == "kind"]

    def wanted(kind: Kind) -> bool:
        return all(term.text(kind) != term.negated for term in kinds)

    terms = [term for term in terms if term.field != "kind"]
    if wanted("node"):
        yield from _nodes(model, terms)
    if fields & _ONLY_NODES:
        return
    if wanted("tensor"):
        yield from _tensors(model, terms)
    if wanted("value") and not fields & _ONLY_STORED:
        yield from _values(model, terms)
    if wanted("metadata") and not fields - {"word", "name", "kind"}:
        yield from _metadata(model, terms)


def _holds(terms: list[Term], test: Callable[[Term], bool]) -> bool:
    return all(test(term) != term.negated for term in terms)


# --- nodes ------------------------------------------------------------------------------


def _nodes(model: Model, terms: list[Term]) -> Iterator[Hit]:
    """Cheap conditions over columns first; a node is made only for what is left."""
    quick = [term for term in terms if term.field in ("op", "domain", "scope", "name", "word")]
    slow = [term for term in terms if term not in quick]
    for graph in model.graphs:
        c = graph.columns
        ops: list[int] = c.op_type.tolist()
        domains: list[int] = c.domain.tolist()
        scopes: list[int] = c.scope.tolist()
        tests = [_quick(term, graph) for term in quick]
        for index in range(graph.node_count):
            if all(test(index, ops[index], domains[index], scopes[index]) for test in tests):
                if slow:
                    node = graph.node(index)
                    if not _holds(slow, lambda term, g=graph, n=node: _node(model, g, n, term)):
                        continue
                yield _node_hit(graph, index)


def _quick(term: Term, graph: Graph) -> Callable[[int, int, int, int], bool]:
    """A condition over node, operator, domain and scope numbers; texts are tested once each."""
    c = graph.columns
    known: dict[int, bool] = {}

    def text(code: int) -> bool:
        found = known.get(code)
        if found is None:
            found = known[code] = term.text(c.strings[code] or ("ai.onnx" if term.field == "domain" else ""))
        return found

    names, no, test = c.node_names, term.negated, term.text
    match term.field:
        case "op":
            return lambda _n, op, _d, _s: text(op) != no
        case "domain":
            return lambda _n, _o, domain, _s: text(domain) != no
        case "scope":
            return lambda _n, _o, _d, scope: text(scope) != no
        case "name":
            return lambda node, _o, _d, _s: test(names[node]) != no
        case _:
            return lambda node, op, _d, _s: (text(op) or test(names[node])) != no


def _node(model: Model, graph: Graph, node: Node, term: Term) -> bool:
    c = graph.columns
    ports = [value for value in (*node.inputs, *node.outputs) if value >= 0]
    stored = [model.tensors[int(c.tensor[value])] for value in node.inputs if value >= 0 and c.tensor[value] >= 0]
    match term.field:
        case "dtype":
            return any(term.text(_dtype(graph, v)) for v in ports) or any(term.text(t.dtype) for t in stored)
        case "shape":
            return any(term.text(_shape(graph.shape(v))) for v in ports) or any(
                term.text(_shape(t.shape)) for t in stored
            )
        case "rank":
            return any(term.number(int(c.rank[v])) for v in ports) or any(term.number(len(t.shape)) for t in stored)
        case "bytes":
            return bool(stored) and term.number(sum(t.nbytes for t in stored))
        case "params":
            return bool(stored) and term.number(sum(t.elements for t in stored))
        case "attr":
            return any(_attribute(model, attribute, term) for attribute in node.attributes)
        case _:
            return False


def _attribute(model: Model, attribute: Attribute, term: Term) -> bool:
    wanted, equals, value = term.value.partition("=")
    if not equals:
        return term.text(attribute.name)
    if attribute.name.lower() != wanted:
        return False
    if isinstance(attribute.value, EncodedAttribute) and attribute.value.stop - attribute.value.start > _ATTRIBUTE:
        return False
    return _text(model.attribute(attribute)) == value


_ATTRIBUTE = 4096
"""Bytes of an attribute that are compared; longer ones never equal what a person types."""


def _text(value: AttributeValue) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").lower()
    if isinstance(value, tuple):
        return ",".join(_text(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _node_hit(graph: Graph, index: int) -> Hit:
    c = graph.columns
    op, scope = c.strings[int(c.op_type[index])], c.strings[int(c.scope[index])]
    where = ", ".join(part for part in (op, scope, _graph(graph)) if part)
    return Hit("node", f"g{graph.index}.n{index}", c.node_names[index] or op, where)


# --- values, tensors, metadata ----------------------------------------------------------


def _values(model: Model, terms: list[Term]) -> Iterator[Hit]:
    for graph in model.graphs:
        c = graph.columns

        def holds(term: Term, value: int, graph: Graph = graph) -> bool:
            columns = graph.columns
            match term.field:
                case "name" | "word":
                    return term.text(columns.value_names[value])
                case "dtype":
                    return term.text(_dtype(graph, value))
                case "shape":
                    return term.text(_shape(graph.shape(value)))
                case "rank":
                    return term.number(int(columns.rank[value]))
                case _:
                    return False

        for value in range(graph.value_count):
            if c.tensor[value] < 0 and all(holds(term, value) != term.negated for term in terms):
                what = " ".join(part for part in (_dtype(graph, value), _shape(graph.shape(value))) if part)
                where = ", ".join(part for part in (what, _graph(graph)) if part)
                yield Hit("value", f"g{graph.index}.v{value}", c.value_names[value], where)


def _tensors(model: Model, terms: list[Term]) -> Iterator[Hit]:
    for index, tensor in enumerate(model.tensors):

        def holds(term: Term) -> bool:
            match term.field:
                case "name" | "word":
                    return term.text(tensor.name)  # noqa: B023
                case "dtype":
                    return term.text(tensor.dtype)  # noqa: B023
                case "shape":
                    return term.text(_shape(tensor.shape))  # noqa: B023
                case "rank" | "bytes" | "params":
                    number = {"rank": len(tensor.shape), "bytes": tensor.nbytes, "params": tensor.elements}  # noqa: B023
                    return term.number(number[term.field])
                case _:
                    return False

        if _holds(terms, holds):
            yield Hit("tensor", f"t{index}", tensor.name, f"{tensor.dtype} {_shape(tensor.shape)}, {tensor.role}")


def _metadata(model: Model, terms: list[Term]) -> Iterator[Hit]:
    for key, value in model.metadata.items():
        if _holds(terms, lambda term, k=key, v=value: term.text(k) or (term.field == "word" and term.text(v))):
            yield Hit("metadata", key, key, value[:200])


def _dtype(graph: Graph, value: int) -> str:
    code = int(graph.columns.dtype[value])
    return "" if code == UNKNOWN_CODE else dtype_at(code).name


def _shape(shape: tuple[int | str | None, ...] | None) -> str:
    """``1x3xH``; ``?`` where a size is unknown, ``scalar`` for no dimension, nothing for no shape."""
    if shape is None:
        return ""
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"


def _graph(graph: Graph) -> str:
    return "" if graph.kind == "main" else f"{graph.kind} {graph.name or graph.index}"
