"""Statistics of an array in memory, by numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DTYPES, DType
from core.errors import UsageError
from core.statistics import ordered
from core.statistics.counting import of_counts, smallest_normal
from core.statistics.moments import BLOCK, EMPTY, merge, of_block, stats_of
from core.statistics.types import TensorStats

_FEW = 1 << 15
"""Below this many elements sorting beats a table of 65,536 counts."""


def of_array(array: NDArray[Any], dtype: DType | None = None, bins: int = 64) -> TensorStats:
    """Statistics over all elements of an array of any shape and strides.

    Bool counts as 0 and 1. Complex elements count by their magnitude, NaN if either part is.
    Strings and objects give their number only. Quantiles are numpy's ``linear`` ones and the
    histogram is ``numpy.histogram``'s, both over the finite elements as float64 (integers beyond
    2**53 are compared exactly and reported rounded to float64). Mean and std hold to 1e-12 of the
    mean absolute value and of l2 / sqrt(n).

    Args:
        array: the numbers; or stored bit patterns where ``dtype`` is bfloat16 (uint16) or a float
            of at most 8 bits (uint8, one element a byte).
        dtype: element type, the array's own where left out; it decides what is subnormal.
        bins: steps of the histogram.

    Raises:
        UsageError: if ``bins`` is below 1.
    """
    if bins < 1:
        raise UsageError(f"a histogram needs at least one bin, not {bins}")
    dtype = dtype_in(array) if dtype is None else dtype
    if dtype is None or dtype.kind in ("string", "opaque") or (array.dtype.kind in "OSUTV" and dtype_in(array) is None):
        return TensorStats(count=array.size)
    if array.size == 0:
        return TensorStats(count=0)
    flat = np.ascontiguousarray(array).reshape(-1)
    codes = patterns_in(flat, dtype)
    if codes is not None:
        return of_counts(np.bincount(codes, minlength=1 << dtype.bits).astype(np.int64), dtype.name, bins)
    return _of_numbers(numbers_in(flat), smallest_normal(dtype), bins)


def dtype_in(array: NDArray[Any]) -> DType | None:
    """The element type of a numpy array, also of ml_dtypes; ``None`` for strings and objects."""
    return DTYPES.get(array.dtype.name.replace("_", ""))


def patterns_in(flat: NDArray[Any], dtype: DType) -> NDArray[Any] | None:
    """The bit patterns of a flat array as unsigned integers; ``None`` where it holds numbers.

    Numbers are also what 16-bit types come as where there are too few elements for a table.
    """
    if dtype.bits <= 8 and flat.dtype.itemsize == 1:
        if dtype.packed and dtype.mini is None:
            return flat.view(np.uint8) & np.uint8((1 << dtype.bits) - 1)
        return flat.view(np.uint8)
    if dtype.name == "bfloat16" and flat.dtype.name in ("bfloat16", "uint16"):
        return flat.view(np.uint16)
    if flat.dtype.name == dtype.name and dtype.bits == 16 and flat.size >= _FEW:
        return flat.view(np.uint16)
    return None


def numbers_in(flat: NDArray[Any]) -> NDArray[Any]:
    """A flat array as float32, float64 or integers of native byte order; magnitude of complex."""
    if flat.dtype.kind == "c":
        wide = flat.astype(np.complex128)
        size = np.abs(wide)
        size[np.isnan(wide.real) | np.isnan(wide.imag)] = np.nan
        return size
    if flat.dtype.kind in "iu" or flat.dtype.itemsize in (4, 8):
        return flat.astype(flat.dtype.newbyteorder("="), copy=False)
    return flat.astype(np.float32)


def _of_numbers(flat: NDArray[Any], tiny: float, bins: int) -> TensorStats:
    m = EMPTY
    for at in range(0, flat.size, BLOCK):
        m = merge(m, of_block(flat[at : at + BLOCK], tiny))
    if m.finite == 0:
        return stats_of(m, {}, None)
    in_order = np.sort(flat if m.finite == flat.size else flat[np.isfinite(flat)])
    return stats_of(m, ordered.quantiles(in_order), ordered.histogram(in_order, bins))
