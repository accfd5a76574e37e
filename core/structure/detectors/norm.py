"""Normalisation written out in elementary operators: LayerNorm and RMSNorm."""

from __future__ import annotations

import heapq
from typing import Final

from core.structure.detectors.growth import absorb
from core.structure.wiring import Found, Wiring, names

_REDUCE: Final = names("ReduceMean ReduceSum ReduceSumSquare ReduceL2")
_INSIDE: Final = _REDUCE | names("Add Sub Mul Div Pow Max Clip Reshape Expand Unsqueeze Squeeze Cast Abs Identity")
_AFTER: Final = names("Div Mul Add Sub Reciprocal Reshape Expand Unsqueeze Cast Pow Identity")
_MOST: Final = 20


def find(w: Wiring) -> list[Found]:
    """Every written-out normalisation, found from its square root (or power of one half)."""
    found: list[Found] = []
    claimed: set[int] = set()
    for node in w.of(("Sqrt", "Pow", "Rsqrt")):
        if node in claimed:
            continue
        group = _around(w, node)
        if group is not None and not group.members & claimed:
            found.append(group)
            claimed |= group.members
    return found


def _around(w: Wiring, root: int) -> Found | None:
    back = _variance(w, root)
    if back is None:
        return None
    inside, source = back
    centred = False
    maker = w.maker[source]
    if maker >= 0 and w.ops[maker] == "Sub" and len(w.main[maker]) == 2:
        whole, mean = w.main[maker]
        reduce = w.maker[mean]
        if reduce >= 0 and w.ops[reduce] in _REDUCE and w.main[reduce][:1] == [whole]:
            inside |= {maker, reduce}
            source, centred = whole, True
    after = absorb(w, sorted(inside | {root}, key=w.position.__getitem__), also=(source,), light=_AFTER, most=12)
    members = frozenset({*inside, root, *after})
    if not any(w.ops[n] in ("Div", "Mul") for n in after) or len(members) < 4:
        return None
    centred = centred or any(w.ops[n] == "Sub" for n in members)
    label = "layer norm" if centred else "RMS norm"
    what = "minus its mean, over the root of its variance" if centred else "over the root of its mean square"
    return Found("norm", label, members, 0.95, f"A value {what}, in {len(members)} operators.", members)


def _variance(w: Wiring, root: int) -> tuple[set[int], int] | None:
    """From the root back to the one value whose squares are averaged under it."""
    if len(w.main[root]) != 1:
        return None
    inside: set[int] = set()
    reduced = squared = False
    frontier: list[tuple[int, int]] = []
    waiting: set[int] = set()

    def wait(values: list[int]) -> None:
        for value in values:
            if value not in waiting:
                waiting.add(value)
                maker = w.maker[value]
                heapq.heappush(frontier, (-(w.position[maker] if maker >= 0 else -1), value))

    wait(w.main[root])
    while frontier and len(inside) <= _MOST:
        if len(frontier) == 1 and reduced and squared:
            return inside, frontier[0][1]
        _, value = heapq.heappop(frontier)
        node = w.maker[value]
        if node < 0 or w.ops[node] not in _INSIDE or w.side[node]:
            return None
        inside.add(node)
        reduced = reduced or w.ops[node] in _REDUCE
        taken = w.main[node]
        square = w.ops[node] == "Pow" or (w.ops[node] == "Mul" and len(taken) == 2 and taken[0] == taken[1])
        squared = squared or square or w.ops[node] in ("ReduceSumSquare", "ReduceL2")
        wait(taken)
    return None
