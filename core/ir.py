"""The model as data: frozen types linked by ids, and graphs held as columns.

A graph of 50,000 operators is a few numpy arrays; ``graph.node(i)`` and ``graph.value(i)`` make
a frozen dataclass on demand. Code over all nodes works on ``graph.columns``.
Damaged files are models too: what is missing is ``None`` or -1 and a ``Finding`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.dtypes import UNKNOWN_CODE, dtype_at, dtype_of
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

    def close(self) -> None:
        """Give all file descriptors back; a later read opens them again."""
        for source in self.sources:
            source.close()
