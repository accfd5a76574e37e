"""Feed-forward: weights, a nonlinearity, weights again; gated where two products meet in between."""

from __future__ import annotations

from typing import Final

from core.structure.detectors.growth import LIGHT, absorb, bias
from core.structure.wiring import ACTIVATIONS, MATRIX, NORMS, Found, Wiring, names

_BETWEEN: Final = (LIGHT - NORMS) | names("Split Slice Reshape Transpose")
_BENDS: Final = ACTIVATIONS | names("Pow")


def find(w: Wiring) -> list[Found]:
    """Every feed-forward, in topological order, none sharing a product with another."""
    found: list[Found] = []
    claimed: set[int] = set()
    for node in w.of(MATRIX):
        if node in claimed or not w.weighted(node):
            continue
        sharing = [user for user in w.users[w.main[node][0]] if w.ops[user] in MATRIX and w.weighted(user)]
        for seeds in ([sharing] if len(sharing) == 2 else []) + [[node]]:
            group = _from(w, seeds)
            if group is not None and not group.members & claimed:
                found.append(group)
                claimed |= group.members
                break
    return found


def _from(w: Wiring, seeds: list[int]) -> Found | None:
    between = absorb(w, seeds, light=_BETWEEN)
    bends = [w.ops[node] for node in between if w.ops[node] in _BENDS]
    exits = w.exits({*seeds, *between})
    if not bends or len(exits) != 1:
        return None
    ends = [user for user in w.users[next(iter(exits))] if not w.side[user]]
    if len(ends) != 1 or w.ops[ends[0]] not in MATRIX or not w.weighted(ends[0]):
        return None
    gated = any(w.ops[node] == "Mul" and _meets(w, node, seeds) for node in between) and _splits(w, seeds, between)
    members = frozenset({*seeds, *between, ends[0], *bias(w, ends[0])})
    label = "gated feed-forward" if gated else "feed-forward"
    kind = "meets its gate in a Mul and goes" if gated else "goes"
    evidence = f"A product with weights {kind} through {' and '.join(dict.fromkeys(bends))} into a second product."
    return Found("feed-forward", label, members, 0.95 if gated else 0.93, evidence, frozenset({*seeds, ends[0]}))


def _meets(w: Wiring, node: int, seeds: list[int]) -> bool:
    return len(w.main[node]) == 2 and (len(seeds) == 2 or w.main[node][0] != w.main[node][1])


def _splits(w: Wiring, seeds: list[int], between: list[int]) -> bool:
    return len(seeds) == 2 or any(w.ops[node] in ("Split", "Slice") for node in between)
