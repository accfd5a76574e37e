"""Fixed places for the boxes of a small graph: layers from top to bottom, in columns where they are many.

The steps are those of Sugiyama, Tagawa and Toda (1981): break cycles, assign layers by longest
path, order layers by barycentres with dummies for long edges, and spread what overlaps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LANE_WIDTH: Final = 24
"""Room that an edge passing through a layer takes."""

COLUMN_GAP: Final = 56
SWEEPS: Final = 6


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes, and how many columns the layers were cut into.

    Attributes:
        lane: for edges over more than one layer, on which side of the straight line they pass
            (-1 left, 1 right) and over how many layers.
        far: edges from one column into another.
    """

    places: dict[str, tuple[int, int]]
    columns: int
    lane: dict[tuple[str, str], tuple[int, int]]
    far: frozenset[tuple[str, str]]


def layered(
    nodes: Sequence[str],
    edges: Sequence[tuple[str, str]],
    *,
    box_width: int,
    layer_height: int,
    aspect: float = 1.4,
) -> Layout:
    """Place ``nodes`` so that edges point downwards; ``aspect`` is the width by height to fill."""
    known = set(nodes)
    forward = _acyclic(nodes, [(a, b) for a, b in edges if a in known and b in known and a != b])
    layer = _layers(nodes, forward)
    rows, links = _with_lanes(nodes, forward, layer)
    _order(rows, links)
    x = _spread(rows, links, dict.fromkeys(nodes, box_width / 2))
    columns = _columns(layer, x, box_width, aspect * layer_height)
    tall = max(1, -(-len(rows) // columns))
    shift = _shifts(layer, x, tall, box_width)
    places = {n: (round(x[n] + shift[layer[n] // tall]), layer_height * (layer[n] % tall)) for n in nodes}
    far = frozenset((a, b) for a, b in edges if a in known and b in known and layer[a] // tall != layer[b] // tall)
    return Layout(places, columns, _lanes(forward, layer, x, tall), far)


def _acyclic(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The edges with those turned round that would close a cycle."""
    following: dict[str, list[str]] = defaultdict(list)
    for a, b in dict.fromkeys(edges):
        following[a].append(b)
    state: dict[str, int] = {}
    forward: list[tuple[str, str]] = []
    for root in nodes:
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(following[root]))]
        while stack:
            node, rest = stack[-1]
            for target in rest:
                if state.get(target) == 1:
                    forward.append((target, node))
                    continue
                forward.append((node, target))
                if target not in state:
                    state[target] = 1
                    stack.append((target, iter(following[target])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return list(dict.fromkeys(forward))


def _layers(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Longest path from a source; sources move down to just above their first consumer."""
    below: dict[str, list[str]] = defaultdict(list)
    waiting: dict[str, int] = dict.fromkeys(nodes, 0)
    for a, b in edges:
        below[a].append(b)
        waiting[b] += 1
    sources = [n for n in nodes if not waiting[n]]
    layer = dict.fromkeys(nodes, 0)
    ready = list(sources)
    while ready:
        node = ready.pop()
        for target in below[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for node in sources:
        if below[node]:
            layer[node] = max(0, min(layer[target] for target in below[node]) - 1)
    return layer


def _with_lanes(
    nodes: Sequence[str], edges: Sequence[tuple[str, str]], layer: dict[str, int]
) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """Rows of boxes and dummies, and the links between neighbouring rows."""
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node in nodes:
        rows[layer[node]].append(node)
    links: list[tuple[str, str]] = []
    for number, (a, b) in enumerate(edges):
        last = a
        for at in range(layer[a] + 1, layer[b]):
            lane = f"\0{number}.{at}"
            rows[at].append(lane)
            links.append((last, lane))
            last = lane
        links.append((last, b))
    return rows, links


def _order(rows: list[list[str]], links: Sequence[tuple[str, str]]) -> None:
    above, below = _neighbours(links)
    for sweep in range(SWEEPS):
        near, order = (above, rows[1:]) if sweep % 2 == 0 else (below, rows[-2::-1])
        place = {node: at for row in rows for at, node in enumerate(row)}
        for row in order:
            key = {
                node: sum(place[other] for other in near[node]) / len(near[node]) if near[node] else place[node]
                for node in row
            }
            row.sort(key=key.__getitem__)
            place.update({node: at for at, node in enumerate(row)})


def _spread(
    rows: Sequence[Sequence[str]], links: Sequence[tuple[str, str]], boxes: dict[str, float]
) -> dict[str, float]:
    """Centres from left to right: near their neighbours, never closer than they are wide."""
    above, below = _neighbours(links)
    half = {node: boxes.get(node, LANE_WIDTH / 2) for row in rows for node in row}
    x: dict[str, float] = {}
    for row in rows:
        at = -sum(half[node] for node in row)
        for node in row:
            x[node] = at + half[node]
            at += 2 * half[node]
    for sweep in range(2 * SWEEPS):
        near, order = (above, rows) if sweep % 2 == 0 else (below, list(reversed(rows)))
        for row in order:
            wanted = [sum(x[o] for o in near[n]) / len(near[n]) if near[n] else x[n] for n in row]
            right = _pushed(row, wanted, half)
            left = [-v for v in reversed(_pushed(row[::-1], [-w for w in reversed(wanted)], half))]
            x.update({node: (a + b) / 2 for node, a, b in zip(row, right, left, strict=True)})
    return x


def _pushed(row: Sequence[str], wanted: Sequence[float], half: dict[str, float]) -> list[float]:
    """Every place at least its neighbour's plus their widths, going right."""
    places: list[float] = []
    for at, node in enumerate(row):
        least = places[-1] + half[row[at - 1]] + half[node] if places else wanted[at]
        places.append(max(wanted[at], least))
    return places


def _neighbours(links: Sequence[tuple[str, str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = defaultdict(list)
    below: dict[str, list[str]] = defaultdict(list)
    for a, b in links:
        below[a].append(b)
        above[b].append(a)
    return above, below


def _columns(layer: dict[str, int], x: dict[str, float], box_width: int, share: float) -> int:
    """How many columns come nearest to ``share`` of width for each layer; short graphs keep one."""
    depth = max(layer.values(), default=0) + 1

    def distance(columns: int) -> float:
        tall = -(-depth // columns)
        shift = _shifts(layer, x, tall, box_width)
        wide = max((x[n] + shift[layer[n] // tall] for n in layer), default=0) + box_width
        ratio = wide / (tall * share)
        return max(ratio, 1 / ratio)

    return min(range(1, max(2, depth // 5)), key=distance)


def _shifts(layer: dict[str, int], x: dict[str, float], tall: int, box_width: int) -> dict[int, float]:
    """What to add to the places of each column so that it begins where the one before ends."""
    edges: dict[int, tuple[float, float]] = {}
    for node, at in layer.items():
        low, high = edges.get(at // tall, (x[node], x[node]))
        edges[at // tall] = min(low, x[node]), max(high, x[node])
    shifts: dict[int, float] = {}
    start = 0.0
    for column in sorted(edges):
        low, high = edges[column]
        shifts[column] = start - low
        start += high - low + box_width + COLUMN_GAP
    return shifts


def _lanes(
    edges: Sequence[tuple[str, str]], layer: dict[str, int], x: dict[str, float], tall: int
) -> dict[tuple[str, str], tuple[int, int]]:
    lane: dict[tuple[str, str], tuple[int, int]] = {}
    for number, (a, b) in enumerate(edges):
        span = layer[b] - layer[a]
        if span > 1 and layer[a] // tall == layer[b] // tall:
            passing = [x[f"\0{number}.{at}"] for at in range(layer[a] + 1, layer[b])]
            straight = (x[a] + x[b]) / 2
            lane[a, b] = (-1 if sum(passing) / len(passing) < straight else 1, span)
    return lane
