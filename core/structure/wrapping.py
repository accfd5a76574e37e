"""Columns side by side where a graph has many layers, and the way of a line from one column to the next.

A line leaves a column below its last layer, goes up in the channel between two columns and enters
the next one from above, so it meets no box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.structure.layers import Layered

TALL: Final = 1200.0
"""Pixels of height that need no second column."""
_LEAST: Final = 8
"""Layers of a column at least."""
_MOST: Final = 400
STEP: Final = 6.0
"""Pixels between two lines side by side in a channel."""
MARGIN: Final = 26.0
COLUMN_GAP: Final = 40.0

Point = tuple[float, float]


@dataclass(slots=True)
class Columns:
    """Where each layer went.

    Attributes:
        of: column of each layer; ``starts`` the first layer of each column.
        right: border of the boxes and long lines of each column; ``bottom`` the lowest of each.
        turns: where the line of a vertex that ends a column runs: below the column, in the channel, above the next.
        channels: the last taken place right of each column.
        below: under everything, for lines from one column to a far one.
    """

    of: list[int]
    starts: list[int]
    right: list[float]
    bottom: list[float]
    turns: dict[int, tuple[float, float, float]]
    channels: list[float]
    below: float = 0.0

    def turn(self, vertex: int, x: float, to: float) -> list[Point]:
        """Points between a vertex that ends a column, at ``x``, and the first layer of the next, at ``to``."""
        low, channel, high = self.turns[vertex]
        return [(x, low), (channel, low), (channel, high), (to, high)]


def choose_breaks(shape: Layered, x: Sequence[float], widths: Sequence[float], bottoms: Sequence[float],
                  aspect: float) -> list[int]:  # fmt: skip
    """First layers of the columns that come nearest to ``aspect`` (width by height), ``[0]`` for one column."""
    depth = len(shape.rows)
    if aspect <= 0 or depth < 2 * _LEAST or bottoms[-1] <= TALL:
        return [0]
    left = np.array([min((x[v] - widths[v] / 2 for v in row), default=0.0) for row in shape.rows])
    right = np.array([max((x[v] + widths[v] / 2 for v in row), default=0.0) for row in shape.rows])
    lines = np.array([sum(1 for v in row if shape.down[v]) for row in shape.rows])
    best, chosen = float("inf"), [0]
    for count in _counts(depth):
        starts = _starts(count, bottoms, lines)
        if len(starts) < 2:
            continue
        spans = np.maximum.reduceat(right, starts) - np.minimum.reduceat(left, starts)
        wide = float(spans.sum() + (COLUMN_GAP + MARGIN) * len(starts) + STEP * lines[np.array(starts[1:]) - 1].sum())
        tops = np.array([0.0, *(bottoms[s - 1] for s in starts[1:])])
        tall = float((np.array([*(bottoms[s - 1] for s in starts[1:]), bottoms[-1]]) - tops).max())
        share = wide / tall / aspect
        off = max(share, 1 / share)
        if off < best:
            best, chosen = off, starts
    alone = (float(right.max() - left.min()) + 1) / bottoms[-1] / aspect
    return chosen if best < max(alone, 1 / alone) else [0]


def _counts(depth: int) -> list[int]:
    most = min(_MOST, depth // _LEAST)
    return sorted({min(most, max(2, round(1.12**power))) for power in range(60)})


def _starts(count: int, bottoms: Sequence[float], lines: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    """Cut into ``count`` parts of about one height, each cut where fewest lines cross nearby."""
    places = np.searchsorted(np.asarray(bottoms), bottoms[-1] * np.arange(1, count) / count)
    reach = max(1, len(bottoms) // count // 6)
    starts = [0]
    for place in places.tolist():
        low, high = max(place - reach, starts[-1] + _LEAST // 2), min(place + reach, len(bottoms) - 2)
        if low <= high:
            starts.append(low + int(np.argmin(lines[low - 1 : high])))
    return starts


def wrap(
    shape: Layered, starts: Sequence[int], x: list[float], widths: Sequence[float], tops: list[float],
    bottoms: list[float], lanes: Sequence[int],
) -> Columns:  # fmt: skip
    """Move layers into their columns: changes ``x``, ``tops`` and ``bottoms`` in place.

    Args:
        lanes: how many long lines run beside each column.
    """
    stops = [*starts[1:], len(shape.rows)]
    of = [number for number, (a, b) in enumerate(zip(starts, stops, strict=True)) for _ in range(b - a)]
    crossing = [[v for v in shape.rows[b - 1] if shape.down[v]] for b in stops[:-1]] + [[]]
    head = MARGIN + STEP * max(len(row) for row in crossing) if len(starts) > 1 else 0.0
    columns = Columns(of, list(starts), [], [], {}, [])
    at = 0.0
    for number, (a, b) in enumerate(zip(starts, stops, strict=True)):
        vertices = [v for row in shape.rows[a:b] for v in row]
        left = min((x[v] - widths[v] / 2 for v in vertices), default=0.0)
        right = max((x[v] + widths[v] / 2 for v in vertices), default=0.0)
        for v in vertices:
            x[v] += at - left
        first = tops[a]
        for layer in range(a, b):
            tops[layer] += head - first
            bottoms[layer] += head - first
        columns.right.append(at + right - left)
        columns.bottom.append(bottoms[b - 1])
        columns.channels.append(at + right - left + MARGIN)
        at += right - left + MARGIN + 2 * STEP * lanes[number] + STEP * len(crossing[number]) + COLUMN_GAP
    _turns(columns, crossing, x, lanes)
    columns.below = max(columns.bottom, default=0.0) + 2 * MARGIN + STEP * max(len(row) for row in crossing)
    return columns


def _turns(columns: Columns, crossing: Sequence[Sequence[int]], x: Sequence[float], lanes: Sequence[int]) -> None:
    """Nested turns: the leftmost line goes deepest and furthest out, so no two of them cross."""
    for number, row in enumerate(crossing):
        ordered = sorted(row, key=x.__getitem__, reverse=True)
        start = columns.channels[number] + 2 * STEP * (lanes[number] + 1)
        for place, vertex in enumerate(ordered):
            low = columns.bottom[number] + MARGIN / 2 + STEP * place
            high = MARGIN / 2 + STEP * (place if number + 1 < len(crossing) else 0)
            columns.turns[vertex] = (low, start + STEP * place, high)
