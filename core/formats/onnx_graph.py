"""``GraphProto`` and ``FunctionProto``: nodes, values, stored tensors and subgraphs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from core.formats._protobuf import BYTES, VARINT, Damage, Window, fields, signed
from core.formats.onnx_constant import constant_tensor
from core.formats.onnx_external import ExternalFiles
from core.formats.onnx_node import AttributeParts, NodeParts, NodeReader
from core.formats.onnx_quick import Quick
from core.formats.onnx_tensor import TensorReader, string_pair
from core.formats.onnx_types import Span, TypeReader
from core.graph_builder import GraphBuilder
from core.ir import Attribute, AttributeValue, EncodedAttribute, GraphKind, GraphRef, Tensor, TensorRef
from core.limits import GRAPHS, KIB, NAME_BYTES, NESTING, NODES, TENSORS, check
from core.source import Source

_PER_SUBGRAPH: Final = 3
"""Message levels a subgraph adds: node, attribute, graph."""


@dataclass(slots=True)
class Pending:
    """A graph met but not read yet."""

    index: int
    kind: GraphKind
    spans: list[Span]
    depth: int
    parent: tuple[int, int, str] | None = None


@dataclass(slots=True)
class GraphFacts:
    """What a graph says beside its nodes, for the format's own panel."""

    metadata: dict[str, str] = field(default_factory=dict[str, str])
    quantized: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


class GraphReader:
    """Reads all graphs of one file into builders; the first is ``builders[0]``."""

    def __init__(self, source: Source, damage: Damage) -> None:
        self.window = Window(source)
        self.damage = damage
        self.external = ExternalFiles(source)
        self.tensors: list[Tensor] = []
        self.builders: list[GraphBuilder] = []
        self.facts: list[GraphFacts] = []
        self.names = list[list[str]]()
        self._types = TypeReader(self.window, damage)
        self._nodes = NodeReader(self.window, damage)
        self._tensor_reader = TensorReader(self.window, damage, self.external)
        self._pending = deque[Pending]()
        self._graphs = self.earlier_nodes = 0

    def read(self, kind: GraphKind, spans: list[Span]) -> None:
        """Read one graph and everything nested in it; reads from disk."""
        self._pending.append(Pending(self._next_graph(), kind, spans, 2))
        while self._pending:
            self._one(self._pending.popleft())

    def _next_graph(self) -> int:
        check("the number of graphs", self._graphs + 1, GRAPHS, path=self.damage.path)
        self._graphs += 1
        return self._graphs - 1

    def _one(self, pending: Pending) -> None:
        while len(self.builders) <= pending.index:
            self.builders.append(GraphBuilder(len(self.builders), "subgraph"))
            self.facts.append(GraphFacts())
        builder = GraphBuilder(pending.index, pending.kind, parent=pending.parent)
        self.builders[pending.index] = builder
        reader = _OneGraph(self, builder, pending)
        for start, stop in pending.spans:
            if pending.kind == "function":
                reader.function(start, stop)
            else:
                reader.graph(start, stop)
        reader.end()
        self.earlier_nodes += builder.node_count

    # --- parts that graphs share -------------------------------------------------------

    def add_tensor(self, tensor: Tensor) -> int:
        """Number a tensor."""
        check("the number of tensors", len(self.tensors) + 1, TENSORS, path=self.damage.path)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def check_count(self, nodes: int) -> None:
        """Check the nodes of the graphs read before together with ``nodes``."""
        if self.earlier_nodes + nodes > NODES:
            check("the number of nodes", self.earlier_nodes + nodes, NODES, path=self.damage.path)

    def enqueue(self, spans: list[Span], depth: int, parent: tuple[int, int, str]) -> int:
        """Number a subgraph and read it later; -1 where it is nested too deep."""
        if depth + _PER_SUBGRAPH > NESTING:
            self.damage.add(
                "subgraphs are nested too deep", spans[0][0], "AttributeProto.g", f"at most {NESTING}", "more"
            )
            return -1
        index = self._next_graph()
        self._pending.append(Pending(index, "subgraph", spans, depth + _PER_SUBGRAPH, parent))
        return index

    @property
    def node_reader(self) -> NodeReader:
        """Reads nodes and attributes."""
        return self._nodes

    @property
    def type_reader(self) -> TypeReader:
        """Reads types."""
        return self._types

    @property
    def tensor_reader(self) -> TensorReader:
        """Reads tensors."""
        return self._tensor_reader


class _OneGraph:
    """Fills one builder."""

    def __init__(self, shared: GraphReader, builder: GraphBuilder, pending: Pending) -> None:
        self._shared, self._builder, self._pending = shared, builder, pending
        self._window, self._damage = shared.window, shared.damage
        self._facts = shared.facts[builder.index]
        self._declared = set[int]()
        self._tensor_values: list[tuple[int, int]] = []

    def graph(self, start: int, stop: int) -> None:
        """Read a span of a GraphProto."""
        self._span(start, stop, "GraphProto", (0x0A, 0x6A, 0x2A), self._graph_field)

    def function(self, start: int, stop: int) -> None:
        """Read a span of a FunctionProto."""
        self._span(start, stop, "FunctionProto", (0x3A, 0x62, 0), self._function_field)

    def _span(
        self, start: int, stop: int, message: str, tags: tuple[int, int, int], take: Callable[[int, int, int], None]
    ) -> None:
        """Read fields the quick way where they come in a row, all else one by one."""
        shared, at = self._shared, start
        quick = Quick(
            self._window, tags, shared.node_reader, shared.type_reader, self._builder, self._declared, self
        )  # fmt: skip
        numbers = {tag >> 3 for tag in tags}
        while at < stop:
            at = quick.run(at, stop)
            at = self._slowly(at, stop, message, numbers, take)

    def _slowly(
        self, start: int, stop: int, message: str, numbers: set[int], take: Callable[[int, int, int], None]
    ) -> int:
        """Read fields up to and with the first that may begin a row; returns where it ends."""
        for number, wire, a, b in fields(self._window, start, stop, message, self._damage):
            if wire == BYTES:
                take(number, a, b)
                if number in numbers and b < stop:
                    return b
        return stop

    def check_count(self) -> None:
        """Check the number of nodes of all graphs so far."""
        self._shared.check_count(self._builder.node_count)

    def _graph_field(self, number: int, a: int, b: int) -> None:
        window, builder = self._window, self._builder
        if number == 1:
            self.node(a, b)
        elif number in (5, 15):
            self._initializer(number, a, b)
        elif number in (11, 12, 13):
            self.value_info(number, a, b)
        elif number == 2:
            builder.name = window.text(a, min(b, a + NAME_BYTES))
        elif number == 10:
            builder.doc = window.text(a, min(b, a + NAME_BYTES))
        elif number == 14:
            self._annotation(a, b)
        elif number == 16:
            self._metadata(a, b)

    def _function_field(self, number: int, a: int, b: int) -> None:
        window, builder = self._window, self._builder
        if number == 7:
            self.node(a, b)
        elif number in (4, 5):
            value = builder.value(window.text(a, min(b, a + NAME_BYTES)))
            (builder.inputs if number == 4 else builder.outputs).append(value)
        elif number == 12:
            self.value_info(13, a, b)
        elif number == 9:
            domain, version = opset(window, a, b, self._damage)
            builder.opsets[domain] = version
        elif number == 1:
            builder.name = window.text(a, min(b, a + NAME_BYTES))
        elif number == 8:
            builder.doc = window.text(a, min(b, a + NAME_BYTES))
        elif number == 10:
            builder.domain = window.text(a, min(b, a + NAME_BYTES))
        elif number == 13:
            self._facts.metadata["overload"] = window.text(a, min(b, a + NAME_BYTES))
        elif number == 14:
            self._metadata(a, b)

    def end(self) -> None:
        """Give stored values their tensors' types and find what is taken from outer graphs."""
        builder, tensors = self._builder, self._shared.tensors
        for value, tensor in self._tensor_values:
            builder.initializer(value, tensor)
            if value not in self._declared and tensors[tensor].dtype != "opaque":
                builder.set_type(value, tensors[tensor].dtype, tensors[tensor].shape)
        if builder.parent is not None:
            self._capture()

    def _capture(self) -> None:
        builder, builders = self._builder, self._shared.builders
        inputs = set(builder.inputs)
        for name, value in builder.value_ids.items():
            if not name or value in inputs or builder.produced(value):
                continue
            outer: GraphBuilder = builder
            while outer.parent is not None:
                outer = builders[outer.parent[0]]
                found = outer.value_ids.get(name)
                if found is not None and (outer.produced(found) or found in outer.inputs):
                    builder.capture(value, outer.index, found)
                    break

    # --- nodes ---------------------------------------------------------------------------

    def node(self, start: int, stop: int) -> None:
        """Add a node of any kind; reads from disk."""
        shared, builder = self._shared, self._builder
        self.check_count()
        parts = shared.node_reader.read(start, stop)
        ids, value = builder.value_ids, builder.value
        inputs = [(ids[n] if n in ids else value(n)) if n else -1 for n in parts.inputs]
        outputs = [(ids[n] if n in ids else value(n)) if n else -1 for n in parts.outputs]
        attributes = list[Attribute]()
        constant = parts.op_type == "Constant" and parts.domain in ("", "ai.onnx")
        for a, b in parts.attributes:
            attributes.append(self._attribute(parts, a, b, constant, outputs))
        builder.node(
            parts.op_type, parts.name, inputs, outputs,
            domain=parts.domain, scope=parts.scope, overload=parts.overload, attributes=attributes,
        )  # fmt: skip

    def _attribute(self, node: NodeParts, start: int, stop: int, constant: bool, outputs: list[int]) -> Attribute:
        parts = self._shared.node_reader.attribute(start, stop)
        encoded = Attribute(parts.name, EncodedAttribute(0, start, stop))
        if constant and outputs and outputs[0] >= 0:
            tensor = constant_tensor(
                self._shared.tensor_reader, self._window, self._damage, parts, (start, stop),
                node.outputs[0], self._builder.index,
            )  # fmt: skip
            if tensor is not None:
                index = self._shared.add_tensor(tensor)
                self._tensor_values.append((outputs[0], index))
                return encoded if parts.simple else Attribute(parts.name, TensorRef(index))
        return encoded if parts.simple else Attribute(parts.name, self._value(node, parts))

    def _value(self, node: NodeParts, parts: AttributeParts) -> AttributeValue:
        place = (self._builder.index, self._builder.node_count, parts.name)
        if parts.graph or parts.graphs:
            singles = [parts.graph] if parts.graph else []
            found = tuple(self._subgraph(spans, place) for spans in (*singles, *([g] for g in parts.graphs)))
            return found[0] if parts.graph and len(found) == 1 else found
        label = next((o for o in node.outputs if o), node.name or node.op_type)
        name = f"{label}.{parts.name}"
        reader, index = self._shared.tensor_reader, self._builder.index
        if parts.tensor:
            return TensorRef(
                self._shared.add_tensor(reader.read(parts.tensor, role="constant", graph=index, name=name))
            )
        if parts.sparse:
            return TensorRef(
                self._shared.add_tensor(reader.sparse(parts.sparse, role="constant", graph=index, name=name))
            )
        dense = [
            reader.read([s], role="constant", graph=index, name=f"{name}.{i}") for i, s in enumerate(parts.tensors)
        ]
        sparse = [
            reader.sparse([s], role="constant", graph=index, name=f"{name}.{i}") for i, s in enumerate(parts.sparses)
        ]
        return tuple(TensorRef(self._shared.add_tensor(t)) for t in (*dense, *sparse))

    def _subgraph(self, spans: list[Span], place: tuple[int, int, str]) -> AttributeValue:
        graph = self._shared.enqueue(spans, self._pending.depth, place)
        if graph < 0:
            return None
        self._builder.subgraph(place[1], graph)
        return GraphRef(graph)

    # --- values ----------------------------------------------------------------------------

    def _initializer(self, number: int, start: int, stop: int) -> None:
        reader, index = self._shared.tensor_reader, self._builder.index
        if number == 5:
            tensor = reader.read([(start, stop)], role="initializer", graph=index)
        else:
            tensor = reader.sparse([(start, stop)], role="initializer", graph=index)
        self.add_initializer(tensor)

    def add_initializer(self, tensor: Tensor) -> None:
        """Number a stored tensor and tie it to its value."""
        row = self._shared.add_tensor(tensor)
        self._tensor_values.append((self._builder.value(tensor.name), row))

    def value_info(self, number: int, start: int, stop: int) -> None:
        """Declare a value (field 13), an input (11) or an output (12); reads from disk."""
        window, builder = self._window, self._builder
        name, types = "", list[Span]()
        for field_number, wire, a, b in fields(window, start, stop, "ValueInfoProto", self._damage):
            if wire == BYTES and field_number == 1:
                name = window.text(a, min(b, a + NAME_BYTES))
            elif wire == BYTES and field_number == 2:
                types.append((a, b))
        value = builder.value(name)
        if number == 11:
            builder.inputs.append(value)
        elif number == 12:
            builder.outputs.append(value)
        if types:
            self._declared.add(value)
            info = self._shared.type_reader.read(types)
            if info.text:
                builder.set_type_text(value, info.text)
            else:
                builder.set_type(value, info.dtype, info.shape)

    def _annotation(self, start: int, stop: int) -> None:
        entry = dict[str, str]()
        for number, wire, a, b in fields(self._window, start, stop, "TensorAnnotation", self._damage):
            if number == 1 and wire == BYTES:
                entry["tensor"] = self._window.text(a, min(b, a + KIB))
            elif number == 2 and wire == BYTES and len(entry) < 16:
                key, text = string_pair(self._window, a, b, self._damage)
                entry[key[:KIB]] = text[:KIB]
        if len(self._facts.quantized) < 100_000:
            self._facts.quantized.append(entry)

    def _metadata(self, start: int, stop: int) -> None:
        key, text = string_pair(self._window, start, stop, self._damage)
        if len(self._facts.metadata) < 1000:
            self._facts.metadata[key] = text


def opset(window: Window, start: int, stop: int, damage: Damage) -> tuple[str, int]:
    """An ``OperatorSetIdProto``; the empty domain is written ``ai.onnx``."""
    domain, version = "", 0
    for number, wire, a, b in fields(window, start, stop, "OperatorSetIdProto", damage):
        if number == 1 and wire == BYTES:
            domain = window.text(a, min(b, a + NAME_BYTES))
        elif number == 2 and wire == VARINT:
            version = signed(a)
    return domain or "ai.onnx", version
