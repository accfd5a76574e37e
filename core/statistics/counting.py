"""Types of at most 16 bits: count every bit pattern, then everything else follows exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, dtype_of, mini_float_table
from core.statistics.moments import Moments, stats_of
from core.statistics.ordered import between, edges_of, ranks
from core.statistics.types import Histogram, TensorStats


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """Bit patterns of one type in the order of their numbers.

    Attributes:
        order: the finite patterns, ascending.
        values: their numbers, float64.
        size: how many patterns there are.
        nan, pos_inf, neg_inf: the other patterns.
        subnormal: which of ``order`` are non-zero and below the smallest normal number.
    """

    size: int
    order: NDArray[np.int64]
    values: NDArray[np.float64]
    nan: NDArray[np.int64]
    pos_inf: NDArray[np.int64]
    neg_inf: NDArray[np.int64]
    subnormal: NDArray[np.bool_]


def smallest_normal(dtype: DType) -> float:
    """The smallest positive normal number of a float type; 0 where nothing is subnormal."""
    if dtype.kind not in ("float", "complex"):
        return 0.0
    if dtype.mini is not None:
        return 2.0 ** (1 - dtype.mini.bias) if dtype.mini.mantissa else 0.0
    return {"float16": 2.0**-14, "float64": 2.0**-1022, "complex128": 2.0**-1022}.get(dtype.name, 2.0**-126)


@cache
def patterns(name: str) -> Patterns:
    """The patterns of the type of that name, which has at most 16 bits."""
    dtype = dtype_of(name)
    values = _numbers(dtype)
    finite = np.isfinite(values)
    at = np.flatnonzero(finite)
    order = at[np.argsort(values[at], kind="stable")]
    numbers, size = values[order], np.abs(values[order])
    return Patterns(
        size=values.size,
        order=order,
        values=numbers,
        nan=np.flatnonzero(np.isnan(values)),
        pos_inf=np.flatnonzero(values == np.inf),
        neg_inf=np.flatnonzero(values == -np.inf),
        subnormal=(size > 0) & (size < smallest_normal(dtype)),
    )


def _numbers(dtype: DType) -> NDArray[np.float64]:
    codes = np.arange(1 << dtype.bits, dtype=np.int64)
    if dtype.mini is not None:
        return mini_float_table(dtype.name).astype(np.float64)
    if dtype.name == "bfloat16":
        return _widened((codes.astype(np.uint32) << np.uint32(16)).view(np.float32))
    if dtype.name == "float16":
        return _widened(codes.astype(np.uint16).view(np.float16))
    if dtype.kind == "bool":
        return (codes != 0).astype(np.float64)
    half = 1 << (dtype.bits - 1)
    signed = dtype.kind == "int"
    return (codes - np.where(codes >= half, 1 << dtype.bits, 0) if signed else codes).astype(np.float64)


def _widened(numbers: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # signalling NaN patterns
        return numbers.astype(np.float64)


def of_counts(counts: NDArray[np.int64], name: str, bins: int) -> TensorStats:
    """Statistics from how often each bit pattern occurs; quantiles and histogram are exact.

    Mean, std, l1 and l2 are sums over the patterns in float64 (relative error below 1e-13 of l1
    and l2, however many elements there are).
    """
    p = patterns(name)
    total = int(counts.sum())
    nan, positive, negative = (int(counts[at].sum()) for at in (p.nan, p.pos_inf, p.neg_inf))
    seen = counts[p.order]
    here = np.flatnonzero(seen)
    start = Moments(count=total, nan=nan, pos_inf=positive, neg_inf=negative)
    if here.size == 0:
        return stats_of(start, {}, None)
    n, x = seen[here], p.values[here]
    mean = float((n * x).sum()) / start.finite
    m = replace(
        start,
        zero=int(n[x == 0].sum()),
        subnormal=int(n[p.subnormal[here]].sum()),
        low=float(x[0]),
        high=float(x[-1]),
        mean=mean,
        m2=float((n * np.square(x - mean)).sum()),
        l1=float((n * np.abs(x)).sum()),
    )
    return stats_of(m, _quantiles(x, np.cumsum(n)), _histogram(x, n, bins))


def _quantiles(x: NDArray[np.float64], reached: NDArray[np.int64]) -> dict[str, float]:
    def at(rank: int) -> float:
        return float(x[np.searchsorted(reached, rank, "right")])

    return {name: between(at(low), at(high), weight) for name, low, high, weight in ranks(int(reached[-1]))}


def _histogram(x: NDArray[np.float64], n: NDArray[np.int64], bins: int) -> Histogram:
    edges = edges_of(float(x[0]), float(x[-1]), bins)
    upto = np.concatenate([[0], np.cumsum(n)])
    inner = np.searchsorted(x, edges[1:-1], "left")
    counts = np.diff(upto[np.concatenate([[0], inner, [x.size]])])
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))
