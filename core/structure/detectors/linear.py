"""A product with weights and what belongs to it: bias and activation."""

from __future__ import annotations

from typing import Final

from core.structure.detectors.growth import LIGHT, absorb
from core.structure.wiring import ACTIVATIONS, MATRIX, NORMS, Found, Wiring

_AFTER: Final = LIGHT - NORMS


def find(w: Wiring) -> list[Found]:
    """Every product with weights that something light follows."""
    found: list[Found] = []
    for node in w.of(MATRIX):
        after = absorb(w, [node], light=_AFTER, most=12) if w.weighted(node) else []
        if after:
            bends = list(dict.fromkeys(w.ops[n] for n in after if w.ops[n] in ACTIVATIONS))
            label = " · ".join(["linear", *(op.lower() for op in bends[:1])])
            evidence = f"{w.ops[node]} with weights, followed by {', '.join(dict.fromkeys(w.ops[n] for n in after))}."
            found.append(Found("linear", label, frozenset({node, *after}), 0.9, evidence, frozenset((node,))))
    return found
