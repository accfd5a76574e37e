"""One picture of a graph: at most so many nodes, the rest folded into regions that can be entered."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import UsageError
from core.ir import Model
from core.structure.folding import draw
from core.structure.modes import Mode
from core.structure.picture import ViewEdge, ViewNode
from core.structure.place import Crumb, locate
from core.structure.regions import LEVELS, Level
from core.structure.tree import module_nodes

LIMIT = 150
"""Nodes of a view that streamlit-agraph draws in good time."""


@dataclass(frozen=True, slots=True)
class GraphView:
    """What to draw and where it stands.

    Attributes:
        breadcrumbs: the way from the whole model to here.
        inside: id of this place.
        folded: whether something that the level asks for was left folded to stay in the limit.
        hidden: operators left out because they are constants (or shape arithmetic).
    """

    nodes: tuple[ViewNode, ...]
    edges: tuple[ViewEdge, ...]
    breadcrumbs: tuple[Crumb, ...]
    level: Level
    inside: str
    folded: bool
    hidden: int = 0
    mode: Mode = "auto"

    def to_json(self) -> dict[str, object]:
        """Plain values for the command line; ids, labels and values as in the file."""
        return {
            "level": self.level,
            "inside": self.inside,
            "folded": self.folded,
            "hidden": self.hidden,
            "breadcrumbs": [{"id": crumb.id, "label": crumb.label} for crumb in self.breadcrumbs],
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [
                {"source": edge.source, "target": edge.target, "values": list(edge.values)} for edge in self.edges
            ],
        }


def graph_view(
    model: Model,
    *,
    level: Level = "layer",
    inside: str | None = None,
    limit: int = LIMIT,
    hide_constants: bool = True,
    hide_shapes: bool = False,
    mode: Mode = "auto",
) -> GraphView:
    """Choose what to draw of ``model``; reads nothing from disk.

    Args:
        level: how far regions are opened, as far as the limit allows.
        inside: id of a region, a graph (``g1``), a node that holds graphs (``g0.n5``) or a range.
        limit: most nodes of the view, at least 8.
        hide_constants: leave ``Constant`` nodes out.
        hide_shapes: leave out what only computes shapes.

    Raises:
        NotFound: if ``inside`` names nothing in this model.
        UsageError: if the level or the limit makes no sense.
    """
    if level not in LEVELS:
        raise UsageError(f"no level is called {level!r}", hint=f"There are {', '.join(LEVELS)}.")
    if limit < 8:
        raise UsageError(f"a view of {limit} nodes is too small", hint="Allow 8 or more.")
    main = model.main_graph
    if main is None:
        return _modules(model, level, inside, limit)
    place = locate(model, main, inside, mode)
    picture = draw(model, place, level=level, limit=limit, hide_constants=hide_constants, hide_shapes=hide_shapes)
    return GraphView(
        picture.nodes, picture.edges, place.crumbs, level, place.id, picture.folded, picture.hidden, mode
    )  # fmt: skip


def _modules(model: Model, level: Level, inside: str | None, limit: int) -> GraphView:
    nodes, crumbs, folded = module_nodes(model, inside or "", limit)
    return GraphView(nodes, (), crumbs, level, inside or "", folded)


__all__ = ["LIMIT", "Crumb", "GraphView", "ViewEdge", "ViewNode", "graph_view"]
