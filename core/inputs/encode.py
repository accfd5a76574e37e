"""Numbers as the arrays that a run takes, for element types that numpy has and those it lacks.

bfloat16 travels as ``uint16`` bit patterns, floats of at most 8 bits as ``uint8`` patterns,
int4 and uint4 as one ``int8`` or ``uint8`` an element (as ``core.run.prepare`` takes them).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, mini_float_table


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
