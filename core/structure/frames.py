"""Frames around the boxes of an opened region, where they enclose nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.structure.layout import Layout
from core.structure.picture import ViewNode
from core.structure.place import Place, node_numbers

PADDING: Final = 10.0
_MOST: Final = 400


@dataclass(frozen=True, slots=True)
class Group:
    """A frame: ``id`` is the region's, ``depth`` 0 for the outermost."""

    id: str
    label: str
    x: float
    y: float
    width: float
    height: float
    depth: int
    count: int


def frames(place: Place, nodes: Sequence[ViewNode], drawn: Layout) -> tuple[Group, ...]:
    """Frames of regions whose parts are drawn, outer ones first; those that would mislead are left out."""
    held = _held(place, nodes)
    if not held:
        return ()
    x0 = np.array([box.x for box in drawn.boxes])
    y0 = np.array([box.y for box in drawn.boxes])
    x1 = x0 + np.array([box.width for box in drawn.boxes])
    y1 = y0 + np.array([box.height for box in drawn.boxes])
    found: list[Group] = []
    depths: dict[int, int] = {}
    for region in sorted(held)[:_MOST]:
        boxes = np.array(held[region])
        frame = (x0[boxes].min(), y0[boxes].min(), x1[boxes].max(), y1[boxes].max())
        if len(boxes) < 2 or _foreign(frame, (x0, y0, x1, y1), boxes):
            continue
        parent = place.tree.regions[region].parent
        depths[region] = depths.get(parent, -1) + 1
        left, top, right, bottom = (float(side) for side in frame)
        entry = place.tree.regions[region]
        found.append(Group(entry.id, entry.label, left - PADDING, top - PADDING, right - left + 2 * PADDING,
                           bottom - top + 2 * PADDING, depths[region], len(boxes)))  # fmt: skip
    return tuple(found)


def _held(place: Place, nodes: Sequence[ViewNode]) -> dict[int, list[int]]:
    """Boxes inside each region that is opened here."""
    tree, held = place.tree, dict[int, list[int]]()
    for number, node in enumerate(nodes):
        if node.kind == "operator":
            numbers = node_numbers(node.id)
            at = int(tree.home[numbers[1]]) if numbers is not None else -1
        elif node.id in tree.index:
            at = tree.regions[tree.index[node.id]].parent
        else:
            continue
        while at not in (-1, place.region):
            held.setdefault(at, []).append(number)
            at = tree.regions[at].parent
    return held


def _foreign(
    frame: tuple[float, float, float, float], boxes: tuple[NDArray[np.float64], ...], own: NDArray[np.int64]
) -> bool:
    x0, y0, x1, y1 = boxes
    inside = (x1 > frame[0]) & (x0 < frame[2]) & (y1 > frame[1]) & (y0 < frame[3])
    inside[own] = False
    return bool(inside.any())
