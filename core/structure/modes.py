"""The ways to group one graph into regions."""

from __future__ import annotations

from typing import Final, Literal, get_args

from core.ir import Graph, Model
from core.structure.regions import RegionTree
from core.structure.scopes import scope_tree

Mode = Literal["auto", "scopes"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


def region_tree(model: Model, graph: Graph, mode: Mode = "auto") -> RegionTree:
    """The regions of ``graph`` in this mode; made once a graph."""
    del mode
    return scope_tree(model, graph)
