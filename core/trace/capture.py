"""Which values of a graph a run should keep first when there is no room for all of them."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

from core.ir import Graph, Model
from core.structure.modes import region_tree
from core.structure.wiring import wiring

Rank = Literal[0, 1, 2, 3]
RANKS: Final = ("selection", "outputs", "block boundaries", "the rest")
_COARSE: Final = ("architecture", "block")


@dataclass(frozen=True, slots=True)
class Wish:
    """One value of the main graph and how much it matters.

    Attributes:
        value: id such as ``g0.v12``.
        rank: 0 what a person chose, 1 outputs of the model, 2 what leaves a block, 3 the rest; values
            of rank 3 may be thinned.
    """

    value: str
    rank: Rank


def plan(model: Model, selection: Collection[str] = ()) -> tuple[Wish, ...]:
    """Every value that an operator of the main graph makes, the most wanted first, in order of execution within a rank.

    Args:
        selection: ids of values and of nodes, which stand for what they take and make.
    """
    graph = model.main_graph
    if graph is None:
        return ()
    w = wiring(model, graph)
    chosen, borders = _chosen(graph, selection), _borders(model, graph)
    outputs = frozenset(graph.outputs)

    def rank(value: int) -> Rank:
        if value in chosen:
            return 0
        if value in outputs:
            return 1
        return 2 if value in borders else 3

    made = dict.fromkeys([*graph.inputs, *(value for node in w.order for value in w.makes[node])])
    ranked = [Wish(f"g{graph.index}.v{value}", rank(value)) for value in made]
    return tuple(sorted(ranked, key=lambda wish: wish.rank))


def thinned(shape: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Steps along each axis that leave at most ``most`` elements; all 1 where it fits.

    The longest axis is halved again and again, so channels and positions are thinned alike; an
    axis keeps its first element.
    """
    steps = [1] * len(shape)
    sizes = list(shape)
    while math.prod(sizes) > max(most, 1):
        axis = max(range(len(sizes)), key=sizes.__getitem__)
        steps[axis] *= 2
        sizes[axis] = -(-shape[axis] // steps[axis])
    return tuple(steps)


def _chosen(graph: Graph, selection: Collection[str]) -> set[int]:
    found: set[int] = set()
    for item in selection:
        kind, row = item.removeprefix(f"g{graph.index}.")[:1], item.removeprefix(f"g{graph.index}.")[1:]
        if not item.startswith(f"g{graph.index}.") or not row.isdecimal():
            continue
        if kind == "v" and int(row) < graph.value_count:
            found.add(int(row))
        elif kind == "n" and int(row) < graph.node_count:
            node = graph.node(int(row))
            found.update(value for value in (*node.inputs, *node.outputs) if value >= 0)
    return found


def _borders(model: Model, graph: Graph) -> set[int]:
    """Values that leave a region of the level block or coarser."""
    w = wiring(model, graph)
    found: set[int] = set()
    for region in region_tree(model, graph).regions:
        if region.level in _COARSE:
            found |= w.exits(set(region.members.tolist()))
    return found
