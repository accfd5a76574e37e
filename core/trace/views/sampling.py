"""Thinning an array to what a picture can show, and saying so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Thin:
    """An array with every ``steps[i]``-th place of axis i, beginning with the first."""

    array: NDArray[Any]
    steps: tuple[int, ...]

    @property
    def words(self) -> str:
        """How it was sampled, in a few words."""
        if all(step == 1 for step in self.steps):
            return "every element shown"
        shown = ", ".join(f"axis {axis} every {_nth(step)}" for axis, step in enumerate(self.steps) if step > 1)
        return f"thinned: {shown}"


def thin(array: NDArray[Any], *most: int) -> Thin:
    """At most ``most[i]`` places of each of the last axes, evenly apart; the other axes stay whole."""
    lead = array.ndim - len(most)
    steps = tuple([1] * lead + [max(1, -(-size // m)) for size, m in zip(array.shape[lead:], most, strict=True)])
    return Thin(array[tuple(slice(None, None, step) for step in steps)], steps)


def real(array: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers for a chart: float64, magnitude of complex, bool as 0 and 1."""
    if array.dtype.kind == "c":
        return np.abs(array).astype(np.float64)
    return np.asarray(array, np.float64)


def finite(array: NDArray[Any]) -> NDArray[np.float64]:
    """Float64 with every non-number as NaN, which a chart leaves blank."""
    numbers = real(array)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _nth(step: int) -> str:
    ending = "th" if step % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(step % 10, "th")
    return f"{step}{ending}"
