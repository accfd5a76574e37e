"""Where a view stands: a whole graph, a region, or a slice of one in topological order."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from core.errors import NotFound
from core.ir import Graph, Model
from core.structure.edits import RegionEdit
from core.structure.modes import MODES, Mode, region_tree
from core.structure.regions import RegionTree

Edits = tuple[RegionEdit, ...]

_SLICE: Final = re.compile(r"c(\d{1,9})-(\d{1,9})")
_NODE: Final = re.compile(r"g(\d{1,9})\.n(\d{1,9})")
_GRAPH: Final = re.compile(r"g(\d{1,9})")
_REGION: Final = re.compile(r"r(\d{1,9})\.[0-9a-f]{12}")
_NESTED_SLICES: Final = 16


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the way from the whole model to here; ``id`` is what ``inside`` takes."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class Place:
    """A part of one graph.

    Attributes:
        region: index in ``tree``, -1 for the whole graph.
        low, high: positions in topological order that an item may begin at, end included.
        sliced: whether ``low`` and ``high`` leave something out.
        branches: graphs to choose from where the place is a node that holds several.
        crumbs: the way here, the whole model first.
    """

    graph: Graph
    tree: RegionTree
    id: str
    crumbs: tuple[Crumb, ...]
    region: int = -1
    low: int = 0
    high: int = 1 << 40
    sliced: bool = False
    branches: tuple[int, ...] = ()
    node: int = -1


def inner_graphs(model: Model, graph: Graph, node: int) -> tuple[int, ...]:
    """Graphs that a node holds or calls: its subgraphs, else the function of its name."""
    held = graph.subgraphs.get(node, ())
    if held:
        return tuple(held)
    c = graph.columns
    wanted = (c.strings[int(c.op_type[node])], c.strings[int(c.domain[node])])
    return functions(model).get(wanted, ())


def functions(model: Model) -> dict[tuple[str, str], tuple[int, ...]]:
    """Function graphs by operator type and domain; the first of equal ones."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for graph in model.graphs:
        if graph.kind == "function":
            found.setdefault((graph.name, graph.domain), (graph.index,))
    return found


def node_numbers(text: str) -> tuple[int, int] | None:
    """Graph and node numbers of an id such as ``g0.n12``; ``None`` where it is none."""
    match = _NODE.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def locate(model: Model, main: Graph, inside: str | None, mode: Mode, edits: Edits = ()) -> Place:
    """Find what ``inside`` names: nothing (the whole model), a graph, a node, a region, slices.

    Raises:
        NotFound: if nothing in this model has this id.
    """
    if not inside:
        return _whole(model, main, main, mode, edits)
    base, *slices = inside.split("~")
    place = _base(model, main, base, mode, edits)
    if place is None or len(slices) > _NESTED_SLICES:
        raise NotFound(f"nothing to enter is called {inside[:80]!r}", path=model.path)
    for text in slices:
        match = _SLICE.fullmatch(text)
        if match is None:
            raise NotFound(f"{text[:40]!r} is no range of operators", path=model.path)
        low, high, name = int(match[1]), int(match[2]), f"{place.id}~{text}"
        crumb = Crumb(name, f"{low + 1:,}–{high + 1:,}")
        place = replace(place, low=max(low, place.low), high=min(high, place.high), sliced=True, id=name,
                        crumbs=(*place.crumbs, crumb))  # fmt: skip
    return place


def _base(model: Model, main: Graph, text: str, mode: Mode, edits: Edits) -> Place | None:
    if match := _GRAPH.fullmatch(text):
        graph = _graph(model, int(match[1]))
        return graph and _whole(model, main, graph, mode, edits)
    if numbers := node_numbers(text):
        graph = _graph(model, numbers[0])
        return graph and _node(model, main, graph, numbers[1], mode, edits)
    if match := _REGION.fullmatch(text):
        graph = _graph(model, int(match[1]))
        return graph and _region(model, main, graph, text, mode, edits)
    return None


def _graph(model: Model, index: int) -> Graph | None:
    return model.graphs[index] if index < len(model.graphs) else None


def _whole(model: Model, main: Graph, graph: Graph, mode: Mode, edits: Edits) -> Place:
    return Place(graph, region_tree(model, graph, mode, edits), f"g{graph.index}", _way(model, main, graph))


def _node(model: Model, main: Graph, graph: Graph, node: int, mode: Mode, edits: Edits) -> Place | None:
    if node >= graph.node_count:
        return None
    inner = inner_graphs(model, graph, node)
    if len(inner) == 1:
        return _whole(model, main, model.graphs[inner[0]], mode, edits)
    crumb = Crumb(f"g{graph.index}.n{node}", _node_label(graph, node))
    whole = _whole(model, main, graph, mode, edits)
    return replace(whole, id=crumb.id, crumbs=(*whole.crumbs, crumb), branches=inner, node=node) if inner else None


def _region(model: Model, main: Graph, graph: Graph, text: str, mode: Mode, edits: Edits) -> Place | None:
    for other in (mode, *MODES):
        tree = region_tree(model, graph, other, edits)
        at = tree.index.get(text)
        if at is not None:
            way, above = list[Crumb](), at
            while above >= 0:
                way.append(Crumb(tree.regions[above].id, tree.regions[above].label))
                above = tree.regions[above].parent
            return Place(graph, tree, text, (*_way(model, main, graph), *reversed(way)), region=at)
    return None


def _way(model: Model, main: Graph, graph: Graph) -> tuple[Crumb, ...]:
    """From the main graph through the nodes that hold the graphs in between."""
    steps: list[Crumb] = []
    seen: set[int] = set()
    while graph.index != main.index and graph.index not in seen:
        seen.add(graph.index)
        if graph.parent is None:
            steps.append(Crumb(f"g{graph.index}", graph.name or f"graph {graph.index}"))
            break
        above, node, name = graph.parent
        steps.append(Crumb(f"g{graph.index}", name or graph.name or f"graph {graph.index}"))
        if not 0 <= above < len(model.graphs):
            break
        graph = model.graphs[above]
        if 0 <= node < graph.node_count and len(inner_graphs(model, graph, node)) > 1:
            steps.append(Crumb(f"g{graph.index}.n{node}", _node_label(graph, node)))
    return (Crumb(f"g{main.index}", model.name), *reversed(steps))


def _node_label(graph: Graph, node: int) -> str:
    c = graph.columns
    return c.node_names[node] or c.strings[int(c.op_type[node])]
