"""Layers for a layered layout: cycles cut, nodes ranked, long edges given a place in every layer.

After Sugiyama, Tagawa and Toda (1981). Long edges from one source share their places, so a value
that many take is one line that branches.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_DUMMIES_A_NODE: Final = 12
_DUMMIES: Final = 4000


@dataclass(slots=True)
class Layered:
    """Vertices 0 to ``real`` - 1 are nodes, the others places of long edges.

    Attributes:
        layer: layer of each vertex; ``rows`` the vertices of each layer, left to right.
        up, down: neighbours in the layer before and after.
        routes: for each edge its vertices from top to bottom; empty where it runs in a lane.
        reversed_edges: numbers of the edges that run against the direction of the layers.
    """

    real: int
    layer: list[int]
    rows: list[list[int]]
    up: list[list[int]]
    down: list[list[int]]
    routes: list[list[int]]
    reversed_edges: set[int]


def layered(count: int, edges: Sequence[tuple[int, int]]) -> Layered:
    """Rank ``count`` nodes so that every edge but those that close a cycle goes down."""
    position = _order(count, edges)
    against = {number for number, (a, b) in enumerate(edges) if position[a] > position[b]}
    down = [(b, a) if number in against else (a, b) for number, (a, b) in enumerate(edges)]
    layer = _ranks(count, down, position)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node in sorted(range(count), key=position.__getitem__):
        rows[layer[node]].append(node)
    shape = Layered(count, layer, rows, [[] for _ in range(count)], [[] for _ in range(count)], [], against)
    _route(shape, down)
    return shape


def _order(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Place of each node in a topological order that keeps the given one; cycles are cut."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for a, b in edges:
        after[a].append(b)
        waiting[b] += 1
    ready = [node for node in range(count) if waiting[node] == 0]
    position, done, cut = [-1] * count, 0, 0
    while done < count:
        if not ready:
            while position[cut] >= 0:
                cut += 1
            ready.append(cut)
        node = heapq.heappop(ready)
        if position[node] >= 0:
            continue
        position[node] = done
        done += 1
        for other in after[node]:
            waiting[other] -= 1
            if waiting[other] == 0 and position[other] < 0:
                heapq.heappush(ready, other)
    return position


def _ranks(count: int, edges: Sequence[tuple[int, int]], position: Sequence[int]) -> list[int]:
    """Longest way from a source; what has nothing above it moves down to its first user."""
    after: list[list[int]] = [[] for _ in range(count)]
    sources = [True] * count
    for a, b in edges:
        after[a].append(b)
        sources[b] = False
    layer = [0] * count
    order = sorted(range(count), key=position.__getitem__)
    for node in order:
        for other in after[node]:
            layer[other] = max(layer[other], layer[node] + 1)
    for node in order:
        if sources[node] and after[node]:
            layer[node] = min(layer[other] for other in after[node]) - 1
    least = min(layer, default=0)
    return [rank - least for rank in layer]


def _route(shape: Layered, edges: Sequence[tuple[int, int]]) -> None:
    """Give each edge its vertices; where there would be too many, the longest go in lanes."""
    last: dict[int, int] = {}
    for a, b in edges:
        last[a] = max(last.get(a, 0), shape.layer[b])
    lengths = sorted(((bottom - shape.layer[a] - 1, a) for a, bottom in last.items()))
    room = _DUMMIES + _DUMMIES_A_NODE * shape.real
    lanes: set[int] = set()
    for length, a in lengths:
        room -= max(length, 0)
        if room < 0 and length > 0:
            lanes.add(a)
    chains: dict[int, list[int]] = {}
    joined: set[tuple[int, int]] = set()
    for a, b in edges:
        span = shape.layer[b] - shape.layer[a]
        if a in lanes and span > 1:
            shape.routes.append([])
            continue
        chain = chains.setdefault(a, [a])
        while len(chain) < span:
            chain.append(_place(shape, chain[-1]))
        if (chain[span - 1], b) not in joined:
            joined.add((chain[span - 1], b))
            shape.down[chain[span - 1]].append(b)
            shape.up[b].append(chain[span - 1])
        shape.routes.append([*chain[:span], b])


def _place(shape: Layered, above: int) -> int:
    vertex = len(shape.layer)
    rank = shape.layer[above] + 1
    shape.layer.append(rank)
    shape.rows[rank].append(vertex)
    shape.up.append([above])
    shape.down.append([])
    shape.down[above].append(vertex)
    return vertex
