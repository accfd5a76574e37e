"""Numbers as the arrays that a run takes, for element types that numpy has and those it lacks.

bfloat16 travels as ``uint16`` bit patterns, floats of at most 8 bits as ``uint8`` patterns,
int4 and uint4 as one ``int8`` or ``uint8`` an element (as ``core.run.prepare`` takes them).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, dtype_of, mini_float_table
from core.errors import LimitExceeded, UsageError
from core.limits import MIB

MADE_ELEMENTS: Final = 128 * MIB
"""Elements of one generated array."""


def array_type(dtype: DType) -> np.dtype[np.generic]:
    """The numpy type that carries ``dtype``; ``object`` for text."""
    if dtype.kind == "string":
        return np.dtype(object)
    if dtype.kind == "bool":
        return np.dtype(np.bool_)
    if dtype.packed and dtype.kind == "int":
        return np.dtype(np.int8)
    return np.dtype(dtype.storage).newbyteorder("=")


def encode(numbers: NDArray[np.floating], dtype: DType) -> NDArray[np.generic]:
    """Float numbers of any shape as ``dtype``, rounded to the nearest; ties of bfloat16 go to even.

    Numbers beyond the range of a float of at most 8 bits become its largest finite value.
    """
    if dtype.name == "bfloat16":
        bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32).reshape(numbers.shape)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    if dtype.mini is None:
        return numbers.astype(array_type(dtype))
    table = mini_float_table(dtype.name)
    patterns = np.flatnonzero(np.isfinite(table))
    patterns = patterns[np.argsort(table[patterns], kind="stable")]
    values = table[patterns]
    middles = (values[1:] + values[:-1]) / 2
    return patterns[np.searchsorted(middles, numbers)].astype(np.uint8)


def bounds(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    if dtype.kind == "uint":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def bounded(shape: tuple[int, ...], what: str = "the array") -> tuple[int, ...]:
    """Return ``shape`` if an array of it may be generated.

    Raises:
        LimitExceeded: beyond ``MADE_ELEMENTS``.
    """
    elements = 1
    for size in shape:
        elements *= size
    if elements > MADE_ELEMENTS:
        raise LimitExceeded(
            f"{what} would have {elements} elements, allowed are {MADE_ELEMENTS}", hint="Choose smaller sizes."
        )
    return shape


def as_dtype(numbers: NDArray[np.generic], dtype_name: str) -> NDArray[np.generic]:
    """Numbers of any shape as an element type: floats to the nearest, whole numbers only where they fit.

    Raises:
        UsageError: if a number is none, or lies outside an integer type, or the type is text.
    """
    dtype = dtype_of(dtype_name)
    if dtype.kind in ("string", "opaque"):
        raise UsageError(f"numbers cannot be made as {dtype.name}")
    if dtype.kind == "bool":
        return numbers != 0
    if dtype.kind == "complex":
        return numbers.astype(array_type(dtype))
    if dtype.kind == "float":
        with np.errstate(over="ignore"):  # beyond float16 is infinite, as in every cast
            return encode(numbers.astype(np.float64 if dtype.bits == 64 else np.float32), dtype)
    if numbers.dtype.kind == "b":
        return numbers.astype(array_type(dtype))
    least, most = bounds(dtype)
    whole = np.rint(numbers.astype(np.float64)) if numbers.dtype.kind == "f" else numbers
    if whole.size:
        low, high = whole.min(), whole.max()
        if not (np.isfinite(low) and np.isfinite(high)) or int(low) < least or int(high) > most:
            raise UsageError(
                f"numbers from {low:g} to {high:g} do not fit {dtype.name}, which holds {least} to {most}",
                hint="Choose another element type or range.",
            )
    return whole.astype(array_type(dtype))
