"""Embedding: rows of stored tables picked by computed or given numbers, added up and normalised."""

from __future__ import annotations

from typing import Final

from core.structure.detectors.growth import absorb
from core.structure.wiring import NORMS, Found, Wiring, names

_TABLES: Final = names("Gather GatherBlockQuantized Embedding EmbedLayerNormalization GatherElements")
_AFTER: Final = names("Add Mul Cast DequantizeLinear Reshape Identity Dropout Slice Squeeze Unsqueeze") | NORMS
_CASTS: Final = 4
_LEAST: Final = 64
"""Elements of a table; smaller ones are shape arithmetic or constants."""


def find(w: Wiring) -> list[Found]:
    """Lookups that are added up count as one embedding."""
    tables = [node for node in range(len(w.ops)) if w.ops[node] in _TABLES and _table(w, node)]
    given = [node for node in tables if not w.side[node]]
    found: list[Found] = []
    done: set[int] = set()
    for node in sorted(given, key=w.position.__getitem__):
        if node in done:
            continue
        near = [other for other in given if abs(w.position[other] - w.position[node]) <= 64]
        after = absorb(w, near, light=_AFTER, most=12)
        group = {*near, *after}
        if len(near) > 1 and len(w.exits(group)) > 1:
            group = {node, *absorb(w, [node], light=_AFTER, most=12)}
        places = [t for t in tables if w.side[t] and any(user in group for user in w.next(t))]
        group.update(places)
        done |= group
        count = sum(1 for n in group if n in tables)
        evidence = f"{count} lookup{'s' if count > 1 else ''} in stored tables" + (", added up." if count > 1 else ".")
        found.append(Found("embedding", "embedding", frozenset(group), 0.95, evidence, frozenset((node,))))
    return found


def _table(w: Wiring, node: int) -> bool:
    if not w.takes[node]:
        return False
    value = w.takes[node][0]
    if not w.aside[value]:
        return False
    place = int(w.graph.columns.tensor[value])
    for _ in range(_CASTS):
        if place >= 0 or w.maker[value] < 0 or not w.takes[w.maker[value]]:
            break
        value = w.takes[w.maker[value]][0]
        place = int(w.graph.columns.tensor[value])
    tensor = w.model.tensors[place] if place >= 0 else None
    return tensor is not None and len(tensor.shape) == 2 and tensor.elements >= _LEAST
