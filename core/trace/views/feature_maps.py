"""The channels of a picture-like value as a grid, and one of them laid over the picture that went in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from core.trace.views.sampling import finite, thin

Order = Literal["number", "strongest"]
Norm = Literal["common", "each"]
SIDE: Final = 96
"""Rows and columns of one map that a grid shows."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Channels side by side.

    Attributes:
        maps: [channels shown, height, width], NaN where not finite.
        channels: their numbers.
        low, high: ends of the colour scale, of each map where ``norm`` is ``each``.
        words: how it was sampled.
    """

    maps: NDArray[np.float64]
    channels: tuple[int, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    words: str


def grid(maps: NDArray[Any], most: int = 24, start: int = 0, order: Order = "number", norm: Norm = "common") -> Grid:
    """Some of the channels of [channels, height, width].

    Args:
        start: how many channels of the order to pass over.
        order: by number, or the largest root mean square first.
        norm: one colour scale for all, or each its own range.
    """
    numbers = finite(maps)
    ranked = list(range(len(numbers)))
    if order == "strongest":
        with np.errstate(over="ignore"):
            power = np.nan_to_num(np.square(numbers)).mean(axis=(1, 2))
        ranked = [int(i) for i in np.argsort(-power, kind="stable")]
    chosen = ranked[start : start + most]
    small = thin(numbers[chosen], SIDE, SIDE)
    low, high = _ends(numbers[chosen])
    if norm == "common" and len(chosen):
        low, high = np.full_like(low, low.min()), np.full_like(high, high.max())
    words = f"{len(chosen)} of {len(numbers)} channels, {small.words}"
    return Grid(small.array, tuple(chosen), low, high, words)


@dataclass(frozen=True, slots=True)
class Overlay:
    """A map of [height, width] from 0 to 1 on a picture [height, width, 3] of bytes.

    Attributes:
        low, high: the values that 0 and 1 stand for.
    """

    picture: NDArray[np.uint8]
    heat: NDArray[np.float64]
    low: float
    high: float


def overlay(picture: NDArray[Any], feature: NDArray[Any]) -> Overlay:
    """One map [h, w] stretched over the picture [height, width, 3], nearest place, without smoothing."""
    height, width = int(picture.shape[0]), int(picture.shape[1])
    numbers = finite(feature)
    rows: NDArray[np.int64] = np.arange(height) * numbers.shape[0] // height
    columns: NDArray[np.int64] = np.arange(width) * numbers.shape[1] // width
    low, high = (float(end[0]) for end in _ends(numbers[None]))
    heat = (numbers[np.ix_(rows, columns)] - low) / (high - low if high > low else 1.0)
    return Overlay(np.asarray(picture, np.uint8), np.nan_to_num(heat), low, high)


def picture_of(array: NDArray[Any]) -> NDArray[np.uint8] | None:
    """An input [.., channels, height, width] or [.., height, width, channels] as a picture, stretched to its range.

    ``None`` where it has no axis of 1 or 3 channels or a side is below 8.
    """
    if array.ndim not in (3, 4) or array.dtype.kind not in "fiu":
        return None
    first = finite(array[0] if array.ndim == 4 else array)
    if first.shape[0] in (1, 3):
        first = np.moveaxis(first, 0, -1)
    if first.shape[-1] not in (1, 3) or min(first.shape[:2]) < 8 or not np.isfinite(first).any():
        return None
    low, high = float(np.nanmin(first)), float(np.nanmax(first))
    scaled = np.nan_to_num((first - low) / (high - low if high > low else 1.0)) * 255
    return np.ascontiguousarray(np.broadcast_to(scaled, (*scaled.shape[:2], 3))).astype(np.uint8)


def _ends(maps: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest finite number of each map, 0 and 0 where there is none."""
    seen = np.isfinite(maps)
    low = np.where(seen, maps, np.inf).min(axis=(1, 2), initial=np.inf)
    high = np.where(seen, maps, -np.inf).max(axis=(1, 2), initial=-np.inf)
    none = ~seen.any(axis=(1, 2))
    return np.where(none, 0.0, low), np.where(none, 0.0, high)
