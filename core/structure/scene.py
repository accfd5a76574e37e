"""A view with places for all its boxes and lines, made once, and as columns for a canvas."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import UNKNOWN_CODE, dtype_at
from core.errors import UsageError
from core.ir import Graph, Model
from core.structure.categories import CATEGORIES
from core.structure.focus import focus_of, focused
from core.structure.folding import draw
from core.structure.frames import Group, frames
from core.structure.layout import Layout, box_size, layout, text_width
from core.structure.modes import MODES, Mode
from core.structure.picture import ViewEdge, ViewNode
from core.structure.place import Edits, Place, locate, node_numbers
from core.structure.regions import LEVELS, Level
from core.structure.trail import Step, trail
from core.structure.view import LIMIT, GraphView, graph_view

MOST: Final = 1000
"""Boxes of a view that folds; more cannot be told apart."""
_KINDS: Final = ("operator", "region", "input", "output")
_ASPECT: Final = 1.5


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """What to draw of a model; equal options give equal scenes.

    Attributes:
        level: how far regions are opened, as far as ``limit`` allows.
        inside: id of the place, empty for the whole model.
        everything: every operator of the place as its own box, however many there are.
        hidden: ids of boxes to leave out.
        focus: a part of the graph, as ``Focus.text`` writes it, empty for all of it.
        wrap: width by height to come near to by columns, 0 for one column.
    """

    level: Level = "layer"
    inside: str = ""
    mode: Mode = "auto"
    everything: bool = False
    hide_constants: bool = True
    hide_shapes: bool = False
    hidden: tuple[str, ...] = ()
    focus: str = ""
    limit: int = LIMIT
    wrap: float = _ASPECT


@dataclass(frozen=True)
class Scene:
    """What to draw and where.

    Attributes:
        layout: boxes in the order of ``view.nodes``, lines in the order of ``view.edges``.
        groups: frames of opened regions that hold no box of others.
        trail: the way here, each step with what lies beside it.
        key: equal keys are equal pictures.
    """

    view: GraphView
    layout: Layout
    groups: tuple[Group, ...]
    trail: tuple[Step, ...]
    subtitles: tuple[str, ...]
    edge_texts: tuple[str, ...]
    key: str

    @cached_property
    def stems(self) -> tuple[tuple[int, int], ...]:
        """For each line the one it branches off and how many points it shares with it, (-1, 0) alone."""
        return _stems(self.view.edges, self.layout)

    def columns(self) -> dict[str, object]:
        """Lists of numbers and texts; texts are of the file, to be drawn as text only."""
        nodes, boxes = self.view.nodes, self.layout.boxes
        places = {node.id: number for number, node in enumerate(nodes)}
        px, py, start, stem = list[int](), list[int](), [0], list[int]()
        for line, (other, shared) in zip(self.layout.lines, self.stems, strict=True):
            for x, y in line[max(shared - 1, 0) :]:
                px.append(round(x))
                py.append(round(y))
            start.append(len(px))
            stem.append(other)
        return {
            "key": self.key, "width": round(self.layout.width), "height": round(self.layout.height),
            "id": [node.id for node in nodes], "label": [node.label for node in nodes], "sub": list(self.subtitles),
            "kind": [_KINDS.index(node.kind) for node in nodes],
            "category": [CATEGORIES.index(node.category) for node in nodes], "categories": list(CATEGORIES),
            "x": [round(box.x) for box in boxes], "y": [round(box.y) for box in boxes],
            "w": [round(box.width) for box in boxes], "h": [round(box.height) for box in boxes],
            "count": [node.count for node in nodes], "enter": [int(node.enterable) for node in nodes],
            "source": [places[edge.source] for edge in self.view.edges],
            "target": [places[edge.target] for edge in self.view.edges],
            "text": list(self.edge_texts), "value": [edge.values[0] if edge.values else "" for edge in self.view.edges],
            "start": start, "px": px, "py": py, "stem": stem,
            "groups": [[g.id, g.label, round(g.x), round(g.y), round(g.width), round(g.height), g.depth]
                       for g in self.groups],
        }  # fmt: skip


def scene(model: Model, options: ViewOptions, edits: Edits = ()) -> Scene:
    """Choose, place and describe what ``options`` ask for; reads nothing from disk.

    Raises:
        NotFound: if the place, a box to focus on or a graph is not there.
        UsageError: if level, mode, limit or focus make no sense.
    """
    _check(options)
    main = model.main_graph
    if main is None:
        view = graph_view(model, level=options.level, inside=options.inside or None, limit=options.limit)
        return _placed(model, view, (), trail(model, None, view.breadcrumbs), options)
    place, level, only = _where(model, main, options, edits)
    limit = max(place.graph.node_count, 1) * 10 + 100 if options.everything else options.limit
    picture = draw(
        model, place, level="operator" if options.everything else level, limit=limit,
        hide_constants=options.hide_constants, hide_shapes=options.hide_shapes, only=only,
    )  # fmt: skip
    nodes, edges = _without(picture.nodes, picture.edges, options.hidden)
    view = GraphView(nodes, edges, place.crumbs, options.level, place.id, picture.folded,
                     picture.hidden + len(picture.nodes) - len(nodes), options.mode)  # fmt: skip
    return _placed(model, view, (place,), trail(model, place, place.crumbs), options)


def _check(options: ViewOptions) -> None:
    if options.level not in LEVELS:
        raise UsageError(f"no level is called {options.level!r}", hint=f"There are {', '.join(LEVELS)}.")
    if options.mode not in MODES:
        raise UsageError(f"no mode is called {options.mode!r}", hint=f"There are {', '.join(MODES)}.")
    if not 8 <= options.limit <= MOST:
        raise UsageError(f"a view of {options.limit} boxes cannot be drawn", hint=f"Allow 8 to {MOST:,}.")


def _where(
    model: Model, main: Graph, options: ViewOptions, edits: Edits
) -> tuple[Place, Level, NDArray[np.bool_] | None]:
    """The place, the level and the operators to draw; a focus in another graph takes its place there."""
    if not options.focus:
        return locate(model, main, options.inside, options.mode, edits), options.level, None
    focus = focus_of(options.focus)
    graph, only = focused(model, focus, options.mode, edits)
    place = locate(model, main, options.inside, options.mode, edits)
    inside = np.ones(graph.node_count, np.bool_)
    if place.graph.index == graph.index and place.region >= 0:
        inside = np.zeros(graph.node_count, np.bool_)
        inside[place.tree.regions[place.region].members] = True
    if place.graph.index != graph.index or place.sliced or place.branches or not (only & inside).any():
        place = locate(model, main, f"g{graph.index}", options.mode, edits)
    return place, options.level if focus.kind in ("up", "down") else "operator", only


def _without(
    nodes: tuple[ViewNode, ...], edges: tuple[ViewEdge, ...], hidden: tuple[str, ...]
) -> tuple[tuple[ViewNode, ...], tuple[ViewEdge, ...]]:
    if not hidden:
        return nodes, edges
    gone = frozenset(hidden)
    kept = tuple(edge for edge in edges if edge.source not in gone and edge.target not in gone)
    return tuple(node for node in nodes if node.id not in gone), kept


# --- placing and describing -------------------------------------------------------------


def _placed(
    model: Model, view: GraphView, places: tuple[Place, ...], way: tuple[Step, ...], options: ViewOptions
) -> Scene:
    subtitles = tuple(_subtitle(model, node) for node in view.nodes)
    sizes = [
        (max(box_size(node.label, bool(sub))[0], min(text_width(sub) * 0.85 + 28.0, 260.0)), 44.0 if sub else 32.0)
        for node, sub in zip(view.nodes, subtitles, strict=True)
    ]
    numbers = {node.id: number for number, node in enumerate(view.nodes)}
    drawn = layout(sizes, [(numbers[edge.source], numbers[edge.target]) for edge in view.edges], options.wrap)
    groups = frames(places[0], view.nodes, drawn) if places else ()
    texts = tuple(_edge_text(model, edge) for edge in view.edges)
    parts = (drawn.key, *(f"{node.id}\0{node.label}" for node in view.nodes), *subtitles, *texts,
             *(group.id for group in groups))  # fmt: skip
    key = hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=10).hexdigest()
    return Scene(view, drawn, groups, way, subtitles, texts, key)


def _subtitle(model: Model, node: ViewNode) -> str:
    """The second line of a box: how much a region holds, the type of an input or output."""
    if node.kind == "region":
        unit = "tensor" if node.members and node.members[0].startswith("t") else "op"
        return f"{node.count:,} {unit}{'' if node.count == 1 else 's'}"
    if node.kind in ("input", "output"):
        numbers = node_numbers(node.id.partition(".")[2].replace(".v", ".n"))
        return type_text(model.graphs[numbers[0]], numbers[1]) if numbers is not None else ""
    return ""


def _edge_text(model: Model, edge: ViewEdge) -> str:
    if len(edge.values) != 1:
        return f"{len(edge.values):,} values" if edge.values else ""
    numbers = node_numbers(edge.values[0].replace(".v", ".n"))
    return type_text(model.graphs[numbers[0]], numbers[1]) if numbers is not None else ""


def type_text(graph: Graph, value: int) -> str:
    """Type and shape of a value such as ``float32 1×3×H``, empty where the file does not say."""
    c = graph.columns
    code = int(c.dtype[value])
    dtype = c.type_texts.get(value, "") if code == UNKNOWN_CODE else dtype_at(code).name
    shape = graph.shape(value)
    if not shape:
        return dtype
    return f"{dtype} {'×'.join('?' if size is None else str(size) for size in shape[:8])}".strip()


def _stems(edges: tuple[ViewEdge, ...], drawn: Layout) -> tuple[tuple[int, int], ...]:
    """Lines of one box share their way up to where they part: each continues the shorter one before."""
    by_source: dict[str, list[int]] = {}
    for number, edge in enumerate(edges):
        if len(drawn.lines[number]) > 2:
            by_source.setdefault(edge.source, []).append(number)
    stems = [(-1, 0)] * len(edges)
    for numbers in by_source.values():
        numbers.sort(key=lambda number: len(drawn.lines[number]))
        for before, number in pairwise(numbers):
            one, other = drawn.lines[before], drawn.lines[number]
            shared = 0
            while shared < len(one) and one[shared] == other[shared]:
                shared += 1
            if shared > 1:
                stems[number] = (before, shared)
    return tuple(stems)
