"""Where to draw boxes and lines: layers from top to bottom, long lines beside the boxes.

Lines cross a layer straight down at a place of their own and turn only between layers, so no line
runs through a box that it does not begin or end at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from core.structure.coordinates import place
from core.structure.layers import Layered, layered
from core.structure.ordering import untangle
from core.structure.view import GraphView

GAP_X: Final = 24.0
GAP_Y: Final = 48.0
LINE: Final = 10.0
"""Width of the place a line has in a layer."""
_SAME: Final = 0.01
"""Pixels below which two places are one."""

Point = tuple[float, float]
Size = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; ``x`` and ``y`` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes in the order of the nodes, a line of points for each edge, and the size of all.

    Attributes:
        key: hash of what was laid out; equal structures have equal keys.
    """

    boxes: tuple[Box, ...]
    lines: tuple[tuple[Point, ...], ...]
    width: float
    height: float
    key: str


def layout(sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> Layout:
    """Lay out boxes of these widths and heights; edges are pairs of places in ``sizes``.

    The last few results are kept: the same input gives the same object.
    """
    return _layout(tuple(sizes), tuple(edges))


def layout_view(view: GraphView) -> Layout:
    """Lay out a view, box sizes estimated from the labels."""
    places = {node.id: number for number, node in enumerate(view.nodes)}
    sizes = [box_size(node.label, node.kind == "region") for node in view.nodes]
    return layout(sizes, [(places[edge.source], places[edge.target]) for edge in view.edges])


def box_size(label: str, region: bool) -> Size:
    """Width and height of a box with this label, in pixels at zoom 1."""
    return min(max(7.0 * len(label) + 28.0, 72.0), 260.0), 44.0 if region else 32.0


@lru_cache(maxsize=32)
def _layout(sizes: tuple[Size, ...], edges: tuple[tuple[int, int], ...]) -> Layout:
    kept = [(a, b) for a, b in edges if a != b]
    shape = layered(len(sizes), kept)
    untangle(shape)
    widths = [size[0] for size in sizes] + [LINE] * (len(shape.layer) - len(sizes))
    x = place(shape, widths, GAP_X)
    tops, bottoms = _bands(shape, sizes)
    boxes = tuple(
        Box(x[v] - width / 2, tops[shape.layer[v]] + (bottoms[shape.layer[v]] - tops[shape.layer[v]] - height) / 2,
            width, height)
        for v, (width, height) in enumerate(sizes)
    )  # fmt: skip
    right = max((x[v] + widths[v] / 2 for row in shape.rows for v in row[-1:]), default=0.0)
    lines, right = _lines(shape, kept, x, boxes, tops, bottoms, right)
    each = iter(lines)
    whole = tuple(next(each) if a != b else () for a, b in edges)
    key = hashlib.blake2b(repr((sizes, edges)).encode(), digest_size=8).hexdigest()
    return Layout(boxes, whole, right, bottoms[-1] if bottoms else 0.0, key)


def _bands(shape: Layered, sizes: Sequence[Size]) -> tuple[list[float], list[float]]:
    """Top and bottom of each layer."""
    tops: list[float] = []
    bottoms: list[float] = []
    at = 0.0
    for row in shape.rows:
        tops.append(at)
        at += max((sizes[v][1] for v in row if v < shape.real), default=0.0)
        bottoms.append(at)
        at += GAP_Y
    return tops, bottoms


def _lines(
    shape: Layered, edges: Sequence[tuple[int, int]], x: Sequence[float], boxes: Sequence[Box],
    tops: Sequence[float], bottoms: Sequence[float], right: float,
) -> tuple[list[tuple[Point, ...]], float]:  # fmt: skip
    lines: list[tuple[Point, ...]] = []
    lanes: dict[int, float] = {}
    trunks: dict[int, _Trunk] = {}
    for number, (route, edge) in enumerate(zip(shape.routes, edges, strict=True)):
        a, b = edge[::-1] if number in shape.reversed_edges else edge
        if a not in trunks:
            start = boxes[a]
            trunks[a] = _Trunk([(x[a], start.y + start.height), (x[a], bottoms[shape.layer[a]])])
        trunk = trunks[a]
        for v in route[trunk.length : -1]:
            trunk.grow((x[v], tops[shape.layer[v]]), (x[v], bottoms[shape.layer[v]]))
        points = trunk.until(max(len(route) - 1, 1))
        if not route:
            if a not in lanes:
                right += LINE + GAP_X / 2
                lanes[a] = right
            points += _lane(lanes[a], x[a], x[b], bottoms[shape.layer[a]], tops[shape.layer[b]])
        points += [(x[b], tops[shape.layer[b]]), (x[b], boxes[b].y)]
        points = _tidy(points)
        lines.append(tuple(points[::-1] if number in shape.reversed_edges else points))
    return lines, right


class _Trunk:
    """The way that all long lines of one box share, kept without points that change nothing."""

    def __init__(self, start: Sequence[Point]) -> None:
        self._points = _tidy(start)
        self._marks = [(len(self._points), self._points[-1])]

    @property
    def length(self) -> int:
        """Vertices it goes through so far, its box included."""
        return len(self._marks)

    def grow(self, *points: Point) -> None:
        """Go on through one more layer."""
        for point in points:
            _append(self._points, point)
        self._marks.append((len(self._points), self._points[-1]))

    def until(self, length: int) -> list[Point]:
        """The points through the first ``length`` vertices."""
        count, last = self._marks[length - 1]
        return [*self._points[: count - 1], last]


def _lane(lane: float, start: float, stop: float, below: float, above: float) -> list[Point]:
    """Out to a lane beside everything between two layers, and back in."""
    out, back = below + GAP_Y / 3, above - GAP_Y / 3
    return [(start, out), (lane, out), (lane, back), (stop, back)]


def _tidy(points: Sequence[Point]) -> list[Point]:
    """Without points that change nothing: repeated ones and those on a straight line down."""
    kept: list[Point] = []
    for point in points:
        _append(kept, point)
    return kept


def _append(kept: list[Point], point: Point) -> None:
    if kept and kept[-1] == point:
        return
    if len(kept) > 1 and abs(kept[-2][0] - point[0]) < _SAME and abs(kept[-1][0] - point[0]) < _SAME:
        kept[-1] = (kept[-2][0], point[1])
    else:
        kept.append(point)
