"""A graph as plain lists for pattern walks, with constants and shape arithmetic set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from core.ir import Graph, Ints, Model
from core.structure.categories import node_categories
from core.structure.memory import remembered
from core.structure.topology import topology


def names(text: str) -> frozenset[str]:
    """The words of a text, for sets of operator types."""
    return frozenset(text.split())


MATRIX: Final = names(
    "MatMul Gemm MatMulInteger QLinearMatMul QGemm Einsum FusedMatMul MatMulNBits FusedGemm MatMulIntegerToFloat"
    " DynamicQuantizeMatMul TransposeMatMul MatMulBnb4 MatMulFpQ4 GemmFastGelu FullyConnected Linear BatchMatMul"
    " linear addmm"
)
CONVOLUTION: Final = names(
    "Conv ConvTranspose ConvInteger QLinearConv FusedConv NhwcConv DeformConv NhwcFusedConv Conv2D DepthwiseConv2D"
)
RECURRENT: Final = names("LSTM GRU RNN DynamicQuantizeLSTM Scan Loop")
RESHAPING: Final = names(
    "Reshape Transpose Squeeze Unsqueeze Flatten Cast Identity Split Slice Gather Concat Expand CastLike"
)
QUANTIZING: Final = names("QuantizeLinear DequantizeLinear DynamicQuantizeLinear")
ACTIVATIONS: Final = names(
    "Relu LeakyRelu PRelu Sigmoid Tanh Gelu FastGelu QuickGelu BiasGelu Elu Selu Celu HardSigmoid HardSwish Softplus"
    " Softsign Mish Swish ThresholdedRelu Clip Erf QLinearSigmoid QLinearLeakyRelu Silu Exp"
)
NORMS: Final = names(
    "LayerNormalization SimplifiedLayerNormalization RMSNormalization BatchNormalization InstanceNormalization"
    " GroupNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization LpNormalization GroupNorm"
)
ELEMENTWISE: Final = names(
    "Add Sub Mul Div Pow Sqrt Exp Log Neg Abs Reciprocal Min Max Where QLinearAdd QLinearMul Cast Identity Dropout"
    " Floor Ceil Round Erf Clip"
)
_DATA: Final = {
    "MatMulInteger": (0, 1), "ConvInteger": (0, 1), "QLinearMatMul": (0, 3), "QLinearConv": (0, 3), "QGemm": (0, 3),
    "QLinearAdd": (0, 3), "QLinearMul": (0, 3), "DynamicQuantizeMatMul": (0, 1), "MatMulIntegerToFloat": (0, 1),
    "QuantizeLinear": (0,), "DequantizeLinear": (0,),
}  # fmt: skip
"""Inputs that carry data where others carry scales and zero points."""


@dataclass(frozen=True)
class Wiring:
    """Nodes and values of one graph by number.

    Attributes:
        ops: operator type of each node.
        takes, makes: value ids of each node; absent ones are left out.
        maker: node that makes each value, -1 where none does.
        users: nodes that take each value, each once, in file order.
        stored: whether a value is a tensor of the file.
        side: whether a node depends on no input but through shapes: constants, shape arithmetic.
        aside: whether a value is stored, made by a side node, or a scale computed while running.
        main: the values a node takes that are not aside: its data.
        order, position: topological.
        kinds: category of each node, an index into ``CATEGORIES``.
    """

    graph: Graph
    model: Model
    ops: list[str]
    takes: list[list[int]]
    makes: list[list[int]]
    maker: list[int]
    users: list[list[int]]
    stored: list[bool]
    side: list[bool]
    aside: list[bool]
    main: list[list[int]]
    order: list[int]
    position: list[int]
    kinds: Ints
    final: frozenset[int]

    def weighted(self, node: int) -> bool:
        """Whether exactly one main value meets stored numbers here, as in a layer with weights."""
        return len(self.main[node]) == 1 and len(self.takes[node]) > 1

    def next(self, node: int) -> list[int]:
        """Nodes that take what ``node`` makes."""
        return [user for value in self.makes[node] for user in self.users[value]]

    def before(self, node: int) -> list[int]:
        """Nodes that make the main values of ``node``."""
        return [self.maker[value] for value in self.main[node] if self.maker[value] >= 0]

    def exits(self, members: set[int]) -> set[int]:
        """Values made inside that are used outside or are outputs; scales and shapes do not count."""
        found: set[int] = set()
        for node in members:
            for value in self.makes[node]:
                if self.aside[value]:
                    continue
                if value in self.final or any(user not in members for user in self.users[value]):
                    found.add(value)
        return found

    def of(self, names: Iterable[str]) -> list[int]:
        """Nodes of these operator types that do main work, in topological order."""
        wanted = frozenset(names)
        return [node for node in self.order if self.ops[node] in wanted and not self.side[node]]


@dataclass(frozen=True, slots=True)
class Found:
    """A group of operators that a detector recognised.

    Attributes:
        core: members that must stay together for the group to be what it is.
    """

    detector: str
    label: str
    members: frozenset[int]
    confidence: float
    evidence: str
    core: frozenset[int] = field(default_factory=frozenset[int])


Detector = Callable[[Wiring], list[Found]]


def wiring(model: Model, graph: Graph) -> Wiring:
    """The lists of ``graph``; made once."""
    return remembered(graph, "wiring", lambda: _wire(model, graph))


def _wire(model: Model, graph: Graph) -> Wiring:
    c, flow = graph.columns, topology(model, graph)
    ops = [c.strings[code] for code in _ints(c.op_type)]
    takes, makes = _rows(c.inputs, c.input_offsets), _rows(c.outputs, c.output_offsets)
    for node in graph.subgraphs:
        takes[node] += [int(v) for v, t in zip(flow.value, flow.target, strict=True) if t == node]
    maker, stored = _ints(c.producer), [place >= 0 for place in _ints(c.tensor)]
    users: list[list[int]] = [[] for _ in maker]
    for node, values in enumerate(takes):
        for value in values:
            if not users[value] or users[value][-1] != node:
                users[value].append(node)
    side, aside = _side(ops, takes, makes, stored, _ints(flow.order), graph)
    main = [[value for value in values if not aside[value]] for values in takes]
    raw = _ints(c.inputs)
    for node, op in enumerate(ops):
        if op in _DATA:
            row = raw[c.input_offsets[node] : c.input_offsets[node + 1]]
            main[node] = [row[i] for i in _DATA[op] if i < len(row) and row[i] >= 0 and not aside[row[i]]]
    return Wiring(
        graph, model, ops, takes, makes, maker, users, stored, side, aside, main, _ints(flow.order),
        _ints(flow.position), node_categories(graph), frozenset(graph.outputs),
    )  # fmt: skip


def _ints(column: Ints) -> list[int]:
    return column.tolist()


def _rows(flat: Ints, offsets: Ints) -> list[list[int]]:
    values = _ints(flat)
    rows = [values[a:b] for a, b in pairwise(_ints(offsets))]
    return [[value for value in row if value >= 0] for row in rows] if np.any(flat < 0) else rows


def _side(
    ops: list[str], takes: list[list[int]], makes: list[list[int]], stored: list[bool], order: list[int], graph: Graph
) -> tuple[list[bool], list[bool]]:
    side, aside = [False] * len(ops), list(stored)
    for node in order:
        apart = ops[node] in ("Shape", "Size") or (
            node not in graph.subgraphs and all(aside[value] for value in takes[node])
        )
        side[node] = apart
        if apart:
            for value in makes[node]:
                aside[value] = True
        elif ops[node] == "DynamicQuantizeLinear":
            for value in makes[node][1:]:
                aside[value] = True
    return side, aside
