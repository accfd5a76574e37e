"""Statistics of an array in memory, by numpy alone."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DTYPES, DType
from core.errors import UsageError
from core.limits import MIB
from core.statistics import ordered, vectors
from core.statistics.counting import of_counts, smallest_normal
from core.statistics.feeds import ArrayFeed, magnitude
from core.statistics.moments import BLOCK, EMPTY, merge, of_block, stats_of
from core.statistics.stream import Watch, Way, measure
from core.statistics.types import TensorStats

SORTED_BYTES: Final = 32 * MIB
"""Up to this size an array of wide numbers is sorted, which takes a copy of it."""

_FEW: Final = 1 << 15
"""Below this many elements sorting beats a table of 65,536 counts."""


def of_array(array: NDArray[Any], dtype: DType | None = None, bins: int = 64, exact: bool | None = None) -> TensorStats:
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
        exact: whether quantiles and histogram of 32 and 64 bit types must be exact; left out they
            are up to 32 MB, and beyond that ranks are within ``TensorStats.error``.

    Raises:
        UsageError: if ``bins`` is below 1.
    """
    if bins < 1:
        raise UsageError(f"a histogram needs at least one bin, not {bins}")
    dtype = dtype_in(array) if dtype is None else dtype
    if dtype is None or dtype.kind in ("string", "opaque") or array.dtype.kind in "OSUTM":
        return TensorStats(count=array.size)
    if array.size == 0:
        return TensorStats(count=0)
    if array.nbytes > SORTED_BYTES:
        return _of_blocks(array, dtype, bins, bool(exact))
    flat = np.ascontiguousarray(array).reshape(-1)
    codes = codes_in(flat, dtype)
    if codes is not None and (dtype.bits <= 8 or flat.size >= _FEW):
        return of_counts(np.bincount(codes, minlength=1 << dtype.bits).astype(np.int64), dtype.name, bins)
    return _of_numbers(numbers_in(flat, dtype), smallest_normal(dtype), bins)


def dtype_in(array: NDArray[Any]) -> DType | None:
    """The element type of a numpy array, also of ml_dtypes; ``None`` for strings and objects."""
    return DTYPES.get(array.dtype.name.replace("_", ""))


def codes_in(flat: NDArray[Any], dtype: DType) -> NDArray[Any] | None:
    """The bit patterns of a flat array of at most 16-bit elements; ``None`` where it holds numbers."""
    if dtype.bits <= 8 and flat.dtype.itemsize == 1:
        codes = flat.view(np.uint8)
        return codes & np.uint8((1 << dtype.bits) - 1) if dtype.packed else codes
    stored = flat.dtype.name
    if dtype.bits == 16 and (stored == dtype.name or (dtype.name == "bfloat16" and stored == "uint16")):
        return flat.astype(flat.dtype.newbyteorder("="), copy=False).view(np.uint16)
    return None


def numbers_in(flat: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """A flat array as float32, float64 or integers of native byte order; magnitude of complex."""
    if flat.dtype.kind == "c":
        return magnitude(flat)
    codes = codes_in(flat, dtype)
    if codes is not None and dtype.name == "bfloat16":
        return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if flat.dtype.kind in "iu" or flat.dtype.itemsize in (4, 8):
        return flat.astype(flat.dtype.newbyteorder("="), copy=False)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return flat.astype(np.float32)


def _of_blocks(array: NDArray[Any], dtype: DType, bins: int, exact: bool) -> TensorStats:
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    if codes_in(flat[:1], dtype) is None:
        kind = numbers_in(flat[:1], dtype).dtype
        feed = ArrayFeed(array, kind.name if kind.itemsize >= 4 else "float32")
        return measure(feed, dtype, Way(vectors, exact=exact, bins=bins), Watch())
    counts = np.zeros(1 << dtype.bits, np.int64)
    for at in range(0, array.size, BLOCK):
        counts += np.bincount(cast("NDArray[Any]", codes_in(flat[at : at + BLOCK], dtype)), minlength=counts.size)
    return of_counts(counts, dtype.name, bins)


def _of_numbers(flat: NDArray[Any], tiny: float, bins: int) -> TensorStats:
    m = EMPTY
    for at in range(0, flat.size, BLOCK):
        m = merge(m, of_block(flat[at : at + BLOCK], tiny))
    if m.finite == 0:
        return stats_of(m, {}, None)
    in_order = np.sort(flat if m.finite == flat.size else flat[np.isfinite(flat)])
    return stats_of(m, ordered.quantiles(in_order), ordered.histogram(in_order, bins))
