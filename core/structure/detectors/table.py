"""The detectors of layers, the surer ones first: an operator belongs to the first that claims it."""

from __future__ import annotations

from typing import Final

from core.structure.detectors import (
    attention,
    convolution,
    embedding,
    ends,
    feed_forward,
    gating,
    linear,
    norm,
    quantization,
)
from core.structure.wiring import Detector, Found, Wiring

LAYERS: Final[tuple[Detector, ...]] = (
    attention.find,
    norm.find,
    gating.find,
    feed_forward.find,
    ends.heads,
    convolution.find,
    embedding.find,
    ends.pooling,
    linear.find,
    quantization.find,
)


def layers(w: Wiring) -> list[Found]:
    """What all detectors found, no operator in two of them, in topological order."""
    claimed: set[int] = set()
    kept: list[Found] = []
    for detector in LAYERS:
        for found in detector(w):
            if found.core & claimed:
                continue
            members = found.members - claimed
            claimed |= members
            kept.append(Found(found.detector, found.label, members, found.confidence, found.evidence, found.core))
    return sorted(kept, key=lambda found: min(w.position[node] for node in found.members))
