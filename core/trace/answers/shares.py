"""What share of a value's elements lies beyond a bound: exact from the elements, else bounded by the histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.statistics.types import TensorStats


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the finite elements, 0 to 1, between two ends that are equal where it is exact."""

    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the two ends meet."""
        return self.low == self.high


def beyond(stats: TensorStats, bound: float, array: NDArray[Any] | None = None) -> Share:
    """The share of finite elements with ``|x| >= bound``.

    Without the elements, whole bins beyond the bound give the low end, the bins that it cuts the
    high end; a largest absolute value below it settles the matter.
    """
    if not stats.finite or stats.absmax is None or stats.absmax < bound:
        return Share(0.0, 0.0)
    if array is not None:
        numbers = np.abs(np.asarray(array, np.float64))
        share = float(np.count_nonzero((numbers >= bound) & np.isfinite(numbers))) / stats.finite
        return Share(share, share)
    if stats.histogram is None:
        return Share(1 / stats.finite, 1.0)
    edges = np.asarray(stats.histogram.edges)
    counts = np.asarray(stats.histogram.counts, np.float64)
    left, right = edges[:-1], edges[1:]
    whole = (left >= bound) | (right <= -bound)
    touched = (right >= bound) | (left <= -bound)
    slack = 0.0 if stats.exact else stats.error
    low = max(float(counts[whole].sum()) / stats.finite - slack, 1 / stats.finite)
    return Share(low, min(1.0, float(counts[touched].sum()) / stats.finite + slack))


def below(stats: TensorStats, bound: float, array: NDArray[Any] | None = None) -> Share:
    """The share of finite elements that are not zero and have ``|x| < bound``."""
    if not stats.finite:
        return Share(0.0, 0.0)
    zeros = stats.zero / stats.finite
    over = beyond(stats, bound, array)
    return Share(max(0.0, 1 - zeros - over.high), max(0.0, 1 - zeros - over.low))
