"""Arrays of a given shape and element type without any file: constant, random, ramp, one-hot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of
from core.errors import UsageError
from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import SYNTHETIC, Generated
from core.inputs.generic import generate
from core.inputs.npy import read_npy
from core.inputs.recipe import Recipe


@dataclass(frozen=True, slots=True)
class _Declared:
    """A shape and type as an input would declare them."""

    dtype: str
    shape: tuple[int, ...]
    name: str = "array"


def zeros(shape: tuple[int, ...], dtype: str) -> Generated:
    """All zero, or empty text."""
    return _basic(Recipe("zeros"), shape, dtype)


def ones(shape: tuple[int, ...], dtype: str) -> Generated:
    """All one, or the text ``1``."""
    return _basic(Recipe("ones"), shape, dtype)


def random(shape: tuple[int, ...], dtype: str, seed: int) -> Generated:
    """Mean 0 and deviation 1 for floats, 0 to 9 for whole numbers, lower-case words for text."""
    return _basic(Recipe("random", seed), shape, dtype)


def constant(shape: tuple[int, ...], dtype: str, value: float) -> Generated:
    """One number everywhere; text is the number written out."""
    if dtype_of(dtype).kind == "string":
        return Generated(np.full(bounded(shape), f"{value:g}", object), f"constant {value:g}", SYNTHETIC)
    return Generated(np.broadcast_to(as_dtype(np.asarray(value), dtype), bounded(shape)).copy(),
                     f"constant {value:g}", SYNTHETIC)  # fmt: skip


def uniform(shape: tuple[int, ...], dtype: str, seed: int, low: float, high: float) -> Generated:
    """Equally likely numbers from ``low`` to ``high``.

    Raises:
        InputMismatch: if no number of the type lies between them.
    """
    return _basic(Recipe("random", seed, low, high), shape, dtype)


def normal(shape: tuple[int, ...], dtype: str, seed: int, mean: float, std: float) -> Generated:
    """Numbers of a normal distribution; whole numbers are rounded."""
    numbers = np.random.default_rng(seed).normal(mean, std, bounded(shape))
    return Generated(as_dtype(np.asarray(numbers), dtype), f"normal {mean:g} ± {std:g}, seed {seed}", SYNTHETIC)


def ramp(shape: tuple[int, ...], dtype: str, start: float, step: float, axis: int) -> Generated:
    """``start + step * i`` along one axis, or over all elements in a row where ``axis`` is 99."""
    bounded(shape)
    if axis == 99 or not shape:
        numbers = (start + step * np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape)
    else:
        at = _axis(axis, shape)
        line = start + step * np.arange(shape[at], dtype=np.float64)
        numbers = np.broadcast_to(line.reshape([-1 if i == at else 1 for i in range(len(shape))]), shape)
    return Generated(as_dtype(numbers, dtype), f"ramp from {start:g} by {step:g}", SYNTHETIC)


def one_hot(shape: tuple[int, ...], dtype: str, seed: int, axis: int, index: int) -> Generated:
    """One at ``index`` of an axis, at a random place of every row where it is -1."""
    bounded(shape)
    at = _axis(axis, shape)
    if index >= shape[at]:
        raise UsageError(f"index of one_hot is {index}, the axis has {shape[at]} places")
    rows = (*shape[:at], 1, *shape[at + 1 :])
    places = np.random.default_rng(seed).integers(0, max(1, shape[at]), rows) if index < 0 else np.full(rows, index)
    numbers = np.zeros(shape, np.uint8)
    if numbers.size:
        np.put_along_axis(numbers, places, 1, at)
    words = f"one-hot {index}" if index >= 0 else f"one-hot, seed {seed}"
    return Generated(as_dtype(numbers, dtype), words, SYNTHETIC)


def stored(path: str) -> Generated:
    """An array as a ``.npy`` file holds it; reads all of the file."""
    return Generated(read_npy(path), Recipe("npy", path=path).describe(), "As stored.")


def _basic(recipe: Recipe, shape: tuple[int, ...], dtype: str) -> Generated:
    array: NDArray[np.generic] = generate(_Declared(dtype, bounded(shape)), recipe)
    return Generated(array, recipe.describe(), SYNTHETIC)


def _axis(axis: int, shape: tuple[int, ...]) -> int:
    if not -len(shape) <= axis < len(shape):
        raise UsageError(f"axis is {axis}, the array has {len(shape)} axes")
    return axis % len(shape)
