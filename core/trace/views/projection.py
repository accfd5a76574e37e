"""Rows of a value as points: principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.trace.views.sampling import finite

ROWS: Final = 2000
FEATURES: Final = 4096


@dataclass(frozen=True, slots=True)
class Projection:
    """Points of rows.

    Attributes:
        points: [rows, components], centred.
        explained: share of the variance along each component.
        rows: the row number of each point.
        words: how it was sampled.
    """

    points: NDArray[np.float64]
    explained: tuple[float, ...]
    rows: NDArray[np.int64]
    words: str


def principal(array: NDArray[Any], components: int = 2) -> Projection:
    """The first principal components of the rows of [.., features] (Pearson 1901), by singular values.

    Beyond ``ROWS`` rows or ``FEATURES`` features evenly thinned. A component's sign is chosen so that its largest
    coordinate is positive. Rows with a non-number are left out.
    """
    flat = finite(array).reshape(-1, array.shape[-1])
    row_step, step = max(1, -(-len(flat) // ROWS)), max(1, -(-flat.shape[1] // FEATURES))
    rows = np.arange(0, len(flat), row_step)
    sample = flat[::row_step, ::step]
    whole = np.isfinite(sample).all(axis=1)
    rows, sample = rows[whole], sample[whole]
    words = "every row shown" if row_step == step == 1 else f"every {row_step}. row, every {step}. feature"
    if len(sample) < 2:
        return Projection(np.zeros((len(sample), components)), (0.0,) * components, rows, words)
    centred = sample - sample.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    kept = min(components, len(s))
    points = np.zeros((len(sample), components))
    points[:, :kept] = u[:, :kept] * s[:kept]
    largest = points[np.abs(points).argmax(axis=0), np.arange(components)]
    total = float(np.square(s).sum()) or 1.0
    explained = tuple(float(np.square(s[i])) / total if i < kept else 0.0 for i in range(components))
    return Projection(points * np.where(largest < 0, -1.0, 1.0), explained, rows, words)
