"""One graph as the runtime gets it: the main graph, a subgraph, or the body of a function call, and parts of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal

import onnx

from core.ir import Model

STANDARD: Final = ("", "ai.onnx")
Control = Literal["", "If", "Loop", "Scan", "call"]

_ID: Final = re.compile(r"g(\d+)\.n(\d+)")


class Scope:
    """The nodes of one graph; names that it does not know are those of the graph around it.

    Attributes:
        graph: without payloads.
        index: of the graph in the model as opened.
        parent: the graph around it, ``None`` for the main graph and for bodies of functions.
        constants: stored tensors by name; ``sparse`` and ``constant_nodes`` hold the others.
        order: places of the nodes that are run (constants are not), each after its producers.
    """

    def __init__(
        self,
        model: Model,
        frame: onnx.ModelProto,
        graph: onnx.GraphProto,
        index: int,
        parent: Scope | None = None,
    ) -> None:
        """``frame`` has the versions and functions that a part of this graph needs, and no graph."""
        self.model, self.graph, self.index, self.parent = model, graph, index, parent
        self._frame = frame
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self.constant_nodes: dict[str, int] = {}
        self._inside: dict[tuple[int, str], Scope] = {}
        runs: list[int] = []
        for place, node in enumerate(graph.node):
            tensor = constant_tensor(node)
            if tensor is not None:
                self.constants[node.output[0]] = tensor
            elif _is_constant(node):
                self.constant_nodes.update((name, place) for name in node.output)
            else:
                runs.append(place)
        self.order = tuple(self._sorted(runs))

    @property
    def inputs(self) -> list[str]:
        """Inputs that must be given."""
        return [item.name for item in self.graph.input if item.name not in self.constants]

    @property
    def outputs(self) -> list[str]:
        """Outputs of the graph in order."""
        return [item.name for item in self.graph.output]

    @cached_property
    def needs(self) -> dict[int, tuple[str, ...]]:
        """What each node takes by name: its inputs, and what its subgraphs take from around them."""
        return {place: tuple(dict.fromkeys(taken(self.graph.node[place]))) for place in self.order}

    @cached_property
    def makes(self) -> dict[int, tuple[str, ...]]:
        """What each node makes by name."""
        return {place: tuple(name for name in self.graph.node[place].output if name) for place in self.order}

    @cached_property
    def outer(self) -> tuple[str, ...]:
        """Values of the graphs around it that it takes; stored tensors are not among them."""
        return tuple(name for name in dict.fromkeys(free_names(self.graph)) if self.stored(name) is None)

    @cached_property
    def _own(self) -> frozenset[str]:
        made = {name for names in self.makes.values() for name in names}
        return frozenset(made | {item.name for item in self.graph.input})

    def id(self, place: int) -> str:
        """Id of a node of this graph."""
        return self.graph.node[place].name

    def stored(self, name: str) -> Scope | None:
        """The graph, this one or one around it, that stores the tensor of that name."""
        if name in self.constants or name in self.sparse or name in self.constant_nodes:
            return self
        if name in self._own or self.parent is None:
            return None
        return self.parent.stored(name)

    def part(self, nodes: Sequence[int], types: Mapping[str, onnx.TypeProto]) -> onnx.ModelProto:
        """A model of some nodes: takes the values they need, gives every value they make.

        Args:
            types: of the values that come from outside.
        """
        made = {name for index in nodes for name in self.makes[index]}
        needed = dict.fromkeys(name for index in nodes for name in self.needs[index] if name not in made)
        part = self._empty()
        graph = part.graph
        for name in needed:
            owner = self.stored(name)
            if owner is not None:
                owner.add_stored(graph, name)
            else:
                graph.input.add(name=name).type.CopyFrom(types[name])
        graph.node.extend(self.graph.node[index] for index in nodes)
        for index in nodes:
            for name in self.makes[index]:
                graph.output.add(name=name)
        return part

    def add_stored(self, graph: onnx.GraphProto, name: str) -> None:
        """Put a stored tensor of this graph into another one."""
        if name in self.constants:
            graph.initializer.append(self.constants[name])
        elif name in self.sparse:
            graph.sparse_initializer.append(self.sparse[name])
        else:
            graph.node.append(self.graph.node[self.constant_nodes[name]])

    def copy_of(self, name: str) -> onnx.ModelProto:
        """A model that gives a stored tensor of this graph as its only output."""
        copy = self._empty()
        self.add_stored(copy.graph, name)
        copy.graph.node.add(op_type="Identity", input=[name], output=[f"{name} as output"])
        copy.graph.output.add(name=f"{name} as output")
        return copy

    def control(self, place: int) -> Control:
        """What stands inside a node that can be looked into, empty for all other nodes."""
        node = self.graph.node[place]
        if node.domain in STANDARD and node.op_type in ("If", "Loop", "Scan"):
            return node.op_type if self._indices(place) else ""
        return "call" if any((f.domain, f.name) == (node.domain, node.op_type) for f in self._frame.functions) else ""

    def inside(self, place: int, attribute: str) -> Scope:
        """The subgraph that a node holds in an attribute."""
        key = place, attribute
        if key not in self._inside:
            graphs = [a for a in self.graph.node[place].attribute if a.type == onnx.AttributeProto.GRAPH]
            at = next(at for at, item in enumerate(graphs) if item.name == attribute)
            self._inside[key] = Scope(self.model, self._frame, graphs[at].g, self._indices(place)[at], self)
        return self._inside[key]

    def called(self, place: int) -> Scope:
        """The body of the function that a node calls: attributes filled in, stored arguments among its constants."""
        key = place, ""
        if key not in self._inside:
            node = self.graph.node[place]
            function = next(f for f in self._frame.functions if (f.domain, f.name) == (node.domain, node.op_type))
            frame = onnx.ModelProto()
            frame.CopyFrom(self._frame)
            del frame.opset_import[:]
            frame.opset_import.extend(function.opset_import)
            scope = Scope(self.model, frame, body_of(function, node), self._function(function))
            for formal, actual in zip(function.input, node.input, strict=False):
                owner = self.stored(actual) if actual else None
                if owner is not None and actual in owner.constants:
                    tensor = onnx.TensorProto()
                    tensor.CopyFrom(owner.constants[actual])
                    tensor.name = formal
                    scope.constants[formal] = tensor
            self._inside[key] = scope
        return self._inside[key]

    def doing(self, nodes: Sequence[int]) -> str:
        """Words that complete "while ..." for a run of these nodes."""
        if len(nodes) == 1:
            return f"running {self.words(nodes[0])}"
        return f"running {len(nodes)} operators"

    def words(self, place: int) -> str:
        """A node as a person reads it, by the name it has in the file."""
        node = self.graph.node[place]
        found = _ID.fullmatch(node.name)
        original = self.model.graphs[int(found[1])].columns.node_names[int(found[2])] if found else ""
        return f"{node.op_type} {original!r}" if original else f"{node.op_type} ({node.name})"

    def _indices(self, place: int) -> tuple[int, ...]:
        found = _ID.fullmatch(self.graph.node[place].name)
        return self.model.graphs[int(found[1])].subgraphs.get(int(found[2]), ()) if found else ()

    def _function(self, function: onnx.FunctionProto) -> int:
        known = (g for g in self.model.graphs if g.kind == "function")
        return next(g.index for g in known if (g.domain, g.name) == (function.domain, function.name))

    def _empty(self) -> onnx.ModelProto:
        part = onnx.ModelProto()
        part.CopyFrom(self._frame)
        part.graph.name = "part"
        return part

    def _sorted(self, nodes: Iterable[int]) -> list[int]:
        """File order where it can run in it, as the format demands; else the first order that can."""
        nodes = list(nodes)
        producer = {name: place for place in nodes for name in self.graph.node[place].output if name}
        waiting = {
            place: {producer[name] for name in taken(self.graph.node[place]) if name in producer} - {place}
            for place in nodes
        }
        done: set[int] = set()
        if all(_add(done, place, waiting[place]) for place in nodes):
            return nodes
        return _topological(nodes, waiting)


def body_of(function: onnx.FunctionProto, node: onnx.NodeProto) -> onnx.GraphProto:
    """The graph of one call: attributes of the call or their defaults in place, left-out inputs left out."""
    graph = onnx.GraphProto(name=function.name)
    graph.node.extend(function.node)
    given = {item.name: item for item in (*function.attribute_proto, *node.attribute)}
    absent = {formal for at, formal in enumerate(function.input) if at >= len(node.input) or not node.input[at]}
    for name in function.input:
        if name not in absent:
            graph.input.add(name=name)
    for name in function.output:
        graph.output.add(name=name)
    _fill(graph, given, absent)
    return graph


def _fill(graph: onnx.GraphProto, given: Mapping[str, onnx.AttributeProto], absent: set[str]) -> None:
    for node in graph.node:
        for at, name in enumerate(node.input):
            if name in absent:
                node.input[at] = ""
        attributes = list(node.attribute)
        del node.attribute[:]
        for attribute in attributes:
            if not attribute.ref_attr_name:
                node.attribute.append(attribute)
            elif attribute.ref_attr_name in given:
                node.attribute.append(given[attribute.ref_attr_name])
                node.attribute[-1].name = attribute.name
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _fill(attribute.g, given, absent)


def taken(node: onnx.NodeProto) -> Iterable[str]:
    """Names that a node takes from its graph, through its subgraphs as well."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield from free_names(attribute.g)
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield from free_names(graph)


def free_names(graph: onnx.GraphProto) -> Iterable[str]:
    """Names that a subgraph takes from around it."""
    own = {item.name for item in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        yield from (name for name in taken(node) if name not in own)
        own.update(node.output)
    yield from (item.name for item in graph.output if item.name not in own)


def constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a ``Constant`` node holds, under the name of its output, where that is a dense tensor."""
    if not _is_constant(node) or len(node.output) != 1:
        return None
    value = next((a.t for a in node.attribute if a.name == "value" and a.HasField("t")), None)
    if value is None:
        return None
    tensor = onnx.TensorProto()
    tensor.CopyFrom(value)
    tensor.name = node.output[0]
    return tensor


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in STANDARD


def _add(done: set[int], index: int, before: set[int]) -> bool:
    done.add(index)
    return before <= done


def _topological(nodes: list[int], waiting: dict[int, set[int]]) -> list[int]:
    users: dict[int, list[int]] = {}
    for index, before in waiting.items():
        for producer in before:
            users.setdefault(producer, []).append(index)
    left = {index: len(before) for index, before in waiting.items()}
    ready = [index for index in nodes if left[index] == 0]
    for index in ready:
        for user in users.get(index, ()):
            left[user] -= 1
            if left[user] == 0:
                ready.append(user)
    return ready
