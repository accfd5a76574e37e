"""Horizontal places: each vertex as near to its neighbours as the order in its layer allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.structure.layers import Layered

_PASSES: Final = 6
_TRUNK: Final = 1e4
"""Weight of the middle for a node that has its layer to itself: without it long graphs drift sideways."""
_STRAIGHT: Final = 8.0
"""Weight of a place on a long edge against that of a node, so that long edges run straight."""


def place(shape: Layered, widths: Sequence[float], gap: float) -> list[float]:
    """Centre of each vertex along its layer, the leftmost border at 0.

    Args:
        widths: of all vertices.
        gap: free room between two neighbours.
    """
    x = [0.0] * len(shape.layer)
    for row in shape.rows:
        total = sum(widths[v] + gap for v in row) - gap
        at = -total / 2
        for v in row:
            x[v] = at + widths[v] / 2
            at += widths[v] + gap
    for number in range(_PASSES):
        downward = number % 2 == 0
        near = shape.up if downward else shape.down
        for row in shape.rows if downward else reversed(shape.rows):
            _settle(shape, row, near, x, widths, gap)
    left = min((x[v] - widths[v] / 2 for row in shape.rows for v in row[:1]), default=0.0)
    return [value - left for value in x]


def _nearest(shape: Layered, others: Sequence[int]) -> Sequence[int]:
    """The nodes among the neighbours, where there are any: a long line beside a chain does not bend it."""
    nodes = [other for other in others if other < shape.real]
    return nodes or others


def _settle(
    shape: Layered, row: Sequence[int], near: Sequence[Sequence[int]], x: list[float], widths: Sequence[float],
    gap: float,
) -> None:  # fmt: skip
    """Move a layer towards its neighbours: least squares under the order, by pooling neighbours.

    With ``offset`` the room needed from the first vertex on, wanted places minus offsets must not
    decrease: isotonic regression (Ayer et al. 1955) solves that exactly.
    """
    pools: list[tuple[float, float, int]] = []  # place of the pool, its weight, its vertices
    offsets: list[float] = []
    offset, before = 0.0, -1
    alone = sum(v < shape.real for v in row) == 1
    for v in row:
        if before >= 0:
            offset += (widths[before] + widths[v]) / 2 + gap
        before = v
        offsets.append(offset)
        others = near[v] if v >= shape.real else _nearest(shape, near[v])
        wanted = sum(x[o] for o in others) / len(others) if others else x[v]
        weight = 0.1 if not others else _STRAIGHT if v >= shape.real else 1.0
        if alone and v < shape.real:
            wanted, weight = 0.0, _TRUNK
        pools.append((wanted - offset, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, wa, na), (b, wb, nb) = pools[-2], pools[-1]
            pools[-2:] = [((a * wa + b * wb) / (wa + wb), wa + wb, na + nb)]
    at = 0
    for value, _, many in pools:
        for i in range(at, at + many):
            x[row[i]] = value + offsets[i]
        at += many
