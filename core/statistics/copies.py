"""Tensors that are nearly equal: found by a sample of their elements, then measured over all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of
from core.errors import Cancelled
from core.ir import Model, Tensor
from core.limits import KIB
from core.statistics.tensors import Progress
from core.tensors.read import Index, blocks, decodable, values_slice

RUNS: Final = 8
"""Places a sample is taken from, evenly spaced ..."""

RUN: Final = 256
"""... and elements taken at each."""

SMALLEST: Final = 64
"""Tensors of fewer elements are not compared: small ones agree by chance."""

SAME_SHAPE: Final = 2048
"""Tensors of one shape that are compared with each other, the first ones."""

PAIRS: Final = 256
"""Pairs measured over all their elements, the nearest samples first."""

WITHIN: Final = 0.05

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NearCopy:
    """Two tensors of one shape whose elements nearly agree.

    Attributes:
        first, second: indexes of the tensors, ``first < second``.
        cosine: cosine of the angle between them, 0 where one is all zero.
        distance: ``|a - b| / max(|a|, |b|)`` in the Euclidean norm over all elements; 0 where equal.
    """

    first: int
    second: int
    cosine: float
    distance: float


def near_copies(
    model: Model,
    indices: Iterable[int] | None = None,
    *,
    within: float = WITHIN,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[NearCopy]:
    """Pairs of tensors of one shape at a distance of at most ``within``, nearest first; reads from disk.

    A sample of up to ``RUNS * RUN`` elements of each tensor chooses the pairs (those twice as far
    apart in the sample are dropped), which are then measured exactly. At most ``SAME_SHAPE``
    tensors of a shape and ``PAIRS`` pairs are looked at. Tensors that share a storage, are all
    zero or are not finite are left out.

    Raises:
        Cancelled: if ``cancelled`` says so.
    """
    chosen = [i for i in (range(len(model.tensors)) if indices is None else indices) if _comparable(model, i)]
    groups: dict[tuple[int, ...], list[int]] = {}
    for i in chosen:
        groups.setdefault(model.tensors[i].shape, []).append(i)
    shapes = [group[:SAME_SHAPE] for group in groups.values() if len(group) > 1]
    candidates, looked = list[tuple[float, int, int]](), 0
    for group in shapes:
        samples, flat = list[Floats](), all(model.tensors[i].strides is None for i in group)
        for i in group:
            _ask(cancelled)
            samples.append(_sample(model, model.tensors[i], flat))
            looked += 1
            if progress is not None:
                progress(looked, len(chosen))
        candidates += _close(group, np.stack(samples), 2 * within)
    found = list[NearCopy]()
    for _, a, b in sorted(candidates)[:PAIRS]:
        if (pair := _measured(model, a, b, cancelled)) is not None and pair.distance <= within:
            found.append(pair)
    return sorted(found, key=lambda pair: (pair.distance, pair.first, pair.second))


def _ask(cancelled: Callable[[], bool] | None) -> None:
    if cancelled is not None and cancelled():
        raise Cancelled("the search for near copies was stopped")


def _comparable(model: Model, index: int) -> bool:
    tensor = model.tensors[index]
    real = dtype_of(tensor.dtype).kind in ("float", "int", "uint")
    return real and tensor.elements >= SMALLEST and not tensor.problem and not decodable(model, index)


def _sample(model: Model, tensor: Tensor, flat: bool) -> Floats:
    """Runs at evenly spaced places of the flat tensor, or beginnings of evenly spaced rows."""
    if flat:
        tensor = replace(tensor, shape=(tensor.elements,))
        starts = np.unique(np.linspace(0, max(0, tensor.elements - RUN), RUNS).astype(np.int64))
        cuts: list[Index] = [(slice(at, at + RUN),) for at in starts.tolist()]
    else:
        picked = np.unique(np.linspace(0, math.prod(tensor.shape[:-1]) - 1, RUNS).astype(np.int64))
        places = np.stack(np.unravel_index(picked, (*tensor.shape[:-1], 1)), axis=1)[:, :-1]
        cuts = [(*place, slice(0, RUN)) for place in places.tolist()]
    parts = [values_slice(model, tensor, cut) for cut in cuts]
    return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in parts])


def _close(group: list[int], samples: Floats, within: float) -> list[tuple[float, int, int]]:
    """Pairs whose samples are within that distance, by the matrix of their products."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        norms = np.sqrt(np.square(samples).sum(axis=1))
        good = np.flatnonzero(np.isfinite(norms) & (norms > 0))
        samples, norms = samples[good], norms[good]
        products = samples @ samples.T
        apart = np.sqrt(np.maximum(np.square(norms)[:, None] + np.square(norms)[None] - 2 * products, 0))
        apart /= np.maximum(norms[:, None], norms[None])
    first, second = np.nonzero(np.triu(apart <= within + 1e-6, 1))
    return [
        (float(apart[i, j]), group[good[i]], group[good[j]])
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]


def _measured(model: Model, a: int, b: int, cancelled: Callable[[], bool] | None) -> NearCopy | None:
    one, other = model.tensors[a], model.tensors[b]
    if one.storage >= 0 and one.storage == other.storage:
        return None
    sums = np.zeros(4)
    for left, right in zip(blocks(model, a, 256 * KIB), blocks(model, b, 256 * KIB), strict=True):
        _ask(cancelled)
        x, y = _wide(left), _wide(right)
        with np.errstate(invalid="ignore", over="ignore"):
            sums += (x @ x, y @ y, x @ y, np.square(x - y).sum())
    if not np.isfinite(sums).all():
        return None
    xx, yy, xy, gap = sums.tolist()
    most = max(xx, yy)
    return NearCopy(
        min(a, b), max(a, b),
        cosine=xy / math.sqrt(xx * yy) if xx and yy else 0.0,
        distance=math.sqrt(gap / most) if most else 0.0,
    )  # fmt: skip


def _wide(block: NDArray[Any]) -> Floats:
    return block.reshape(-1).astype(np.float64)
