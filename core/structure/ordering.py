"""Fewer crossings: sweeps that sort each layer by where its neighbours are."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import Final

from core.structure.layers import Layered

_SWEEPS: Final = 8
_COUNTED: Final = 6000
"""Edges up to which crossings are counted, to keep the best order seen."""


def untangle(shape: Layered) -> None:
    """Reorder ``shape.rows``; bounded work, the same result for the same input."""
    if all(len(row) < 2 for row in shape.rows):
        return
    counted = sum(len(below) for below in shape.down) <= _COUNTED
    best = [list(row) for row in shape.rows]
    least = crossings(shape) if counted else -1
    place = _places(shape)
    for sweep in range(_SWEEPS if counted else _SWEEPS // 2):
        downward = sweep % 2 == 0
        rows = shape.rows if downward else list(reversed(shape.rows))
        near = shape.up if downward else shape.down
        for row in rows[1:]:
            if len(row) > 1:
                _sort(row, near, place)
        if counted:
            now = crossings(shape)
            if now < least:
                least, best = now, [list(row) for row in shape.rows]
            if now == 0:
                break
    if counted:
        shape.rows[:] = best


def crossings(shape: Layered) -> int:
    """How many pairs of lines between neighbouring layers cross."""
    place = _places(shape)
    total = 0
    for row in shape.rows:
        seen: list[int] = []
        for vertex in row:
            ends = sorted(place[other] for other in shape.down[vertex])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _places(shape: Layered) -> list[int]:
    place = [0] * len(shape.layer)
    for row in shape.rows:
        for number, vertex in enumerate(row):
            place[vertex] = number
    return place


def _sort(row: list[int], near: Sequence[Sequence[int]], place: list[int]) -> None:
    """By the mean place of the neighbours; what has none stays where it is."""
    keys: dict[int, float] = {}
    for vertex in row:
        others = near[vertex]
        if others:
            keys[vertex] = sum(place[other] for other in others) / len(others)
    movable = iter(sorted(keys, key=lambda vertex: (keys[vertex], place[vertex])))
    row[:] = [next(movable) if vertex in keys else vertex for vertex in row]
    for number, vertex in enumerate(row):
        place[vertex] = number
