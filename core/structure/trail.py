"""Breadcrumbs with what lies beside each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ir import Model
from core.structure.place import Crumb, Place

SIBLINGS: Final = 60


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way from the whole model to here.

    Attributes:
        id: what ``inside`` takes.
        siblings: ids and labels of the regions (or graphs) beside it, itself included, at most 60
            around it.
    """

    id: str
    label: str
    siblings: tuple[tuple[str, str], ...]


def trail(model: Model, place: Place | None, crumbs: Sequence[Crumb]) -> tuple[Step, ...]:
    """The steps with their siblings."""
    return tuple(Step(crumb.id, crumb.label, _siblings(model, place, crumb)) for crumb in crumbs)


def _siblings(model: Model, place: Place | None, crumb: Crumb) -> tuple[tuple[str, str], ...]:
    if place is None:
        return ()
    tree = place.tree
    at = tree.index.get(crumb.id, -1)
    if at >= 0:
        rows = tree.children[tree.regions[at].parent]
        entries = [(tree.regions[row].id, tree.regions[row].label) for row in rows]
    else:
        own = next((graph for graph in model.graphs if f"g{graph.index}" == crumb.id), None)
        if own is None or own.parent is None:
            return ()
        beside = [graph for graph in model.graphs if graph.parent and graph.parent[:2] == own.parent[:2]]
        entries = [(f"g{graph.index}", graph.parent[2] if graph.parent else graph.name) for graph in beside]
    here = next((number for number, entry in enumerate(entries) if entry[0] == crumb.id), 0)
    low = max(0, min(here - SIBLINGS // 2, len(entries) - SIBLINGS))
    return tuple(entries[low : low + SIBLINGS])
