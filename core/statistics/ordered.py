"""Exact quantiles and histogram from sorted finite elements."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.statistics.types import QUANTILES, Histogram


def edges_of(low: float, high: float, bins: int) -> NDArray[np.float64]:
    """Edges of ``bins`` equal steps from ``low`` to ``high``, as ``numpy.histogram`` makes them.

    Where both are equal the range is ``low - 0.5`` to ``low + 0.5``; a value too large for that
    to matter gets its two neighbours instead.
    """
    if low == high:
        low, high = low - 0.5, high + 0.5
        if low == high:
            most = sys.float_info.max
            low, high = max(math.nextafter(low, -math.inf), -most), min(math.nextafter(high, math.inf), most)
    if math.isfinite(high - low):
        return np.linspace(low, high, bins + 1)
    return np.linspace(low / 4, high / 4, bins + 1) * 4  # the range itself overflows float64


def thresholds(edges: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """For each edge the smallest number of ``dtype`` that is not below it.

    ``x < edge`` for a number x of that type is then ``x < threshold``, without widening x.
    """
    if dtype.kind != "f":
        bounds = np.iinfo(dtype)
        return np.array([min(max(math.ceil(e), bounds.min), bounds.max) for e in edges.tolist()], dtype)
    if dtype.itemsize == 8:
        return edges.astype(dtype)
    with np.errstate(over="ignore"):  # an edge may round up beyond the type's largest number
        near = edges.astype(dtype)
    return np.where(near < edges, np.nextafter(near, dtype.type(np.inf)), near)


def histogram(ordered: NDArray[Any], bins: int) -> Histogram:
    """Counts in ``bins`` equal steps over the range of sorted finite elements (at least one)."""
    edges = edges_of(float(ordered[0]), float(ordered[-1]), bins)
    inner = np.searchsorted(ordered, thresholds(edges[1:-1], ordered.dtype), "left")
    counts = np.diff(np.concatenate([[0], inner, [ordered.size]]))
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))


def ranks(n: int) -> list[tuple[str, int, int, float]]:
    """For each quantile its name, the two order statistics around it and the weight of the second.

    Formula: Hyndman and Fan, type 7, which is numpy's ``linear``: rank ``(n - 1) * q``.
    """
    out: list[tuple[str, int, int, float]] = []
    for q in QUANTILES:
        place = (n - 1) * q
        below = min(int(place), n - 1)
        out.append((str(q), below, min(below + 1, n - 1), place - below))
    return out


def between(a: float, b: float, weight: float) -> float:
    """``a`` to ``b`` in proportion, from the nearer end as numpy does it."""
    step = b - a
    if not math.isfinite(step):
        return a * (1 - weight) + b * weight
    return b - step * (1 - weight) if weight >= 0.5 else a + step * weight


def quantiles(ordered: NDArray[Any]) -> dict[str, float]:
    """The quantiles of ``types.QUANTILES`` of sorted finite elements (at least one)."""
    return {
        name: between(float(ordered[low]), float(ordered[high]), weight)
        for name, low, high, weight in ranks(ordered.size)
    }
