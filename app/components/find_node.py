"""Finding operators by name or type, and the way to a view that shows one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.ir import Model
from core.structure.place import node_numbers
from core.structure.regions import Level
from core.structure.view import GraphView, graph_view

MOST: Final = 40
_STEPS: Final = 40


@dataclass(frozen=True, slots=True)
class Hit:
    """One operator that fits."""

    id: str
    op_type: str
    name: str


def find(model: Model, text: str, most: int = MOST) -> list[Hit]:
    """Operators whose id, name or type holds ``text``, upper and lower case alike, exact ones first."""
    wanted = text.strip().lower()
    if not wanted:
        return []
    exact: list[Hit] = []
    others: list[Hit] = []
    for graph in model.graphs:
        c = graph.columns
        kinds = {code for code, word in enumerate(c.strings) if wanted in word.lower()}
        types = c.op_type.tolist()
        for index, name in enumerate(c.node_names):
            lower = name.lower()
            if wanted in lower or types[index] in kinds or wanted == f"g{graph.index}.n{index}":
                hit = Hit(f"g{graph.index}.n{index}", c.strings[types[index]], name)
                (exact if wanted in (lower, hit.id) else others).append(hit)
                if len(others) >= most:
                    break
    return (exact + others)[:most]


def way_to(model: Model, node: str, level: Level, inside: str = "") -> str:
    """The place (``inside`` of ``graph_view``) that draws ``node`` itself, beginning from ``inside``.

    Empty where the whole graph does; where constants are hidden, the place that would hold it.
    """
    numbers = node_numbers(node)
    main = model.main_graph
    if numbers is None or main is None:
        return inside
    home = "" if numbers[0] == main.index else f"g{numbers[0]}"
    for start in dict.fromkeys((inside, home)):
        place = start
        for _ in range(_STEPS):
            view = graph_view(model, level=level, inside=place or None)
            if holder(view, node) == node:
                return place
            deeper = holder(view, node)
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
