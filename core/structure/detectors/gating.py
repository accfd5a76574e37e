"""Squeeze-and-excitation: a value scaled by what is computed from its own average."""

from __future__ import annotations

from typing import Final

from core.structure.wiring import CONVOLUTION, ELEMENTWISE, MATRIX, QUANTIZING, RESHAPING, Found, Wiring, names

_POOLS: Final = names("GlobalAveragePool ReduceMean AveragePool QLinearGlobalAveragePool")
_WAY: Final = (
    CONVOLUTION | MATRIX | ELEMENTWISE | RESHAPING | QUANTIZING
    | names("Relu Sigmoid HardSigmoid HardSwish Clip LeakyRelu PRelu BatchNormalization")
)  # fmt: skip
_MOST: Final = 24


def find(w: Wiring) -> list[Found]:
    """Every ``x * gate(average(x))``."""
    found: list[Found] = []
    for node in w.of(("Mul", "QLinearMul")):
        if len(w.main[node]) == 2 and w.main[node][0] != w.main[node][1]:
            for gated, gate in (w.main[node], w.main[node][::-1]):
                way = _back(w, gate, gated)
                if way:
                    evidence = f"A value is multiplied by a gate of {len(way)} operators over its own global average."
                    members = frozenset({node, *way})
                    found.append(Found("gating", "squeeze-and-excitation", members, 0.95, evidence, members))
                    break
    return found


def _back(w: Wiring, gate: int, gated: int) -> set[int]:
    """The nodes from the average of ``gated`` to ``gate``; empty where the gate comes from elsewhere."""
    way: set[int] = set()
    stack, pooled, heavy = [gate], False, False
    while stack:
        node = w.maker[stack.pop()]
        if node in way:
            continue
        if node < 0 or len(way) >= _MOST or w.side[node]:
            return set()
        way.add(node)
        heavy = heavy or w.ops[node] in CONVOLUTION | MATRIX
        if w.ops[node] in _POOLS and w.main[node][:1] == [gated]:
            pooled = True
        elif w.ops[node] in _WAY:
            stack.extend(w.main[node])
        else:
            return set()
    return way if pooled and heavy else set()
