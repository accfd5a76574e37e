"""Pooling with the flattening behind it, and heads: the last weights before an output."""

from __future__ import annotations

from typing import Final

from core.structure.wiring import CONVOLUTION, MATRIX, QUANTIZING, RECURRENT, Found, Wiring, names

_POOLS: Final = names(
    "GlobalAveragePool GlobalMaxPool QLinearGlobalAveragePool AveragePool MaxPool ReduceMean ReduceMax"
)
_FLAT: Final = names("Flatten Reshape Squeeze Identity Dropout Cast") | QUANTIZING
_WEIGHTS: Final = CONVOLUTION | MATRIX
_LONG: Final = 24


def pooling(w: Wiring) -> list[Found]:
    """A pool whose result is flattened."""
    found: list[Found] = []
    for node in w.of(_POOLS):
        way, at = [node], node
        while len(way) < 6:
            users = [user for user in w.next(at) if not w.side[user]]
            if len(users) != 1 or w.ops[users[0]] not in _FLAT:
                break
            at = users[0]
            way.append(at)
        flat = [w.ops[n] for n in way[1:] if w.ops[n] in ("Flatten", "Reshape", "Squeeze")]
        if flat:
            evidence = f"{w.ops[node]} whose result {flat[-1]} flattens."
            found.append(Found("pooling", "pooling", frozenset(way), 0.9, evidence, frozenset((node,))))
    return found


def heads(w: Wiring) -> list[Found]:
    """From the last weights to an output of the graph."""
    found: list[Found] = []
    claimed: set[int] = set()
    for value in w.graph.outputs:
        way: list[int] = []
        at = value
        while at >= 0 and len(way) < _LONG:
            node = w.maker[at]
            if node < 0 or node in claimed or len(set(w.main[node])) != 1 or w.ops[node] in RECURRENT:
                break
            way.append(node)
            if w.ops[node] in _WEIGHTS:
                claimed.update(way)
                after = [w.ops[n] for n in reversed(way[:-1])]
                evidence = f"The last {w.ops[node]} with weights before output" + (
                    f", then {', '.join(dict.fromkeys(after))}." if after else "."
                )
                found.append(Found("head", "head", frozenset(way), 0.9, evidence, frozenset(way)))
                break
            at = w.main[node][0]
    return found
