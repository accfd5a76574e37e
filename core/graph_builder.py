"""Collecting a graph row by row and freezing it into the columns of ``core.ir``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from core.dtypes import CODES, UNKNOWN_CODE
from core.ir import (
    Attribute,
    AttributeValue,
    Dim,
    EncodedAttribute,
    Finding,
    Graph,
    GraphColumns,
    GraphKind,
    Ints,
    Longs,
)


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
