"""Repeated blocks, found without names: a period in the sequence of structural hashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.structure.wiring import ACTIVATIONS, CONVOLUTION, ELEMENTWISE, MATRIX, RECURRENT, Wiring, names

_HEAVY: Final = CONVOLUTION | MATRIX | RECURRENT | names("Attention MultiHeadAttention GroupQueryAttention")
_LIGHT: Final = ACTIVATIONS | ELEMENTWISE
_NEAR: Final = 16
"""Distance up to which a hash tells where a value comes from."""
_PERIODS: Final = 48
_NEXT: Final = 6
_LEAST: Final = 4
"""Operators of the smallest block."""
_SHARE: Final = 0.02
_DEPTH: Final = 2
_RUNS: Final = 40


@dataclass(frozen=True, slots=True)
class Run:
    """Equal blocks in a row.

    Attributes:
        blocks: operators of each block, in topological order.
        inner: runs inside the blocks, those of the first block first.
        same_shapes: whether the weights of all blocks have the same shapes.
    """

    blocks: tuple[tuple[int, ...], ...]
    inner: tuple[Run, ...]
    same_shapes: bool


@dataclass(frozen=True, slots=True)
class _Track:
    """Main operators in topological order with what the search needs of each.

    ``crossing[i]`` values are made before and used at or after operator i.
    """

    nodes: tuple[int, ...]
    codes: NDArray[np.int64]
    heavy: NDArray[np.bool_]
    light: NDArray[np.bool_]
    crossing: NDArray[np.int64]

    def part(self, low: int, high: int) -> _Track:
        return _Track(self.nodes[low:high], self.codes[low:high], self.heavy[low:high],
                      self.light[low:high], self.crossing[low:high])  # fmt: skip


def repeated(w: Wiring) -> list[Run]:
    """All runs of two or more equal blocks, in topological order."""
    nodes = tuple(node for node in w.order if not w.side[node])
    if len(nodes) < 2 * _LEAST:
        return []
    heavy = np.array([w.ops[node] in _HEAVY for node in nodes])
    light = np.array([w.ops[node] in _LIGHT for node in nodes])
    track = _Track(nodes, hashes(w, nodes), heavy, light, _crossing(w, nodes))
    runs: list[Run] = []
    pieces, seen = [(0, len(nodes))], 0
    while pieces and seen < _RUNS:
        low, high = pieces.pop()
        seen += 1
        best = _best(track.part(low, high))
        if best is None:
            continue
        start, period, count = best
        runs.append(_run(w, track.part(low + start, high), period, count, 0))
        pieces.append((low + start + period * count, high))
        pieces.append((low, low + start))
    return sorted(runs, key=lambda run: w.position[run.blocks[0][0]])


def hashes(w: Wiring, sequence: Sequence[int]) -> NDArray[np.int64]:
    """One number an operator: equal for equal type, inputs stored or computed, and near producers."""
    place = {node: i for i, node in enumerate(sequence)}
    known: dict[object, int] = {}
    codes = np.empty(len(sequence), np.int64)
    for i, node in enumerate(sequence):
        near = tuple(min(i - place.get(w.maker[value], -_NEAR), _NEAR) for value in w.main[node])
        key = (w.ops[node], len(w.takes[node]), near, len(w.makes[node]))
        codes[i] = known.setdefault(key, len(known))
    return codes


def _crossing(w: Wiring, sequence: Sequence[int]) -> NDArray[np.int64]:
    """How many values are made before and used at or after each place."""
    place = {node: i for i, node in enumerate(sequence)}
    steps = np.zeros(len(sequence) + 1, np.int64)
    for i, node in enumerate(sequence):
        for value in w.makes[node]:
            last = max((place.get(user, -1) for user in w.users[value]), default=-1)
            if last > i and not w.aside[value]:
                steps[i + 1] += 1
                steps[last + 1] -= 1
    return np.cumsum(steps)[:-1]


def _periods(codes: NDArray[np.int64]) -> list[int]:
    """Distances at which equal hashes follow each other most often."""
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    distances: list[NDArray[np.int64]] = []
    for step in range(1, _NEXT + 1):
        same = ranked[step:] == ranked[:-step]
        distances.append((order[step:] - order[:-step])[same])
    every = np.concatenate(distances)
    every = every[(every >= _LEAST) & (every <= len(codes) // 2)]
    if not every.size:
        return []
    values, counts = np.unique(every, return_counts=True)
    weight = counts * values  # a long period has fewer chances to be counted
    return values[np.argsort(-weight, kind="stable")][:_PERIODS].tolist()


def _best(track: _Track) -> tuple[int, int, int] | None:
    """Start, period and count of the run that covers most; the shortest period of equal ones."""
    codes = track.codes
    if len(codes) < 2 * _LEAST:
        return None
    chosen: tuple[int, int, int] | None = None
    most = max(2 * _LEAST - 1, int(_SHARE * len(codes)))
    for period in sorted(_periods(codes)):
        equal = np.concatenate([[False], codes[period:] == codes[:-period], [False]])
        edges = np.flatnonzero(np.diff(equal.astype(np.int8)))
        starts, stops = edges[::2], edges[1::2]
        if not starts.size:
            continue
        longest = int(np.argmax(stops - starts))
        start, length = int(starts[longest]), int(stops[longest] - starts[longest])
        covered = (length // period + 1) * period
        if length >= period and covered > most and track.heavy[start : start + period].any():
            most, chosen = covered, (start, period, length + period)
    return _phase(track, *chosen) if chosen is not None else None


def _phase(track: _Track, start: int, period: int, extent: int) -> tuple[int, int, int]:
    """Cut where fewest values cross: between blocks only the value that is handed on does."""
    options: list[tuple[float, int, bool, int]] = []
    for offset in range(min(period, extent - 2 * period + 1)):
        count = (extent - offset) // period
        cuts = start + offset + period * np.arange(1, count)
        options.append((float(track.crossing[cuts].mean()), -count, bool(track.light[start + offset]), offset))
    _, less, _, offset = min(options)
    return start + offset, period, -less


def _run(w: Wiring, track: _Track, period: int, count: int, depth: int) -> Run:
    """The blocks of a run that begins where ``track`` does, with the runs inside them."""
    blocks = tuple(track.nodes[i * period : (i + 1) * period] for i in range(count))
    found = _best(track.part(0, period)) if depth < _DEPTH else None
    inner: list[Run] = []
    if found is not None:
        at, step, times = found
        for i in range(count):
            inner.append(_run(w, track.part(i * period + at, (i + 1) * period), step, times, depth + 1))
    return Run(blocks, tuple(inner), len({_shapes(w, block) for block in blocks}) == 1)


def _shapes(w: Wiring, block: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    stored = w.graph.columns.tensor
    return tuple(
        w.model.tensors[int(stored[value])].shape for node in block for value in w.takes[node] if stored[value] >= 0
    )
