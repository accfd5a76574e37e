"""What is known about the numbers of a tensor or of an activation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

QUANTILES: tuple[float, ...] = (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)
"""Quantiles that every full statistic carries."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of finite elements in equal steps.

    Attributes:
        edges: bin edges, one more than ``counts``; bin i holds ``edges[i] <= x < edges[i + 1]``,
            the last one also its right end.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorStats:
    """Statistics over all elements; min to quantiles are over the finite elements only.

    Attributes:
        count: elements, non-finite ones included.
        nan, pos_inf, neg_inf: how many are not finite.
        zero: how many are +0 or -0.
        subnormal: how many are non-zero below the smallest normal number of their type.
        min, max, mean, std, absmax: ``None`` where no element is finite; ``std`` is the
            population one (divides by the number of finite elements).
        l1, l2: sum of absolute values, root of the sum of squares.
        quantiles: value by quantile as text (``"0.01"``), linear interpolation between order
            statistics (numpy's ``linear``).
        exact: whether quantiles and histogram are exact rather than within ``error`` of a rank.
        error: bound on the rank error as a share of the finite elements.
    """

    count: int
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0
    zero: int = 0
    subnormal: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    absmax: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    quantiles: dict[str, float] = field(default_factory=dict[str, float])
    histogram: Histogram | None = None
    exact: bool = True
    error: float = 0.0

    @property
    def inf(self) -> int:
        """Infinite elements of both signs."""
        return self.pos_inf + self.neg_inf

    @property
    def finite(self) -> int:
        """Elements that are numbers."""
        return self.count - self.nan - self.inf

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; ``None`` for what is unknown or beyond the range of numbers."""
        h = self.histogram
        return {
            "count": self.count,
            "nan": self.nan,
            "inf": self.inf,
            "pos_inf": self.pos_inf,
            "neg_inf": self.neg_inf,
            "zero": self.zero,
            "subnormal": self.subnormal,
            **{name: _plain(getattr(self, name)) for name in _NUMBERS},
            "quantiles": {name: _plain(value) for name, value in self.quantiles.items()},
            "histogram": None if h is None else {"edges": list(h.edges), "counts": list(h.counts)},
            "exact": self.exact,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TensorStats:
        """The inverse of ``to_json``; a sum that was beyond the range comes back as infinite."""
        h = data["histogram"]
        numbers = {name: data[name] for name in _NUMBERS}
        for name in ("l1", "l2"):
            numbers[name] = math.inf if numbers[name] is None else numbers[name]
        return cls(
            **{name: data[name] for name in _COUNTS},
            **numbers,
            quantiles=dict(data["quantiles"]),
            histogram=None if h is None else Histogram(tuple(h["edges"]), tuple(h["counts"])),
            exact=data["exact"],
            error=data["error"],
        )


_COUNTS = ("count", "nan", "pos_inf", "neg_inf", "zero", "subnormal")
_NUMBERS = ("min", "max", "mean", "std", "absmax", "l1", "l2")


def _plain(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def spark(stats: TensorStats, bins: int = 16) -> list[int]:
    """Counts of the histogram drawn together to at most ``bins`` columns, empty without one."""
    if stats.histogram is None:
        return []
    counts = stats.histogram.counts
    width = -(-len(counts) // bins)
    return [sum(counts[at : at + width]) for at in range(0, len(counts), width)]
