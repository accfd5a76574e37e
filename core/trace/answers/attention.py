"""How attention spreads: entropy of each head, and the places that soak it up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.ir import Finding
from core.structure.detectors.attention import softmaxes
from core.structure.detectors.table import layers
from core.structure.wiring import wiring
from core.trace.answers.reading import Reading, finding, listed
from core.trace.types import TracedValue

_SINK: Final = 0.5
_KEYS: Final = 4
"""Keys there must be before a sink means something."""


@dataclass(frozen=True, slots=True)
class Heads:
    """One attention map, each array by head.

    Attributes:
        entropy: mean over the queries, in bits; of at most ``log2(keys seen)``.
        fullest: mean over the queries of entropy as a share of what the keys a query sees allow, 0 to 1.
        sink: the key that takes most on average, and ``mass`` its mean share of the attention.
    """

    entropy: NDArray[np.float64]
    fullest: NDArray[np.float64]
    sink: NDArray[np.int64]
    mass: NDArray[np.float64]


def answer(run: Reading) -> list[Finding]:
    """Entropy by layer in one finding, and the layers with a sink each in one."""
    found: list[Finding] = []
    for value in weights(run):
        array = run.elements(value)
        if array is None or array.ndim < 2 or array.shape[-1] < 2:
            continue
        heads = measure(array)
        low, high = float(heads.entropy.min()), float(heads.entropy.max())
        text = f"Attention {value.name!r}: {len(heads.entropy)} heads, mean entropy {low:.2f} to {high:.2f} bits"
        text += f" over {array.shape[-1]} keys."
        found.append(finding("run.attention", "info", text, value))
        full = np.flatnonzero(heads.mass >= _SINK)
        if full.size and array.shape[-1] >= _KEYS:
            shown = [f"head {h} key {heads.sink[h]} ({100 * heads.mass[h]:.0f} %)" for h in full]
            text = f"{full.size} of {len(heads.mass)} heads of {value.name!r} send over half of their attention to one"
            found.append(finding("run.attention_sink", "warning", f"{text} key: {listed(shown)}.", value))
    return found


def weights(run: Reading) -> list[TracedValue]:
    """The softmax outputs of the attention that the detectors find in the main graph, as traced."""
    graph = run.model.main_graph
    if graph is None:
        return []
    w = wiring(run.model, graph)
    inside = {node for group in layers(w) if group.detector == "attention" for node in group.members}
    ids = {f"g{graph.index}.v{stop}" for _, stop, members in softmaxes(w) if members <= inside}
    return [value for value in run.floats if value.id in ids]


def measure(array: NDArray[Any]) -> Heads:
    """Entropy and sinks of attention weights [.., heads, queries, keys] or [queries, keys].

    Entropy is -sum(p log2 p) (Shannon 1948). Where nothing lies above the diagonal the map is causal
    and query i sees i + 1 keys; a query that sees fewer than four says nothing about sinks.
    """
    maps = np.asarray(array, np.float64)
    queries, keys = int(maps.shape[-2]), int(maps.shape[-1])
    heads = int(maps.shape[-3]) if maps.ndim >= 3 else 1
    maps = np.moveaxis(maps.reshape(-1, heads, queries, keys), 1, 0)
    before = max(0, keys - queries)  # keys of earlier steps, which every query sees
    row: NDArray[np.int64] = np.arange(queries)
    ahead = np.arange(keys) > row[:, None] + before
    causal = queries > 1 and not bool(maps[..., ahead].any())
    seen = np.asarray(np.clip(row + 1 + before, 1, keys), np.int64) if causal else np.full(queries, keys)
    with np.errstate(divide="ignore", invalid="ignore"):
        bits: NDArray[np.float64] = -np.where(maps > 0, maps * np.log2(maps), 0.0).sum(axis=-1)
    most = np.array([math.log2(max(int(count), 2)) for count in seen])
    share = np.where(seen > 1, bits / most, 0.0)
    wide = seen >= min(_KEYS, keys)
    mean = maps[:, :, wide].mean(axis=(1, 2))
    return Heads(bits.mean(axis=(1, 2)), share.mean(axis=(1, 2)), mean.argmax(axis=1), mean.max(axis=1))
