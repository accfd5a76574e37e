"""The same part of every layer, one row a layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.ir import Model
from core.structure.modes import region_tree
from core.structure.wiring import wiring
from core.trace.views.sampling import real


def alike(model: Model, value: str) -> tuple[str, ...]:
    """Ids of the values that play the part of ``value`` in equal regions beside its own, in order.

    Itself alone where there are none. Two regions are equal where they have operators of the same
    types in the same order.
    """
    graph = model.main_graph
    if graph is None or not value.startswith(f"g{graph.index}.v"):
        return (value,)
    w, tree = wiring(model, graph), region_tree(model, graph)
    maker = w.maker[int(value.split("v")[1])]
    at = int(tree.home[maker]) if maker >= 0 else -1
    while at >= 0:
        region = tree.regions[at]
        members: list[int] = region.members.tolist()
        kinds: list[str] = [w.ops[node] for node in members]
        place = members.index(maker)
        output = w.makes[maker].index(int(value.split("v")[1]))
        beside = [tree.regions[child] for child in tree.children[region.parent]]
        same = [other for other in beside if [w.ops[node] for node in other.members.tolist()] == kinds]
        if len(same) > 1:
            makers = [int(other.members[place]) for other in same]
            return tuple(f"g{graph.index}.v{w.makes[node][output]}" for node in makers)
        at = region.parent
    return (value,)


def norms(layers: Iterable[NDArray[Any]], axis: int = -1) -> NDArray[np.float64]:
    """Root mean square along ``axis`` at every place of each layer, [layers, places]; layers of equal shape.

    Batch and heads are part of the places, in row order.
    """
    rows = [np.sqrt(np.square(real(array)).mean(axis=axis)).ravel() for array in layers]
    width = max((len(row) for row in rows), default=0)
    out = np.full((len(rows), width), np.nan)
    for place, row in enumerate(rows):
        out[place, : len(row)] = row
    return out
