"""Single-entry single-exit regions: where one value carries everything, a graph can be cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.structure.wiring import Wiring

_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Segment:
    """Operators between two cuts.

    Attributes:
        branches: for a segment of parallel ways, the operators of each way.
        inner: segments of the branches.
    """

    nodes: tuple[int, ...]
    branches: tuple[tuple[int, ...], ...]
    inner: tuple[Segment, ...]


def segments(w: Wiring, nodes: Sequence[int] | None = None, depth: int = 0) -> list[Segment]:
    """Cut after every operator whose single result is all that goes on.

    Args:
        nodes: operators in topological order; all that do main work where left out.
    """
    sequence = [node for node in w.order if not w.side[node]] if nodes is None else list(nodes)
    place = {node: i for i, node in enumerate(sequence)}
    reach, found = -1, list[Segment]()
    begun = 0
    for i, node in enumerate(sequence):
        if reach <= i:  # nothing made before this operator is used after it
            found.extend(_segment(w, sequence[begun:i], depth))
            found.append(Segment((node,), (), ()))
            begun = i + 1
        for user in w.next(node):
            reach = max(reach, place.get(user, -1))
    found.extend(_segment(w, sequence[begun:], depth))
    return found


def _segment(w: Wiring, nodes: Sequence[int], depth: int) -> list[Segment]:
    """The parallel ways between two cuts, each cut further."""
    if not nodes:
        return []
    ways = _ways(w, nodes)
    inner: list[Segment] = []
    if depth < _DEPTH and len(ways) > 1:
        for way in ways:
            if len(way) > 1:
                inner.extend(part for part in segments(w, way, depth + 1) if len(part.nodes) > 1)
    return [Segment(tuple(nodes), tuple(ways), tuple(inner))]


def _ways(w: Wiring, nodes: Sequence[int]) -> list[tuple[int, ...]]:
    """Connected parts of these operators, by the values between them."""
    inside = set(nodes)
    part = {node: node for node in nodes}

    def root(node: int) -> int:
        while part[node] != node:
            part[node] = part[part[node]]
            node = part[node]
        return node

    for node in nodes:
        for before in w.before(node):
            if before in inside:
                part[root(node)] = root(before)
    ways: dict[int, list[int]] = {}
    for node in nodes:
        ways.setdefault(root(node), []).append(node)
    return [tuple(way) for way in ways.values()]
