"""The way to a box: which place draws an operator, a value or a tensor, and the tree of all regions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from core.ir import Graph, Model
from core.structure.modes import Mode, region_tree
from core.structure.place import Edits, functions, inner_graphs, node_numbers
from core.structure.regions import RegionTree
from core.structure.scene import ViewOptions, scene
from core.structure.topology import topology
from core.structure.view import GraphView

_STEPS: Final = 40
_VALUE: Final = re.compile(r"g(\d{1,9})\.v(\d{1,9})")
_TENSOR: Final = re.compile(r"t(\d{1,9})")
_NESTED: Final = 60


def way_to(model: Model, name: str, options: ViewOptions, edits: Edits = ()) -> str:
    """The place (``inside``) that draws an operator itself, beginning from ``options.inside``.

    Values lead to what makes or first takes them, tensors to what first takes them. Empty where
    the whole graph draws it; the place asked from where nothing is called so.
    """
    node = carrier(model, name)
    numbers = node_numbers(node)
    main = model.main_graph
    if numbers is None or main is None:
        return options.inside
    home = "" if numbers[0] == main.index else f"g{numbers[0]}"
    for start in dict.fromkeys((options.inside, home)):
        place = start
        for _ in range(_STEPS):
            view = scene(model, replace(options, inside=place, focus="", hidden=()), edits).view
            deeper = holder(view, node)
            if deeper == node:
                return place
            if not deeper or deeper == place:
                break
            place = deeper
    return home


def holder(view: GraphView, node: str) -> str:
    """The box of ``view`` that is or holds ``node``; empty where none does."""
    for box in view.nodes:
        if box.id == node:
            return node
    return next((box.id for box in view.nodes if node in box.members), "")


def carrier(model: Model, name: str) -> str:
    """The operator that stands for an operator, a value or a tensor; empty where there is none."""
    if match := _VALUE.fullmatch(name):
        index, value = int(match[1]), int(match[2])
        if index < len(model.graphs) and value < model.graphs[index].value_count:
            return _of_value(model.graphs[index], value)
        return ""
    if match := _TENSOR.fullmatch(name):
        for graph in model.graphs:
            users = np.flatnonzero(graph.columns.tensor == int(match[1])).tolist()
            for value in users:
                found = _of_value(graph, value)
                if found:
                    return found
        return ""
    numbers = node_numbers(name)
    known = numbers is not None and numbers[0] < len(model.graphs)
    return name if known and numbers and numbers[1] < model.graphs[numbers[0]].node_count else ""


def _of_value(graph: Graph, value: int) -> str:
    c = graph.columns
    node = int(c.producer[value])
    if node < 0 and c.consumer_offsets[value] < c.consumer_offsets[value + 1]:
        node = int(c.consumers[c.consumer_offsets[value]])
    return f"g{graph.index}.n{node}" if node >= 0 else ""


# --- the tree beside the canvas ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One region, or a graph that an operator holds.

    Attributes:
        id: what ``inside`` takes.
        parent: number of the row that holds it, -1 at the top; ``depth`` 0 there.
        count: operators inside.
    """

    id: str
    label: str
    depth: int
    parent: int
    count: int
    detector: str
    level: str


def tree_rows(model: Model, mode: Mode = "auto", edits: Edits = ()) -> tuple[TreeRow, ...]:
    """All regions of the main graph in order of the flow, subgraphs and functions under what holds them."""
    rows: list[TreeRow] = []
    main = model.main_graph
    if main is not None:
        _graph_rows(model, main, mode, edits, rows, -1, 0)
        called = {index for indexes in functions(model).values() for index in indexes}
        for index in sorted(called):
            graph = model.graphs[index]
            rows.append(TreeRow(f"g{index}", graph.name or f"function {index}", 0, -1, graph.node_count, "function",
                                "block"))  # fmt: skip
            _graph_rows(model, graph, mode, edits, rows, len(rows) - 1, 1)
    return tuple(rows)


def _graph_rows(
    model: Model, graph: Graph, mode: Mode, edits: Edits, rows: list[TreeRow], above: int, depth: int
) -> None:
    tree = region_tree(model, graph, mode, edits)
    held: dict[int, list[int]] = {}
    for node in sorted(graph.subgraphs):
        held.setdefault(int(tree.home[node]), []).append(node)
    stack: list[tuple[int, int, int]] = [
        (region, above, depth) for region in _in_order(model, graph, tree.children[-1], tree)
    ]
    stack.reverse()
    _held_rows(model, graph, mode, edits, rows, held.get(-1, []), above, depth)
    while stack:
        at, parent, level = stack.pop()
        region = tree.regions[at]
        here = len(rows)
        rows.append(TreeRow(region.id, region.label, level, parent, len(region.members), region.detector, region.level))
        _held_rows(model, graph, mode, edits, rows, held.get(at, []), here, level + 1)
        stack.extend((child, here, level + 1) for child in reversed(_in_order(model, graph, tree.children[at], tree)))


def _in_order(model: Model, graph: Graph, places: Iterable[int], tree: RegionTree) -> list[int]:
    position = topology(model, graph).position
    return sorted(places, key=lambda place: int(position[tree.regions[place].members].min()))


def _held_rows(
    model: Model, graph: Graph, mode: Mode, edits: Edits, rows: list[TreeRow], nodes: list[int], above: int, depth: int
) -> None:
    """Graphs that operators hold, each with its own regions below."""
    c = graph.columns
    for node in nodes:
        if depth > _NESTED:
            return
        for index in inner_graphs(model, graph, node):
            inner = model.graphs[index]
            part = inner.parent[2] if inner.parent else inner.name
            label = f"{c.node_names[node] or c.strings[int(c.op_type[node])]} · {part}"
            rows.append(TreeRow(f"g{index}", label, depth, above, inner.node_count, "control flow", "block"))
            _graph_rows(model, inner, mode, edits, rows, len(rows) - 1, depth + 1)
