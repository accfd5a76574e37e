"""The same part of every layer, one row a layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.ir import Model
from core.structure.modes import region_tree
from core.structure.regions import Region
from core.structure.wiring import Wiring, wiring
from core.trace.views.sampling import real

_NUMBER: Final = re.compile(r"\d+")
_ALIKE: Final = 0.8
"""Share of the operators that two layers must have in common."""


def alike(model: Model, value: str) -> tuple[str, ...]:
    """Ids of the values that play the part of ``value`` in the layers beside its own, in order.

    Itself alone where there are none. Layers are regions side by side whose labels differ in numbers
    alone and whose operators are mostly the same; the part is the place among the operators of its type.
    """
    graph = model.main_graph
    if graph is None or not value.startswith(f"g{graph.index}.v"):
        return (value,)
    w, tree = wiring(model, graph), region_tree(model, graph)
    number = int(value.split("v")[1])
    maker = w.maker[number]
    best: list[int] = [number]
    at = int(tree.home[maker]) if maker >= 0 else -1
    while at >= 0:
        beside = [tree.regions[child] for child in tree.children[tree.regions[at].parent]]
        makers = [_same(w, tree.regions[at], other, maker) for other in beside]
        output = w.makes[maker].index(number)
        found = [w.makes[node][output] for node in makers if node >= 0 and len(w.makes[node]) > output]
        best = found if len(found) > len(best) else best
        at = tree.regions[at].parent
    return tuple(f"g{graph.index}.v{found}" for found in best)


def _same(w: Wiring, home: Region, other: Region, maker: int) -> int:
    """The operator of ``other`` that stands where ``maker`` stands in ``home``, -1 where there is none."""
    if _NUMBER.sub("#", other.label.split(" (")[0]) != _NUMBER.sub("#", home.label.split(" (")[0]):
        return -1
    here, there = _types(w, home), _types(w, other)
    if (here & there).total() < _ALIKE * max(here.total(), there.total()) or here[w.ops[maker]] != there[w.ops[maker]]:
        return -1

    def of_type(region: Region) -> list[int]:
        members: list[int] = region.members.tolist()
        return sorted((node for node in members if w.ops[node] == w.ops[maker]), key=w.position.__getitem__)

    return of_type(other)[of_type(home).index(maker)]


def _types(w: Wiring, region: Region) -> Counter[str]:
    members: list[int] = region.members.tolist()
    return Counter(w.ops[node] for node in members)


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
