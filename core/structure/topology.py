"""Who feeds whom in one graph, as arrays, and an order to walk it in."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.ir import Graph, Ints, Model
from core.structure.memory import remembered


@dataclass(frozen=True)
class Topology:
    """Edges between nodes, one row a use of a value.

    Attributes:
        source, target: node indexes, ``value`` the value id on the edge; ordered by source.
        offsets: rows of node i lie in ``offsets[i] <= row < offsets[i + 1]``.
        back: row numbers ordered by target; those of node i lie in
            ``back[back_offsets[i]:back_offsets[i + 1]]``.
        order: every node once, producers first wherever there is no cycle, else file order.
        position: place of a node in ``order``.
        cyclic: whether some edge goes backwards in ``order``.
        free_target, free_value: uses of values that no node makes and no tensor holds: graph
            inputs, captures of subgraphs, and what a damaged file left dangling.
    """

    count: int
    source: Ints
    target: Ints
    value: Ints
    offsets: Ints
    back: Ints
    back_offsets: Ints
    order: Ints
    position: Ints
    cyclic: bool
    free_target: Ints
    free_value: Ints

    def successors(self, node: int) -> list[int]:
        """Nodes that take something from ``node``, one entry a use."""
        return self.target[self.offsets[node] : self.offsets[node + 1]].tolist()

    def predecessors(self, node: int) -> list[int]:
        """Nodes that ``node`` takes something from, one entry a use."""
        return self.source[self.back[self.back_offsets[node] : self.back_offsets[node + 1]]].tolist()


def topology(model: Model, graph: Graph) -> Topology:
    """The edges of ``graph``; what a subgraph captures counts as taken by the node that holds it."""
    return remembered(graph, "topology", lambda: _build(model, graph))


def rows_of(offsets: Ints) -> Ints:
    """The row number of each entry of a flat column with these offsets."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def _build(model: Model, graph: Graph) -> Topology:
    c, count = graph.columns, graph.node_count
    users = rows_of(c.input_offsets)
    used = c.inputs >= 0
    takers, values = users[used], c.inputs[used]
    extra_takers, extra_values = _captures(model, graph)
    takers, values = np.concatenate([takers, extra_takers]), np.concatenate([values, extra_values])
    makers = c.producer[values] if values.size else np.zeros(0, np.int32)
    free = (makers < 0) & (c.tensor[values] < 0)
    real = (makers >= 0) & (makers != takers)
    source, target, value = makers[real], takers[real], values[real]
    by_source = np.lexsort((target, source))
    source, target, value = source[by_source], target[by_source], value[by_source]
    back = np.argsort(target, kind="stable").astype(np.int32)
    offsets, back_offsets = _starts(source, count), _starts(target, count)
    order = np.arange(count, dtype=np.int32)
    if np.any(source > target):
        order = _sorted(count, offsets, target, np.bincount(target, minlength=count))
    position = np.empty(count, np.int32)
    position[order] = np.arange(count, dtype=np.int32)
    cyclic = bool(np.any(position[source] > position[target]))
    return Topology(count, source, target, value, offsets, back, back_offsets, order, position, cyclic,
                    takers[free], values[free])  # fmt: skip


def _starts(rows: Ints, count: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int32)


def _captures(model: Model, graph: Graph) -> tuple[Ints, Ints]:
    """Nodes of ``graph`` and the values that subgraphs inside them take from ``graph``."""
    takers: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    values: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    for inner in model.graphs:
        taken = np.unique(inner.columns.captured_value[inner.columns.captured_graph == graph.index])
        taken = taken[(taken >= 0) & (taken < graph.value_count)]
        holder = _holder(model, inner, graph.index) if taken.size else -1
        if 0 <= holder < graph.node_count:
            takers.append(np.full(taken.size, holder, np.int32))
            values.append(taken.astype(np.int32))
    return np.concatenate(takers), np.concatenate(values)


def _holder(model: Model, inner: Graph, outer: int) -> int:
    """The node of graph ``outer`` inside which ``inner`` lies, -1 where it does not."""
    for _ in range(len(model.graphs)):
        if inner.parent is None:
            return -1
        above, node, _name = inner.parent
        if above == outer:
            return node
        inner = model.graphs[above]
    return -1


def _sorted(count: int, offsets: Ints, target: Ints, waiting: NDArray[np.intp]) -> Ints:
    """Producers first, else file order; a cycle is cut at its first node in file order."""
    after, starts, left = target.tolist(), offsets.tolist(), waiting.tolist()
    ready = [node for node in range(count) if left[node] == 0]
    done, order, cut = bytearray(count), list[int](), 0
    while len(order) < count:
        if not ready:
            while done[cut]:
                cut += 1
            ready.append(cut)
        node = heapq.heappop(ready)
        if done[node]:
            continue
        done[node] = 1
        order.append(node)
        for row in range(starts[node], starts[node + 1]):
            follower = after[row]
            left[follower] -= 1
            if left[follower] == 0 and not done[follower]:
                heapq.heappush(ready, follower)
    return np.array(order, np.int32)
