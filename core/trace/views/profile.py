"""Each channel of a value in four numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.trace.views.sampling import finite


@dataclass(frozen=True, slots=True)
class Profile:
    """Figures by channel, each array [channels], over the finite elements; NaN where a channel has none.

    Attributes:
        std: population standard deviation.
        zero: share of elements that are exactly zero.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    zero: NDArray[np.float64]


def channel_profile(array: NDArray[Any], axis: int) -> Profile:
    """The profile along ``axis``."""
    rows = np.moveaxis(finite(array), axis, 0).reshape(array.shape[axis], -1)
    seen = np.isfinite(rows)
    count = seen.sum(axis=1)
    safe = np.maximum(count, 1)
    known = np.where(seen, rows, 0.0)
    mean = known.sum(axis=1) / safe
    spread = np.sqrt(np.where(seen, np.square(rows - mean[:, None]), 0.0).sum(axis=1) / safe)
    low = np.where(seen, rows, np.inf).min(axis=1)
    high = np.where(seen, rows, -np.inf).max(axis=1)
    blank = np.where(count > 0, 0.0, np.nan)
    return Profile(
        mean + blank, spread + blank, np.where(count > 0, low, np.nan), np.where(count > 0, high, np.nan),
        (rows == 0).mean(axis=1),
    )  # fmt: skip
