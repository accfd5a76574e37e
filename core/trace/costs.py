"""What operators did in a run: multiplications, bytes moved, and how both go with the time they took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core.dtypes import DTYPES
from core.ir import Model, Node
from core.structure.modes import region_tree
from core.structure.wiring import CONVOLUTION
from core.trace.answers.reading import Reading

NO_BLOCK: Final = "outside of blocks"
_MATRIX: Final = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul", "FusedMatMul", "Gemm", "QGemm", "FusedGemm"})
_WEIGHT: Final = {"QLinearConv": 3}
_SECOND: Final = {"QLinearMatMul": 3, "QGemm": 3}


@dataclass(frozen=True, slots=True)
class Cost:
    """One operator.

    Attributes:
        macs: multiply-accumulate operations by its shapes in this run, ``None`` where its kind has no such count.
        nbytes: of everything it took and made, each once.
    """

    macs: int | None
    nbytes: int


@dataclass(frozen=True, slots=True)
class Block:
    """Operators that belong together; ``region`` is the region's id, empty for those in none."""

    label: str
    region: str
    nodes: tuple[str, ...]


def costs(run: Reading) -> dict[str, Cost]:
    """The cost of every operator whose inputs and outputs are known, by node id; reads no elements.

    A convolution takes output elements times weights of one output channel, a matrix product output
    elements times the length that is summed over; both from the shapes of the run.
    """
    found: dict[str, Cost] = {}
    for value in run.values:
        node = run.node(value)
        if node is not None and value.node not in found:
            shapes = {index: _shape(run, node, index) for index in (*node.inputs, *node.outputs) if index >= 0}
            sizes = [_nbytes(run, node, index, shape) for index, shape in shapes.items() if shape is not None]
            if len(sizes) == len(shapes):
                found[value.node] = Cost(_macs(node, shapes), sum(sizes))
    return found


def blocks(model: Model) -> list[Block]:
    """The operators of the main graph by the block that they are in, in order; the innermost of level block."""
    graph = model.main_graph
    if graph is None:
        return []
    tree = region_tree(model, graph)
    members: dict[int, list[str]] = {}
    for node in range(graph.node_count):
        at = int(tree.home[node])
        outermost = at
        while at >= 0 and tree.regions[at].level != "block":
            outermost, at = at, tree.regions[at].parent
        members.setdefault(at if at >= 0 else outermost, []).append(f"g{graph.index}.n{node}")
    return [
        Block(NO_BLOCK if at < 0 else tree.regions[at].label, "" if at < 0 else tree.regions[at].id, tuple(nodes))
        for at, nodes in members.items()
    ]


def _macs(node: Node, shapes: Mapping[int, tuple[int, ...] | None]) -> int | None:
    made, first = shapes[node.outputs[0]], shapes.get(node.inputs[0]) if node.inputs else None
    if made is None or first is None or len(node.inputs) < 2:
        return None
    if node.op_type in CONVOLUTION:
        weight = shapes.get(node.inputs[min(_WEIGHT.get(node.op_type, 1), len(node.inputs) - 1)])
        if weight is None or len(weight) < 3:
            return None
        places = first if node.op_type == "ConvTranspose" else made
        return math.prod(places) * math.prod(weight[1:])
    if node.op_type not in _MATRIX or not first:
        return None
    second = shapes.get(node.inputs[min(_SECOND.get(node.op_type, 1), len(node.inputs) - 1)])
    if second is None or math.prod(made) == 0:
        return None
    if "Gemm" in node.op_type:  # [M, K] by [K, N], either one transposed
        return math.prod(made) * (math.prod(first) // max(1, made[0]))
    return math.prod(made) * first[-1]


def _shape(run: Reading, node: Node, index: int) -> tuple[int, ...] | None:
    traced = run.traced(node.graph, index)
    if traced is not None:
        return traced.shape if traced.stats is not None else None
    tensor = run.model.graphs[node.graph].value(index).tensor
    return run.model.tensors[tensor].shape if tensor >= 0 else None


def _nbytes(run: Reading, node: Node, index: int, shape: tuple[int, ...]) -> int:
    traced = run.traced(node.graph, index)
    tensor = run.model.graphs[node.graph].value(index).tensor
    name = traced.dtype if traced is not None else run.model.tensors[tensor].dtype
    dtype = DTYPES.get(name)
    return 0 if dtype is None else dtype.nbytes(math.prod(shape))
