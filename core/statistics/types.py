"""What is known about the numbers of a tensor or of an activation."""

from __future__ import annotations

from dataclasses import dataclass, field

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
