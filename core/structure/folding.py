"""Draw one place of a graph within a number of boxes: open regions level by level, then slice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.ir import Graph, Ints, Model
from core.structure.border import border
from core.structure.categories import CATEGORIES, Category, category, node_categories
from core.structure.hidden import constants, shape_arithmetic
from core.structure.picture import Picture, ViewEdge, ViewNode
from core.structure.place import Place, functions
from core.structure.regions import LEVELS, Level, RegionTree
from core.structure.topology import Topology, topology

_DIGITS: Final = re.compile(r"\d+")
_RANK: Final = {level: rank for rank, level in enumerate(LEVELS)}
_TELLING: Final = ("attention", "convolution", "recurrent", "matrix", "pooling", "normalisation", "quantization")


@dataclass(frozen=True, slots=True)
class Item:
    """One box to be: a node, a region (``region`` >= 0) or a slice (``slice_id``)."""

    members: Ints
    region: int = -1
    slice_id: str = ""
    label: str = ""
    visible: Ints | None = None


def draw(
    model: Model, place: Place, *, level: Level, limit: int, hide_constants: bool, hide_shapes: bool,
    only: NDArray[np.bool_] | None = None,
) -> Picture:  # fmt: skip
    """The boxes and lines of ``place``, at most ``limit`` boxes.

    Args:
        only: which operators of the graph to draw, all where left out.
    """
    graph, flow = place.graph, topology(model, place.graph)
    shown = np.ones(graph.node_count, np.bool_) if only is None else only.copy()
    if hide_constants:
        shown &= ~constants(graph)
    if hide_shapes:
        shown &= ~shape_arithmetic(model, graph)
    if place.branches:
        return _branches(model, place)
    most = max(1, limit // 10)  # boxes for inputs, as many for outputs
    room = limit - 2 * most
    items, folded = _items(place, flow, shown, level, room)
    box = np.full(graph.node_count, -1, np.int32)
    for number, item in enumerate(items):
        box[item.members] = number
    inside = int(np.count_nonzero(box >= 0))
    hidden = int(np.count_nonzero((box >= 0) & ~shown))
    box[~shown] = -1
    nodes = _nodes(model, place, items, shown)
    edges = _edges(graph, flow, box, [node.id for node in nodes])
    around, crossing = border(graph, flow, box, shown, [node.id for node in nodes], most, _whole(place))
    if not hidden and not place.sliced and place.region < 0:
        hidden = graph.node_count - inside + hidden
    return Picture((*nodes, *around), (*edges, *crossing), folded, hidden)


def draw_nodes(model: Model, graph: Graph, nodes: Sequence[int], *, limit: int, hide_constants: bool) -> Picture:
    """The boxes and lines of single operators, the first of them where there are too many."""
    flow, most = topology(model, graph), max(1, limit // 10)
    shown = ~constants(graph) if hide_constants else np.ones(graph.node_count, np.bool_)
    chosen = [node for node in nodes if shown[node]]
    kept = sorted(chosen[: limit - 2 * most], key=lambda node: int(flow.position[node]))
    box = np.full(graph.node_count, -1, np.int32)
    box[kept] = np.arange(len(kept), dtype=np.int32)
    items = [Item(np.array([node], np.int32)) for node in kept]
    place = Place(graph, RegionTree(graph.index, (), box), f"g{graph.index}", ())
    drawn = _nodes(model, place, items, shown)
    ids = [node.id for node in drawn]
    edges = _edges(graph, flow, box, ids)
    around, crossing = border(graph, flow, box, shown, ids, most, whole=False)
    return Picture((*drawn, *around), (*edges, *crossing), len(chosen) > len(kept), len(nodes) - len(chosen))


def _whole(place: Place) -> bool:
    return place.region < 0 and not place.sliced


# --- choosing the boxes -----------------------------------------------------------------


def _items(place: Place, flow: Topology, shown: NDArray[np.bool_], level: Level, room: int) -> tuple[list[Item], bool]:
    tree, folded = place.tree, False
    items = _within(place.tree, place.region, shown)
    if place.sliced:
        items = [item for item in items if place.low <= _first(flow, item) <= place.high]
    for rank in range(_RANK[level]):
        while not folded:
            opened = [item.region >= 0 and _RANK[tree.regions[item.region].level] <= rank for item in items]
            if not any(opened):
                break
            finer = _opened(tree, items, opened, shown)
            if len(finer) > room and len(items) > 1:
                items, folded = _partly(tree, items, opened, shown, room), True
            else:
                items = finer
    while len(items) == 1 and items[0].region >= 0:
        items = _opened(tree, items, [True], shown)
    items.sort(key=lambda item: _first(flow, item))
    if len(items) > room:
        return _slices(place, flow, items, room), True
    return items, folded


def _opened(tree: RegionTree, items: Sequence[Item], opened: Sequence[bool], shown: NDArray[np.bool_]) -> list[Item]:
    finer: list[Item] = []
    for item, is_open in zip(items, opened, strict=True):
        finer.extend(_within(tree, item.region, shown) if is_open else (item,))
    return finer


def _partly(
    tree: RegionTree, items: list[Item], opened: Sequence[bool], shown: NDArray[np.bool_], room: int
) -> list[Item]:
    """Open as many kinds of regions as there is room for, those that grow least first; a kind as a whole."""
    kinds: dict[tuple[str, str], list[int]] = {}
    for place, (item, is_open) in enumerate(zip(items, opened, strict=True)):
        if is_open:
            region = tree.regions[item.region]
            kinds.setdefault((region.detector, _DIGITS.sub("", region.label)), []).append(place)
    growth = {
        kind: sum(len(_within(tree, items[place].region, shown)) - 1 for place in places)
        for kind, places in kinds.items()
    }
    chosen, size = set[int](), len(items)
    for kind in sorted(growth, key=lambda kind: (growth[kind], kind)):
        if size + growth[kind] > room:
            break
        size += growth[kind]
        chosen.update(kinds[kind])
    return _opened(tree, items, [place in chosen for place in range(len(items))], shown)


def _within(tree: RegionTree, region: int, shown: NDArray[np.bool_]) -> list[Item]:
    """Child regions and loose nodes; what shows a single operator is that operator."""
    members = np.arange(len(tree.home), dtype=np.int32) if region < 0 else tree.regions[region].members
    loose = members[(tree.home[members] == region) & shown[members]]
    items = [Item(np.array([node], np.int32)) for node in loose.tolist()]
    for child in tree.children[region]:
        inner = tree.regions[child].members
        visible = inner[shown[inner]]
        if visible.size == 1:
            items.append(Item(visible))
        elif visible.size > 1:
            items.append(Item(inner, child, visible=visible))
    return items


def _first(flow: Topology, item: Item) -> int:
    seen = item.members if item.visible is None else item.visible
    return int(flow.position[seen].min())


def _slices(place: Place, flow: Topology, items: list[Item], room: int) -> list[Item]:
    """Neighbours in topological order together: the same ranges at any level."""
    starts = [_first(flow, item) for item in items]
    size = max(room, -(-len(items) // room))
    word = "operators" if all(item.region < 0 for item in items) else "parts"
    slices: list[Item] = []
    for at in range(0, len(items), size):
        stop = min(at + size, len(items))
        members = np.sort(np.concatenate([item.members for item in items[at:stop]]))
        name = f"{place.id}~c{starts[at]}-{starts[stop - 1]}"
        label = f"{word} {at + 1:,}–{stop:,} of {len(items):,}"
        slices.append(Item(members, slice_id=name, label=label))
    return slices


# --- describing them --------------------------------------------------------------------


def _nodes(model: Model, place: Place, items: Sequence[Item], shown: NDArray[np.bool_]) -> list[ViewNode]:
    graph, c = place.graph, place.graph.columns
    called = functions(model)
    kinds = node_categories(graph)
    nodes: list[ViewNode] = []
    for item in items:
        if item.region < 0 and not item.slice_id:
            index = int(item.members[0])
            op = c.strings[int(c.op_type[index])]
            holds = index in graph.subgraphs or (op, c.strings[int(c.domain[index])]) in called
            name = f"g{graph.index}.n{index}"
            nodes.append(ViewNode(name, "operator", op, op, (name,), category(op), c.node_names[index],
                                  enterable=holds))  # fmt: skip
            continue
        inner = item.members[shown[item.members]].tolist()
        members = tuple(f"g{graph.index}.n{index}" for index in inner)
        if item.slice_id:
            nodes.append(ViewNode(item.slice_id, "region", item.label, "", members, _main_kind(kinds, inner),
                                  confidence=1.0, evidence=f"Neighbours in topological order: {_mix(graph, inner)}.",
                                  detector="topological order", enterable=True))  # fmt: skip
            continue
        region = place.tree.regions[item.region]
        nodes.append(ViewNode(region.id, "region", region.label, "", members, _main_kind(kinds, inner), region.path,
                              region.confidence, region.evidence, region.detector, enterable=True))  # fmt: skip
    return nodes


def _main_kind(kinds: Ints, members: Sequence[int]) -> Category:
    """The telling category with most operators, else the one with most."""
    counts = np.bincount(kinds[np.asarray(members, np.int32)], minlength=len(CATEGORIES))
    telling = [CATEGORIES.index(name) for name in _TELLING]
    most = max(telling, key=lambda place: int(counts[place]))
    return CATEGORIES[most if counts[most] else int(np.argmax(counts))]


def _mix(graph: Graph, members: Sequence[int]) -> str:
    c = graph.columns
    codes: list[int] = c.op_type[np.asarray(members, np.int32)].tolist()
    most = Counter(codes).most_common(4)
    return ", ".join(f"{count} {c.strings[code]}" for code, count in most)


def _edges(graph: Graph, flow: Topology, box: Ints, ids: Sequence[str]) -> list[ViewEdge]:
    a, b = box[flow.source], box[flow.target]
    keep = (a >= 0) & (b >= 0) & (a != b)
    return bundle(graph.index, a[keep], b[keep], flow.value[keep], ids, ids)


def bundle(
    graph: int, source: Ints, target: Ints, value: Ints, sources: Sequence[str], targets: Sequence[str]
) -> list[ViewEdge]:
    """One line for each pair of boxes, with the distinct values on it."""
    if not source.size:
        return []
    rows = np.unique(np.stack([source, target, value], axis=1), axis=0)
    heads = np.flatnonzero(np.any(np.diff(rows[:, :2], axis=0, prepend=-2), axis=1))
    stops = [*heads[1:].tolist(), len(rows)]
    values = rows[:, 2].tolist()
    return [
        ViewEdge(sources[int(rows[a, 0])], targets[int(rows[a, 1])], tuple(f"g{graph}.v{v}" for v in values[a:b]))
        for a, b in zip(heads.tolist(), stops, strict=True)
    ]


def _branches(model: Model, place: Place) -> Picture:
    """A node that holds several graphs: one box each, the node's values around them."""
    nodes: list[ViewNode] = []
    for index in place.branches:
        inner = model.graphs[index]
        label = (inner.parent[2] if inner.parent else "") or inner.name
        members = tuple(f"g{index}.n{n}" for n in np.flatnonzero(~constants(inner)).tolist())
        nodes.append(ViewNode(f"g{index}", "region", label, "", members, "control flow", inner.name, 1.0,
                              "A graph that this operator holds.", "control flow", enterable=True))  # fmt: skip
    return Picture(tuple(nodes), (), False, 0)
