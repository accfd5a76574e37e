"""Counts and moments of one block of numbers, and how those of two blocks combine.

Blocks combine by the pairwise update of Chan, Golub and LeVeque, "Updating formulae and a
pairwise algorithm for computing sample variances" (1979); inside a block the squared deviations
are taken from the block's own mean in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.statistics.types import Histogram, TensorStats

BLOCK: Final = 1 << 17
"""Elements taken at once by the numpy path (1 MB of float64)."""

_FAR: Final = 600
_LARGE: Final = 2.0**480
_SMALL: Final = 2.0**-400


@dataclass(frozen=True, slots=True)
class Moments:
    """What one block contributes.

    Attributes:
        count: elements, non-finite ones included.
        low, high: over the finite elements; ``inf`` and ``-inf`` where there is none.
        mean, m2, l1: mean, sum of squared deviations from it and sum of absolute values of the
            finite elements, each element times ``2**-shift``.
        shift: 0, or +-600 where squares of float64 would overflow or vanish.
    """

    count: int = 0
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0
    zero: int = 0
    subnormal: int = 0
    low: float = math.inf
    high: float = -math.inf
    mean: float = 0.0
    m2: float = 0.0
    l1: float = 0.0
    shift: int = 0

    @property
    def finite(self) -> int:
        """Elements that are numbers."""
        return self.count - self.nan - self.pos_inf - self.neg_inf

    @property
    def absmax(self) -> float:
        """Largest absolute value, ``-inf`` where no element is finite."""
        return max(self.high, -self.low)


EMPTY: Final = Moments()


def of_block(block: NDArray[Any], tiny: float = 0.0) -> Moments:
    """Moments of a flat block of float32, float64 or integers; up to three copies as float64.

    Args:
        block: the elements.
        tiny: smallest normal number of their type; non-zero elements below it are subnormal.
    """
    if block.dtype.kind != "f":
        return _of_finite(block, Moments(count=block.size), tiny)
    finite = np.isfinite(block)
    if finite.all():
        return _of_finite(block, Moments(count=block.size), tiny)
    wrong = block[~finite]
    nan, positive = int(np.isnan(wrong).sum()), int((wrong == np.inf).sum())
    start = Moments(count=block.size, nan=nan, pos_inf=positive, neg_inf=wrong.size - nan - positive)
    return _of_finite(block[finite], start, tiny)


def _of_finite(block: NDArray[Any], start: Moments, tiny: float) -> Moments:
    if block.size == 0:
        return start
    low, high = float(block.min()) + 0.0, float(block.max()) + 0.0  # never -0
    top = max(high, -low)
    wide = block.astype(np.float64)
    size = np.abs(wide)
    shift = 0
    if out_of_range(top):
        shift = _FAR if top > _LARGE else -_FAR
        scale = 2.0**-shift
        wide, scaled = wide * scale, size * scale
    else:
        scaled = size
    mean = float(wide.mean())
    wide = wide - mean
    return Moments(
        count=start.count,
        nan=start.nan,
        pos_inf=start.pos_inf,
        neg_inf=start.neg_inf,
        zero=int(block.size - np.count_nonzero(block)),
        subnormal=int(np.count_nonzero((size < tiny) & (size > 0))) if tiny else 0,
        low=low,
        high=high,
        mean=mean,
        m2=float(np.square(wide).sum()),
        l1=float(scaled.sum()),
        shift=shift,
    )


def out_of_range(absmax: float) -> bool:
    """Whether squares of numbers up to ``absmax`` overflow float64 or vanish."""
    return absmax > _LARGE or 0 < absmax < _SMALL


def merge(a: Moments, b: Moments) -> Moments:
    """The moments of both blocks together."""
    if a.finite == 0 or b.finite == 0:
        mean, m2, l1, shift = (b.mean, b.m2, b.l1, b.shift) if a.finite == 0 else (a.mean, a.m2, a.l1, a.shift)
    else:
        shift = max(a.shift, b.shift)
        (ma, va, la), (mb, vb, lb) = _at_shift(a, shift), _at_shift(b, shift)
        share, step = b.finite / (a.finite + b.finite), mb - ma
        mean = ma + step * share
        m2 = va + vb + step * step * share * a.finite
        l1 = la + lb
    return Moments(
        count=a.count + b.count,
        nan=a.nan + b.nan,
        pos_inf=a.pos_inf + b.pos_inf,
        neg_inf=a.neg_inf + b.neg_inf,
        zero=a.zero + b.zero,
        subnormal=a.subnormal + b.subnormal,
        low=min(a.low, b.low),
        high=max(a.high, b.high),
        mean=mean,
        m2=m2,
        l1=l1,
        shift=shift,
    )


def _at_shift(m: Moments, shift: int) -> tuple[float, float, float]:
    by = m.shift - shift
    return (m.mean, m.m2, m.l1) if by == 0 else (_ldexp(m.mean, by), _ldexp(m.m2, 2 * by), _ldexp(m.l1, by))


def spread(m: Moments) -> tuple[float, float, float, float]:
    """Mean, population standard deviation, l1 and l2 of the finite elements (at least one).

    ``l2**2 = m2 + n * mean**2``: two terms of one sign, so nothing cancels. A sum beyond the
    range of float64 comes out as infinite.
    """
    n = m.finite
    variance = m.m2 / n
    l2 = math.sqrt(m.m2 + n * m.mean * m.mean)
    by = m.shift
    return _ldexp(m.mean, by), _ldexp(math.sqrt(variance), by), _ldexp(m.l1, by), _ldexp(l2, by)


def _ldexp(x: float, by: int) -> float:
    try:
        return math.ldexp(x, by)
    except OverflowError:
        return math.copysign(math.inf, x)


def stats_of(m: Moments, quantiles: dict[str, float], histogram: Histogram | None, error: float = 0.0) -> TensorStats:
    """Put moments, quantiles and histogram together."""
    if m.finite == 0:
        return TensorStats(count=m.count, nan=m.nan, pos_inf=m.pos_inf, neg_inf=m.neg_inf)
    mean, std, l1, l2 = spread(m)
    return TensorStats(
        count=m.count,
        nan=m.nan,
        pos_inf=m.pos_inf,
        neg_inf=m.neg_inf,
        zero=m.zero,
        subnormal=m.subnormal,
        min=m.low,
        max=m.high,
        mean=min(max(mean, m.low), m.high),
        std=std,
        absmax=m.absmax,
        l1=l1,
        l2=l2,
        quantiles=quantiles,
        histogram=histogram,
        exact=error == 0.0,
        error=error,
    )
