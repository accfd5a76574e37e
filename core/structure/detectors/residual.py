"""Residual joins: an ``Add`` of a value and of what was computed from it."""

from __future__ import annotations

from collections import deque
from typing import Final

from core.structure.wiring import CONVOLUTION, MATRIX, NORMS, QUANTIZING, RECURRENT, Found, Wiring, names

_JOINS: Final = names("Add Sum QLinearAdd")
_HEAVY: Final = CONVOLUTION | MATRIX | RECURRENT | names("Attention MultiHeadAttention GroupQueryAttention")
_SHORT: Final = CONVOLUTION | NORMS | QUANTIZING | names("Mul Add AveragePool MaxPool Identity Cast Pad Concat Reshape")
_MOST: Final = 600
_SHORTCUT: Final = 6


def find(w: Wiring) -> list[Found]:
    """Every join whose one side skips what the other computes with weights."""
    found: list[Found] = []
    for node in w.of(_JOINS):
        if len(w.main[node]) != 2 or w.main[node][0] == w.main[node][1]:
            continue
        for near, far in (w.main[node], w.main[node][::-1]):
            group = _join(w, node, near, far)
            if group is not None:
                found.append(group)
                break
    return found


def _join(w: Wiring, node: int, skip: int, branch: int) -> Found | None:
    """A block where ``skip``, or a short way before it, is what ``branch`` was computed from."""
    shortcut: list[int] = []
    source = skip
    while True:
        way = _paths(w, source, branch)
        if way:
            break
        maker = w.maker[source]
        if maker < 0 or len(shortcut) == _SHORTCUT or w.ops[maker] not in _SHORT or len(w.main[maker]) != 1:
            return None
        shortcut.append(maker)
        source = w.main[maker][0]
    heavy = [w.ops[n] for n in sorted(way, key=w.position.__getitem__) if w.ops[n] in _HEAVY]
    if not heavy or (shortcut and not any(w.ops[n] in CONVOLUTION | MATRIX for n in shortcut) and len(way) < 2):
        return None
    members = frozenset({node, *way, *shortcut})
    past = f"{len(way)} operators ({len(heavy)} with weights)"
    evidence = f"Add joins a value with what {past} make of it" + (
        f"; the skip goes through {' and '.join(dict.fromkeys(w.ops[n] for n in shortcut))}." if shortcut else "."
    )
    return Found("residual", "residual", members, 0.9, evidence, frozenset((node,)))


def _paths(w: Wiring, source: int, target: int) -> set[int]:
    """Nodes on the ways from one value to another; empty where there is none or it is too long."""
    start = w.position[w.maker[source]] if w.maker[source] >= 0 else -1
    seen: set[int] = set()
    queue: deque[int] = deque([target])
    reached = False
    while queue:
        value = queue.popleft()
        if value == source:
            reached = True
            continue
        node = w.maker[value]
        if node < 0 or node in seen or w.position[node] <= start:
            continue
        seen.add(node)
        if len(seen) > _MOST:
            return set()
        queue.extend(w.main[node])
    return _reached(w, source, seen) if reached else set()


def _reached(w: Wiring, source: int, among: set[int]) -> set[int]:
    way: set[int] = set()
    for node in sorted(among, key=w.position.__getitem__):
        if source in w.main[node] or any(maker in way for maker in w.before(node)):
            way.add(node)
    return way
