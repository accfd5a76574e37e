"""How far two values of equal shape are apart, and two runs along their depth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ModelError, UsageError
from core.trace.types import TracedValue
from core.trace.views.sampling import real


@dataclass(frozen=True, slots=True)
class Difference:
    """Measures over the places where both are finite.

    Attributes:
        max_abs: largest absolute difference.
        relative_l2: l2 of the difference over l2 of the first.
        cosine: of the angle between them, NaN where one is all zero.
        sqnr_db: 10 log10(power of the first / power of the difference), infinite where equal.
        compared, count: elements compared, elements in all.
    """

    max_abs: float
    relative_l2: float
    cosine: float
    sqnr_db: float
    compared: int
    count: int


def difference(first: NDArray[Any], second: NDArray[Any]) -> Difference:
    """The measures of ``second`` against ``first``, in float64.

    Raises:
        UsageError: if their shapes differ.
    """
    if first.shape != second.shape:
        raise UsageError(f"values of shapes {first.shape} and {second.shape} cannot be compared element by element")
    a, b = real(first).ravel(), real(second).ravel()
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    gap = b - a
    size, other, apart = (math.sqrt(float(x @ x)) for x in (a, b, gap))
    largest = float(np.abs(gap).max(initial=0.0))
    relative = apart / size if size else (0.0 if apart == 0 else math.inf)
    cosine = min(1.0, max(-1.0, float(a @ b) / (size * other))) if size and other else math.nan
    sqnr = math.inf if apart == 0 else 20 * math.log10(size / apart) if size else -math.inf
    return Difference(largest, relative, cosine, sqnr, len(a), first.size)


@dataclass(frozen=True, slots=True)
class Drift:
    """One value in two runs; ``found`` is ``None`` where ``reason`` says why they cannot be compared."""

    first: TracedValue
    second: TracedValue | None
    found: Difference | None
    reason: str = ""


Fetch = Callable[[TracedValue], NDArray[Any]]


def along_depth(
    first: Sequence[TracedValue], second: Sequence[TracedValue], fetch: Fetch, fetch_other: Fetch
) -> Iterator[Drift]:
    """Every value of the first run against the one of the same name and step in the second, in order; one at a time."""
    others = {(v.name, v.step): v for v in second}
    for value in first:
        other = others.get((value.name, value.step))
        yield _drift(value, other, fetch, fetch_other)


def _drift(value: TracedValue, other: TracedValue | None, fetch: Fetch, fetch_other: Fetch) -> Drift:
    if other is None:
        return Drift(value, None, None, "the second run has no such value")
    if value.dtype == "string" or value.shape != other.shape:
        return Drift(value, other, None, "text" if value.dtype == "string" else "the shapes differ")
    if not (value.stored and other.stored):
        return Drift(value, other, None, "its elements were not kept")
    try:
        return Drift(value, other, difference(fetch(value), fetch_other(other)))
    except ModelError as error:
        return Drift(value, other, None, str(error))
