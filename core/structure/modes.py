"""The ways to group one graph into regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

from core.ir import Graph, Model
from core.structure.architecture import auto, patterns, repeats, structural
from core.structure.edits import RegionEdit, edited
from core.structure.memory import remembered
from core.structure.regions import RegionTree
from core.structure.scopes import scope_tree
from core.structure.wiring import Wiring, wiring

Mode = Literal["auto", "scopes", "repeated", "patterns", "structural"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_EDITED: Final = 4
"""Edited trees that are kept for a graph and a mode."""
_FROM_WIRING: Final[dict[str, Callable[[Wiring], RegionTree]]] = {
    "repeated": repeats, "patterns": patterns, "structural": structural,
}  # fmt: skip


def region_tree(model: Model, graph: Graph, mode: Mode = "auto", edits: tuple[RegionEdit, ...] = ()) -> RegionTree:
    """The regions of ``graph`` in this mode; made once a graph.

    ``auto`` uses all of them, ``scopes`` what the author named, ``repeated`` equal blocks in a row,
    ``patterns`` layers by their operators, ``structural`` single-entry single-exit regions. What a
    person edited is applied on top.
    """
    found = remembered(graph, ("regions", mode), lambda: _tree(model, graph, mode))
    if not edits:
        return found
    kept = remembered(graph, ("edited regions", mode), dict[tuple[RegionEdit, ...], RegionTree])
    tree = kept.get(edits)
    if tree is None:
        tree = edited(found, edits)
        if len(kept) >= _EDITED:
            kept.clear()
        kept[edits] = tree
    return tree


def _tree(model: Model, graph: Graph, mode: Mode) -> RegionTree:
    if mode == "scopes":
        return scope_tree(model, graph)
    if mode == "auto":
        return auto(wiring(model, graph), scope_tree(model, graph))
    return _FROM_WIRING[mode](wiring(model, graph))
