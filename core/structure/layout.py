"""Where to draw boxes and lines: layers from top to bottom, long lines beside the boxes.

Lines cross a layer straight down at a place of their own and turn only between layers, so no line
runs through a box that it does not begin or end at.
"""

from __future__ import annotations

import hashlib
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from core.structure.coordinates import place
from core.structure.layers import Layered, layered
from core.structure.ordering import untangle
from core.structure.view import GraphView
from core.structure.wrapping import STEP, Columns, choose_breaks, wrap

GAP_X: Final = 24.0
GAP_Y: Final = 48.0
LINE: Final = 10.0
"""Width of the place a line has in a layer."""
_NARROW: Final = frozenset("iljtfr.,:;'|!/()[]- ")
_WIDE: Final = frozenset("mwMW@%")
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


def layout(sizes: Sequence[Size], edges: Sequence[tuple[int, int]], aspect: float = 0.0) -> Layout:
    """Lay out boxes of these widths and heights; edges are pairs of places in ``sizes``.

    The last few results are kept: the same input gives the same object.

    Args:
        aspect: width by height to come near to by putting layers into columns; 0 for one column.
    """
    return _layout(tuple(sizes), tuple(edges), aspect)


def layout_view(view: GraphView, aspect: float = 0.0) -> Layout:
    """Lay out a view, box sizes estimated from the labels."""
    places = {node.id: number for number, node in enumerate(view.nodes)}
    sizes = [box_size(node.label, node.kind == "region") for node in view.nodes]
    return layout(sizes, [(places[edge.source], places[edge.target]) for edge in view.edges], aspect)


def box_size(label: str, tall: bool) -> Size:
    """Width and height of a box with this label, in pixels at zoom 1; ``tall`` ones have a second line."""
    return min(max(text_width(label[:60]) + 28.0, 72.0), 260.0), 44.0 if tall else 32.0


def text_width(text: str) -> float:
    """Pixels that a text takes at 13 pixels a letter, estimated: no font is at hand here."""
    if text.isascii():
        return sum(4.0 if c in _NARROW else 11.0 if c in _WIDE else 8.6 if c.isupper() else 7.0 for c in text)
    return sum(13.0 if unicodedata.east_asian_width(c) in "WF" else 7.6 for c in text)


@lru_cache(maxsize=32)
def _layout(sizes: tuple[Size, ...], edges: tuple[tuple[int, int], ...], aspect: float) -> Layout:
    kept = [(a, b) for a, b in edges if a != b]
    shape = layered(len(sizes), kept)
    untangle(shape)
    widths = [size[0] for size in sizes] + [LINE] * (len(shape.layer) - len(sizes))
    x = place(shape, widths, GAP_X)
    tops, bottoms = _bands(shape, sizes)
    starts = choose_breaks(shape, x, widths, bottoms, aspect) if shape.rows else [0]
    columns = wrap(shape, starts, x, widths, tops, bottoms, _lane_counts(shape, kept, starts)) if shape.rows else None
    boxes = tuple(
        Box(x[v] - width / 2, tops[shape.layer[v]] + (bottoms[shape.layer[v]] - tops[shape.layer[v]] - height) / 2,
            width, height)
        for v, (width, height) in enumerate(sizes)
    )  # fmt: skip
    key = hashlib.blake2b(repr((sizes, edges, aspect)).encode(), digest_size=8).hexdigest()
    if columns is None:
        return Layout(boxes, tuple(() for _ in edges), 0.0, 0.0, key)
    lines = _Lines(shape, x, boxes, tops, bottoms, columns).all(kept)
    each = iter(lines)
    whole = tuple(next(each) if a != b else () for a, b in edges)
    right = max((point[0] for line in lines for point in line), default=0.0)
    low = max((point[1] for line in lines for point in line), default=0.0)
    return Layout(boxes, whole, max(right, *columns.right), max(low, *columns.bottom), key)


def _lane_counts(shape: Layered, edges: Sequence[tuple[int, int]], starts: Sequence[int]) -> list[int]:
    """How many boxes send lines into the channel right of each column."""
    users: list[set[int]] = [set() for _ in starts]
    for number, (route, edge) in enumerate(zip(shape.routes, edges, strict=True)):
        if not route:
            a = edge[1] if number in shape.reversed_edges else edge[0]
            for end in edge:
                users[bisect_right(starts, shape.layer[end]) - 1].add(a)
    return [len(found) for found in users]


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


@dataclass(slots=True)
class _Lines:
    """Draws every edge as points from box to box."""

    shape: Layered
    x: Sequence[float]
    boxes: Sequence[Box]
    tops: Sequence[float]
    bottoms: Sequence[float]
    columns: Columns
    trunks: dict[int, _Trunk] = field(default_factory=dict[int, "_Trunk"])
    lanes: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])

    def all(self, edges: Sequence[tuple[int, int]]) -> list[tuple[Point, ...]]:
        """The points of each edge, from its source to its target."""
        lines: list[tuple[Point, ...]] = []
        for number, (route, edge) in enumerate(zip(self.shape.routes, edges, strict=True)):
            turned = number in self.shape.reversed_edges
            a, b = edge[::-1] if turned else edge
            points = self._line(a, b, route)
            lines.append(tuple(points[::-1] if turned else points))
        return lines

    def _line(self, a: int, b: int, route: Sequence[int]) -> list[Point]:
        x, tops, bottoms, layer = self.x, self.tops, self.bottoms, self.shape.layer
        trunk = self.trunks.get(a)
        if trunk is None:
            start = self.boxes[a]
            trunk = self.trunks[a] = _Trunk([(x[a], start.y + start.height), (x[a], bottoms[layer[a]])])
        for step in range(trunk.length, len(route) - 1):
            v = route[step]
            trunk.grow(*self._between(route[step - 1], v), (x[v], tops[layer[v]]), (x[v], bottoms[layer[v]]))
        points = trunk.until(max(len(route) - 1, 1))
        points += self._lane(a, b) if not route else self._between(route[-2], b)
        return _tidy([*points, (x[b], tops[layer[b]]), (x[b], self.boxes[b].y)])

    def _between(self, u: int, v: int) -> list[Point]:
        """The turn into the next column where ``u`` ends one."""
        of, layer = self.columns.of, self.shape.layer
        return [] if of[layer[u]] == of[layer[v]] else self.columns.turn(u, self.x[u], self.x[v])

    def _lane(self, a: int, b: int) -> list[Point]:
        """Out to a lane beside the column, where needed on below everything to another, and back in."""
        layer, x = self.shape.layer, self.x
        out, back = self.bottoms[layer[a]] + GAP_Y / 3, self.tops[layer[b]] - GAP_Y / 3
        first, last = self.columns.of[layer[a]], self.columns.of[layer[b]]
        near, far = self._free(a, first), self._free(a, last)
        if first == last:
            return [(x[a], out), (near, out), (near, back), (x[b], back)]
        below = self.columns.below + near % 97 / 4
        return [(x[a], out), (near, out), (near, below), (far, below), (far, back), (x[b], back)]

    def _free(self, a: int, column: int) -> float:
        if (a, column) not in self.lanes:
            self.columns.channels[column] += 2 * STEP
            self.lanes[a, column] = self.columns.channels[column]
        return self.lanes[a, column]


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
