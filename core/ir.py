"""The model as data: frozen types linked by ids, and graphs held as columns.

A graph of 50,000 operators is a few numpy arrays; ``graph.node(i)`` and ``graph.value(i)`` make
a frozen dataclass on demand. Code over all nodes works on ``graph.columns``.
Damaged files are models too: what is missing is ``None`` or -1 and a ``Finding`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.dtypes import CODES, UNKNOWN_CODE, DType, dtype_at, dtype_of
from core.errors import NotFound
from core.source import Source

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Severity = Literal["error", "warning", "info"]
Availability = Literal["available", "partial", "needs companion", "unavailable"]
CapabilityName = Literal[
    "inspect", "graph", "tensors", "statistics", "audit", "compare", "edit",
    "quantize", "prune", "export", "trace", "intervene", "gradients",
]  # fmt: skip
GraphKind = Literal["main", "subgraph", "function", "reconstructed"]
TensorRole = Literal["initializer", "constant", "weight", "buffer"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a person should know about the file.

    Attributes:
        code: stable identifier such as ``onnx.truncated``.
        at: the place, e.g. ``byte 120``, ``node g0.n3``, ``tensor encoder.weight``.
    """

    code: str
    severity: Severity
    message: str
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether something can be done with this model; all but ``available`` say why not."""

    name: CapabilityName
    availability: Availability
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``start`` to ``stop`` (end excluded) of ``model.sources[source]``."""

    source: int
    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        """Length in bytes."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Quantization:
    """Affine quantization: real = scale * (stored - zero_point).

    Attributes:
        scale: scales, one for the tensor or one a channel along ``axis``.
        zero_point: zero points, as many as scales or one.
        axis: the channel axis, ``None`` for per-tensor.
        block_size: elements along ``axis`` that share a scale, 0 where not blocked.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...] = (0,)
    axis: int | None = None
    block_size: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """Stored numbers of a model, not read until asked for.

    Attributes:
        name: as in the file; names may repeat, so code refers to tensors by index.
        dtype: element type of the decoded values (for block encodings what they dequantize to).
        shape: dimensions in elements.
        data: where the stored bytes are; ``bytes`` for small embedded ones; ``None`` where missing.
        encoding: ``plain`` little-endian contiguous elements; ``big`` the same big-endian;
            ``onnx.typed`` a whole TensorProto message whose typed fields hold the elements;
            ``sparse``, ``ggml.q4_k``, ... as the format's decoder names it.
        strides: steps in elements a dimension where the view is not contiguous, with ``offset``.
        offset: first element of the view within ``data``, in elements.
        graph: index of the graph that owns it, -1 where there is none.
        problem: why its values cannot be decoded, empty where they can.
        storage: tensors with the same non-negative number share one storage.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: ByteRange | bytes | None
    encoding: str = "plain"
    strides: tuple[int, ...] | None = None
    offset: int = 0
    quantization: Quantization | None = None
    role: TensorRole = "weight"
    graph: int = -1
    problem: str = ""
    storage: int = -1

    @property
    def elements(self) -> int:
        """Number of elements (1 for a scalar)."""
        total = 1
        for size in self.shape:
            total *= size
        return total

    @property
    def nbytes(self) -> int:
        """Stored bytes; what the elements need where nothing is stored."""
        if isinstance(self.data, ByteRange):
            return self.data.nbytes
        if self.data is not None:
            return len(self.data)
        return dtype_of(self.dtype).nbytes(self.elements)


# --- attributes -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphRef:
    """An attribute that is a graph: ``model.graphs[graph]``."""

    graph: int


@dataclass(frozen=True, slots=True)
class TensorRef:
    """An attribute that is a tensor: ``model.tensors[tensor]``."""

    tensor: int


@dataclass(frozen=True, slots=True)
class AttributeRef:
    """An attribute of a function body that takes the caller's attribute ``name``."""

    name: str


@dataclass(frozen=True, slots=True)
class TypeText:
    """An attribute that is a type, written out."""

    text: str


AttributeValue = (
    int | float | str | bytes | bool | None | GraphRef | TensorRef | AttributeRef | TypeText
    | tuple["AttributeValue", ...]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EncodedAttribute:
    """An attribute not decoded yet: bytes ``start`` to ``stop`` of ``source``."""

    source: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Attribute:
    """A name and either a value or where its bytes are."""

    name: str
    value: AttributeValue | EncodedAttribute


# --- nodes, values, graphs --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """One operator application.

    Attributes:
        inputs: value ids, -1 where an optional input is left out.
        scope: module path from metadata, empty where there is none.
    """

    graph: int
    index: int
    name: str
    op_type: str
    domain: str
    scope: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    overload: str = ""

    @property
    def id(self) -> str:
        """Stable id within the model, e.g. ``g0.n12``."""
        return f"g{self.graph}.n{self.index}"


Dim = int | str | None
"""A dimension: a size, the name of a symbol, or unknown."""


@dataclass(frozen=True, slots=True)
class Value:
    """One edge bundle: what one node makes and others take.

    Attributes:
        dtype: element type name, ``None`` where the file does not say.
        shape: dimensions, ``None`` where the rank is unknown.
        producer: node index within the graph, -1 for inputs, initializers and captures.
        tensor: index into ``model.tensors`` where it is an initializer, else -1.
        captured: (graph, value) of the enclosing graph it is taken from.
        type_text: the written-out type where it is no tensor, e.g. ``sequence(float32)``.
    """

    graph: int
    index: int
    name: str
    dtype: str | None
    shape: tuple[Dim, ...] | None
    producer: int
    consumers: tuple[int, ...]
    tensor: int = -1
    is_input: bool = False
    is_output: bool = False
    captured: tuple[int, int] | None = None
    type_text: str = ""

    @property
    def id(self) -> str:
        """Stable id within the model, e.g. ``g0.v12``."""
        return f"g{self.graph}.v{self.index}"


@dataclass(frozen=True, slots=True)
class GraphColumns:
    """The graph as columns; offset arrays have one entry more than rows (CSR form).

    Node columns (length N): ``op_type``, ``domain``, ``scope`` index ``strings``; ``node_names``.
    ``inputs[input_offsets[i]:input_offsets[i + 1]]`` are value ids of node i, -1 where left out;
    ``outputs`` likewise. Attribute row a of node i lies in
    ``attribute_offsets[i] <= a < attribute_offsets[i + 1]``: ``attribute_name`` indexes
    ``strings``; ``attribute_start``/``attribute_stop`` are bytes of source ``attribute_source``,
    or ``attribute_source`` is -1 and ``attribute_start`` indexes ``literals``.

    Value columns (length V): ``value_names``; ``dtype`` codes (-1 unknown); ``rank`` (-1 unknown)
    and ``dims[dim_offsets[v]:dim_offsets[v + 1]]`` with sizes >= 0, -1 unknown and
    ``-2 - s`` for the symbol ``strings[s]``; ``producer`` node; ``tensor`` index; ``flags``
    (1 input, 2 output); ``captured_graph``/``captured_value``; ``consumers`` by
    ``consumer_offsets`` (one entry per use, in node order).
    """

    strings: tuple[str, ...]
    literals: tuple[AttributeValue, ...]
    node_names: Sequence[str]
    op_type: Ints
    domain: Ints
    scope: Ints
    input_offsets: Ints
    inputs: Ints
    output_offsets: Ints
    outputs: Ints
    attribute_offsets: Ints
    attribute_name: Ints
    attribute_source: NDArray[np.int16]
    attribute_start: Longs
    attribute_stop: Longs
    value_names: Sequence[str]
    dtype: NDArray[np.int16]
    dim_offsets: Ints
    dims: Longs
    rank: NDArray[np.int16]
    producer: Ints
    tensor: Ints
    flags: NDArray[np.uint8]
    captured_graph: Ints
    captured_value: Ints
    consumer_offsets: Ints
    consumers: Ints
    type_texts: Mapping[int, str] = field(default_factory=dict[int, str])
    overloads: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True)
class Graph:
    """Operators and values of one graph, function body or subgraph.

    Attributes:
        parent: (graph, node, attribute name) that holds this subgraph.
        inputs, outputs: value ids in the order of the signature.
        subgraphs: graph indexes by node index, in attribute order.
        domain, opsets: for functions their own.
    """

    index: int
    kind: GraphKind
    name: str
    columns: GraphColumns
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    parent: tuple[int, int, str] | None = None
    subgraphs: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    doc: str = ""
    domain: str = ""
    opsets: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def node_count(self) -> int:
        """Number of operators, subgraphs not counted."""
        return len(self.columns.op_type)

    @property
    def value_count(self) -> int:
        """Number of values."""
        return len(self.columns.producer)

    def node(self, index: int) -> Node:
        """The operator at ``index``.

        Raises:
            NotFound: if there is no such row.
        """
        c = self.columns
        if not 0 <= index < self.node_count:
            raise NotFound(f"graph {self.index} has no node {index}")
        return Node(
            graph=self.index,
            index=index,
            name=c.node_names[index],
            op_type=c.strings[int(c.op_type[index])],
            domain=c.strings[int(c.domain[index])],
            scope=c.strings[int(c.scope[index])],
            inputs=_row(c.inputs, c.input_offsets, index),
            outputs=_row(c.outputs, c.output_offsets, index),
            attributes=tuple(
                self._attribute(row) for row in range(c.attribute_offsets[index], c.attribute_offsets[index + 1])
            ),
            overload=c.overloads.get(index, ""),
        )

    def value(self, index: int) -> Value:
        """The value at ``index``.

        Raises:
            NotFound: if there is no such row.
        """
        c = self.columns
        if not 0 <= index < self.value_count:
            raise NotFound(f"graph {self.index} has no value {index}")
        code = int(c.dtype[index])
        captured = int(c.captured_graph[index])
        return Value(
            graph=self.index,
            index=index,
            name=c.value_names[index],
            dtype=None if code == UNKNOWN_CODE else dtype_at(code).name,
            shape=self.shape(index),
            producer=int(c.producer[index]),
            consumers=_row(c.consumers, c.consumer_offsets, index),
            tensor=int(c.tensor[index]),
            is_input=bool(c.flags[index] & 1),
            is_output=bool(c.flags[index] & 2),
            captured=None if captured < 0 else (captured, int(c.captured_value[index])),
            type_text=c.type_texts.get(index, ""),
        )

    def shape(self, value: int) -> tuple[Dim, ...] | None:
        """Declared dimensions of a value; ``None`` where the rank is unknown."""
        c = self.columns
        if c.rank[value] < 0:
            return None
        dims = c.dims[c.dim_offsets[value] : c.dim_offsets[value + 1]]
        return tuple(int(d) if d >= 0 else None if d == -1 else c.strings[-2 - int(d)] for d in dims)

    def nodes(self) -> Iterator[Node]:
        """All operators in file order, made one by one."""
        return (self.node(i) for i in range(self.node_count))

    def values(self) -> Iterator[Value]:
        """All values, made one by one."""
        return (self.value(i) for i in range(self.value_count))

    @cached_property
    def value_index(self) -> Mapping[str, int]:
        """Value ids by name; the first of equal names wins."""
        names = self.columns.value_names
        return {names[i]: i for i in range(len(names) - 1, -1, -1)}

    def _attribute(self, row: int) -> Attribute:
        c = self.columns
        name, source = c.strings[int(c.attribute_name[row])], int(c.attribute_source[row])
        if source < 0:
            return Attribute(name, c.literals[int(c.attribute_start[row])])
        return Attribute(name, EncodedAttribute(source, int(c.attribute_start[row]), int(c.attribute_stop[row])))


def _row(flat: Ints, offsets: Ints, index: int) -> tuple[int, ...]:
    return tuple(flat[offsets[index] : offsets[index + 1]].tolist())


AttributeDecoder = Callable[["Model", EncodedAttribute], AttributeValue]


@dataclass(frozen=True)
class Model:
    """One artifact as opened: metadata in memory, payloads on disk.

    Attributes:
        format: short name of the reader, e.g. ``onnx``; ``kind`` in words, e.g. ``ONNX model``.
        path: the file or folder as opened.
        sources: every file of the artifact; ``sources[0]`` is the one that was opened.
        producer: tool and version that wrote it, empty where unknown.
        opsets: operator set version by domain (empty domain written ``ai.onnx``).
        details: facts of this format for its own panel (plain JSON values).
    """

    format: str
    kind: str
    path: str
    sources: tuple[Source, ...]
    metadata: Mapping[str, str]
    tensors: tuple[Tensor, ...]
    graphs: tuple[Graph, ...]
    capabilities: Mapping[CapabilityName, Capability]
    findings: tuple[Finding, ...] = ()
    producer: str = ""
    opsets: Mapping[str, int] = field(default_factory=dict[str, int])
    details: Mapping[str, object] = field(default_factory=dict[str, object])
    decode_attribute: AttributeDecoder | None = None

    @property
    def name(self) -> str:
        """File or folder name without its path."""
        return self.path.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(source.size for source in self.sources)

    @property
    def main_graph(self) -> Graph | None:
        """The graph that the file runs, ``None`` for weights alone."""
        return next((g for g in self.graphs if g.kind in ("main", "reconstructed")), None)

    @property
    def node_count(self) -> int:
        """Operators of all graphs together, subgraphs and functions included."""
        return sum(g.node_count for g in self.graphs)

    @property
    def parameters(self) -> int:
        """Elements of all stored tensors that are numbers; a storage that several share counts once."""
        own = sum(t.elements for t in self.tensors if t.storage < 0 and t.dtype not in ("string", "opaque"))
        shared: dict[int, int] = {}
        for tensor in self.tensors:
            if tensor.storage >= 0:
                shared[tensor.storage] = max(shared.get(tensor.storage, 0), tensor.elements)
        return own + sum(shared.values())

    def attribute(self, attribute: Attribute) -> AttributeValue:
        """Decode one attribute; reads its bytes where they are still on disk."""
        value = attribute.value
        if not isinstance(value, EncodedAttribute):
            return value
        if self.decode_attribute is None:
            raise NotFound(f"attribute {attribute.name!r} has no decoder", path=self.path)
        return self.decode_attribute(self, value)

    def capability(self, name: CapabilityName) -> Capability:
        """The capability of that name; unavailable where the reader does not list it."""
        return self.capabilities.get(name) or Capability(
            name, "unavailable", f"The {self.kind} reader does not offer {name}."
        )

    def with_findings(self, findings: Sequence[Finding]) -> Model:
        """The same model with more findings."""
        return replace(self, findings=(*self.findings, *findings))

    def close(self) -> None:
        """Give all file descriptors back; a later read opens them again."""
        for source in self.sources:
            source.close()


# --- building ---------------------------------------------------------------------------


class Strings:
    """Texts numbered in order of first use."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {"": 0}

    def code(self, text: str) -> int:
        """The number of ``text``, a new one where it was not seen before."""
        return self.codes.setdefault(text, len(self.codes))

    def all(self) -> tuple[str, ...]:
        """All texts by number."""
        return tuple(self.codes)


class GraphBuilder:
    """Collects one graph row by row and freezes it into columns; every format uses it.

    Values are numbered as they are met: ``value(name)`` gives the id of a name, a new one where
    the name is new. A node whose output name was already produced raises a finding, not an error.
    """

    def __init__(self, index: int, kind: GraphKind, name: str = "", parent: tuple[int, int, str] | None = None) -> None:
        self.index, self.name, self.parent = index, name, parent
        self.kind: GraphKind = kind
        self.doc, self.domain = "", ""
        self.opsets: dict[str, int] = {}
        self.findings: list[Finding] = []
        self.strings = Strings()
        self.value_ids: dict[str, int] = {}
        self.value_names: list[str] = []
        self.node_names: list[str] = []
        self._literals: list[AttributeValue] = []
        self._op_type: list[int] = []
        self._domain: list[int] = []
        self._scope: list[int] = []
        self._input_offsets, self._inputs = [0], list[int]()
        self._output_offsets, self._outputs = [0], list[int]()
        self._attribute_offsets = [0]
        self._attributes: list[int] = []  # four numbers an attribute
        self._types: dict[int, tuple[int, tuple[Dim, ...] | None]] = {}
        self._type_texts: dict[int, str] = {}
        self._overloads: dict[int, str] = {}
        self._producer: dict[int, int] = {}
        self._tensor: dict[int, int] = {}
        self._captured: dict[int, tuple[int, int]] = {}
        self._subgraphs: dict[int, list[int]] = {}
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    @property
    def node_count(self) -> int:
        """Nodes added so far."""
        return len(self._op_type)

    def value(self, name: str) -> int:
        """The id of the value called ``name``, made where it is new."""
        found = self.value_ids.get(name)
        if found is None:
            found = self.value_ids[name] = len(self.value_names)
            self.value_names.append(name)
        return found

    def fresh_value(self, name: str) -> int:
        """A new value even where the name is taken (files with duplicate names)."""
        self.value_names.append(name)
        self.value_ids.setdefault(name, len(self.value_names) - 1)
        return len(self.value_names) - 1

    def node(
        self,
        op_type: str,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        domain: str = "",
        scope: str = "",
        overload: str = "",
        attributes: Sequence[Attribute] = (),
    ) -> int:
        """Add an operator and return its index; -1 in ``inputs`` or ``outputs`` is a left-out one."""
        index = self.encoded_node(op_type, name, inputs, outputs, domain, scope, ())
        for attribute in attributes:
            self._add_attribute(attribute)
        self._attribute_offsets[-1] = len(self._attributes)
        if overload:
            self._overloads[index] = overload
        return index

    def encoded_node(
        self,
        op_type: str,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        domain: str,
        scope: str,
        attributes: Sequence[tuple[str, int, int, int]],
    ) -> int:
        """``node`` for operators whose attributes are on disk: (name, source, start, stop) each."""
        codes, index = self.strings.codes, len(self._op_type)
        self._op_type.append(codes.setdefault(op_type, len(codes)))
        self._domain.append(codes.setdefault(domain, len(codes)) if domain else 0)
        self._scope.append(codes.setdefault(scope, len(codes)) if scope else 0)
        self.node_names.append(name)
        self._inputs += inputs
        self._input_offsets.append(len(self._inputs))
        self._outputs += outputs
        self._output_offsets.append(len(self._outputs))
        for output in outputs:
            if output >= 0 and self._producer.setdefault(output, index) != index:
                self._duplicate(output, index)
        for key, source, start, stop in attributes:
            self._attributes += (codes.setdefault(key, len(codes)), source, start, stop)
        self._attribute_offsets.append(len(self._attributes))
        return index

    def set_scope(self, node: int, scope: str) -> None:
        """Give a node its module path after it was added."""
        self._scope[node] = self.strings.code(scope)

    def set_type(self, value: int, dtype: str | None, shape: tuple[Dim, ...] | None) -> None:
        """Declare what a value holds; the last declaration wins."""
        self._types[value] = (UNKNOWN_CODE if dtype is None else CODES[dtype], shape)

    def set_type_text(self, value: int, text: str) -> None:
        """Declare a value that is no tensor, e.g. ``sequence(float32)``."""
        self._type_texts[value] = text

    def initializer(self, value: int, tensor: int) -> None:
        """Say that a value is the stored tensor ``model.tensors[tensor]``."""
        self._tensor[value] = tensor

    def capture(self, value: int, graph: int, outer: int) -> None:
        """Say that a value is taken from value ``outer`` of the enclosing ``graph``."""
        self._captured[value] = (graph, outer)

    def subgraph(self, node: int, graph: int) -> None:
        """Say that a node holds ``model.graphs[graph]``."""
        self._subgraphs.setdefault(node, []).append(graph)

    def produced(self, value: int) -> bool:
        """Whether a node, an initializer or a capture already makes this value."""
        return value in self._producer or value in self._tensor or value in self._captured

    def finish(self) -> Graph:
        """Freeze everything into columns."""
        return Graph(
            index=self.index,
            kind=self.kind,
            name=self.name,
            columns=self._columns(),
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            parent=self.parent,
            subgraphs={node: tuple(graphs) for node, graphs in self._subgraphs.items()},
            doc=self.doc,
            domain=self.domain,
            opsets=dict(self.opsets),
        )

    def _columns(self) -> GraphColumns:
        count = len(self.value_names)
        flags = np.zeros(count, np.uint8)
        flags[self.inputs] |= 1
        flags[self.outputs] |= 2
        dtype, rank, dim_offsets, dims = self._type_columns(count)
        captured_graph, captured_value = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        for value, (graph, outer) in self._captured.items():
            captured_graph[value], captured_value[value] = graph, outer
        inputs, input_offsets = _ints(self._inputs), _ints(self._input_offsets)
        consumer_offsets, consumers = _consumers(inputs, input_offsets, count)
        rows = np.array(self._attributes, np.int64).reshape(-1, 4)
        columns = GraphColumns(
            strings=self.strings.all(),
            literals=tuple(self._literals),
            node_names=self.node_names,
            op_type=_ints(self._op_type),
            domain=_ints(self._domain),
            scope=_ints(self._scope),
            input_offsets=input_offsets,
            inputs=inputs,
            output_offsets=_ints(self._output_offsets),
            outputs=_ints(self._outputs),
            attribute_offsets=_ints(self._attribute_offsets) // 4,
            attribute_name=rows[:, 0].astype(np.int32),
            attribute_source=rows[:, 1].astype(np.int16),
            attribute_start=rows[:, 2].copy(),
            attribute_stop=rows[:, 3].copy(),
            value_names=self.value_names,
            dtype=dtype,
            dim_offsets=dim_offsets,
            dims=dims,
            rank=rank,
            producer=_scatter(self._producer, count),
            tensor=_scatter(self._tensor, count),
            flags=flags,
            captured_graph=captured_graph,
            captured_value=captured_value,
            consumer_offsets=consumer_offsets,
            consumers=consumers,
            type_texts=self._type_texts,
            overloads=self._overloads,
        )
        for name in GraphColumns.__slots__:
            column = getattr(columns, name)
            if isinstance(column, np.ndarray):
                column.setflags(write=False)
        return columns

    def _type_columns(self, count: int) -> tuple[NDArray[np.int16], NDArray[np.int16], Ints, Longs]:
        dtype, rank = np.full(count, UNKNOWN_CODE, np.int16), np.full(count, -1, np.int16)
        sizes = np.zeros(count + 1, np.int32)
        flat, known = list[int](), dict[tuple[Dim, ...], list[int]]()
        order = sorted(self._types)
        ranks = list[int]()
        for value in order:
            shape = self._types[value][1]
            if shape is None:
                ranks.append(-1)
                continue
            dims = known.get(shape)
            if dims is None:
                dims = known[shape] = [self._dim(d) for d in shape]
            ranks.append(len(dims))
            flat += dims
        dtype[order] = [self._types[value][0] for value in order]
        rank[order] = ranks
        sizes[1:] = np.maximum(rank, 0)
        return dtype, rank, np.cumsum(sizes, dtype=np.int32), np.array(flat, np.int64)

    def _dim(self, dim: Dim) -> int:
        if dim is None:
            return -1
        return dim if isinstance(dim, int) else -2 - self.strings.code(dim)

    def _add_attribute(self, attribute: Attribute) -> None:
        name, value = self.strings.code(attribute.name), attribute.value
        if isinstance(value, EncodedAttribute):
            self._attributes += (name, value.source, value.start, value.stop)
        else:
            self._literals.append(value)
            self._attributes += (name, -1, len(self._literals) - 1, 0)

    def _duplicate(self, value: int, node: int) -> None:
        name = self.value_names[value]
        self.findings.append(
            Finding(
                "graph.duplicate_output", "error",
                f"Value {name[:200]!r} is made by more than one node.", f"node g{self.index}.n{node}",
            )
        )  # fmt: skip


def _ints(items: Sequence[int]) -> Ints:
    return np.array(items, np.int32)


def _scatter(items: Mapping[int, int], count: int) -> Ints:
    column = np.full(count, -1, np.int32)
    if items:
        column[np.fromiter(items.keys(), np.int64, len(items))] = np.fromiter(items.values(), np.int64, len(items))
    return column


def _consumers(inputs: Ints, offsets: Ints, values: int) -> tuple[Ints, Ints]:
    nodes = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    used = inputs >= 0
    taken, by = inputs[used], nodes[used]
    order = np.argsort(taken, kind="stable")
    counts = np.bincount(taken, minlength=values).astype(np.int32)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), by[order].astype(np.int32)


def element_type(tensor: Tensor) -> DType:
    """The ``DType`` of a tensor's decoded elements."""
    return dtype_of(tensor.dtype)
