"""Growing a group of operators from a seed: forward through light ones, up and down through named ones."""

from __future__ import annotations

from collections.abc import Collection

from core.structure.wiring import ACTIVATIONS, ELEMENTWISE, NORMS, QUANTIZING, Wiring

LIGHT = ACTIVATIONS | ELEMENTWISE | NORMS | QUANTIZING


def absorb(
    w: Wiring,
    seeds: Collection[int],
    *,
    also: Collection[int] = (),
    light: Collection[str] = LIGHT,
    most: int = 24,
    taken: Collection[int] = (),
) -> list[int]:
    """Follow the outputs of ``seeds`` through operators that need nothing else.

    Args:
        also: values from outside that the absorbed operators may take.
        light: operator types that may be absorbed.
        taken: nodes that belong to something else.

    Returns:
        The absorbed nodes up to the last place where a single value leaves the group; the seeds
        are not among them.
    """
    members, inside = set(seeds), set(also)
    for seed in seeds:
        inside.update(w.makes[seed])
    added: list[int] = []
    best = 0
    queue = sorted((user for seed in seeds for user in w.next(seed)), key=w.position.__getitem__)
    while queue and len(added) < most:
        node = queue.pop(0)
        if node in members or node in taken or w.ops[node] not in light or w.side[node]:
            continue
        if not all(value in inside for value in w.main[node]):
            continue
        members.add(node)
        added.append(node)
        inside.update(w.makes[node])
        queue = sorted({*queue, *w.next(node)}, key=w.position.__getitem__)
        if len(w.exits(members)) <= 1:
            best = len(added)
    return added[:best]


def climb(
    w: Wiring, value: int, through: Collection[str], stop: Collection[str], most: int = 40
) -> tuple[set[int], set[int]]:
    """Walk from a value to its makers through operators in ``through``, up to those in ``stop``.

    Returns:
        The nodes passed (ends included) and the ends: nodes of ``stop`` with stored weights.
        Branches that meet anything else are left out beyond the last passed node.
    """
    passed: set[int] = set()
    ends: set[int] = set()
    stack = [value]
    while stack and len(passed) < most:
        node = w.maker[stack.pop()]
        if node < 0 or node in passed or w.side[node]:
            continue
        if w.ops[node] in stop and w.weighted(node):
            passed.add(node)
            ends.add(node)
        elif w.ops[node] in through and not _joins(w, node):
            passed.add(node)
            stack.extend(w.main[node])
    return passed, ends


def _joins(w: Wiring, node: int) -> bool:
    """Whether an ``Add`` joins two computed values otherwise than a rotary embedding does."""
    makers = w.before(node)
    return w.ops[node] == "Add" and len(w.main[node]) == 2 and not all(w.ops[m] in ("Mul", "Concat") for m in makers)


def descend(w: Wiring, value: int, through: Collection[str], stop: Collection[str], most: int = 12) -> list[int]:
    """Walk from a value to its only users through ``through`` up to one of ``stop``, both included.

    Returns:
        The nodes of the way, empty where it does not end in ``stop``.
    """
    way: list[int] = []
    while len(way) < most:
        users = [user for user in w.users[value] if not w.side[user]]
        if len(users) != 1:
            return []
        node = users[0]
        way.append(node)
        if w.ops[node] in stop:
            return way
        if w.ops[node] not in through or not w.makes[node]:
            return []
        value = w.makes[node][0]
    return []


def bias(w: Wiring, node: int) -> list[int]:
    """The ``Add`` of stored numbers that alone follows ``node``, with the casts in between."""
    way: list[int] = []
    at = node
    for _ in range(4):
        users = w.next(at)
        if len(users) != 1 or not w.makes[at] or w.makes[at][0] in w.final:
            return []
        at = users[0]
        way.append(at)
        if w.ops[at] == "Add" and len(w.main[at]) == 1:
            return way
        if w.ops[at] not in ("Cast", "Identity", "Mul", "DequantizeLinear", "QuantizeLinear") or len(w.main[at]) != 1:
            return []
    return []
