"""Numbers as unsigned integers in the same order, and the coarse buckets that are counted.

A bucket is the top 18 bits of a number's float key: for float32 and integers (which are rounded
to float32 for this) sign, exponent and 9 bits of mantissa, 512 buckets an octave; for float64
sign, exponent and 6 bits, 64 an octave. Both zeros have one key.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.statistics.ordered import thresholds

BUCKET_BITS: Final = 18
BUCKETS: Final = 1 << BUCKET_BITS

Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """One of the types of 32 or 64 bits.

    Attributes:
        name: numpy's name.
        bits: 32 or 64.
        floating: whether it is a float.
        signed: whether it is a signed integer.
        first, last: the keys of its smallest and largest finite number.
    """

    name: str
    bits: int
    floating: bool
    signed: bool
    first: int
    last: int

    @property
    def top(self) -> int:
        """The bit of the sign."""
        return 1 << (self.bits - 1)

    def keys(self, block: NDArray[Any]) -> Keys:
        """The key of every element of a flat block, NaN included (beyond both infinities)."""
        raw = block.view(f"u{self.bits // 8}").astype(np.uint64)
        top = np.uint64(self.top)
        if not self.floating:
            return raw ^ top if self.signed else raw
        ones = np.uint64(2 * self.top - 1)
        keys = np.where(raw >= top, raw ^ ones, raw | top)
        keys[raw == top] = top
        return keys

    def numbers(self, keys: Keys) -> NDArray[Any]:
        """The inverse of ``keys``, in this type."""
        top = np.uint64(self.top)
        if self.floating:
            ones = np.uint64(2 * self.top - 1)
            raw = np.where(keys >= top, keys ^ top, keys ^ ones)
        else:
            raw = keys ^ top if self.signed else keys
        return raw.astype(f"u{self.bits // 8}").view(self.name)

    def number(self, key: int) -> float:
        """The number of one key, rounded to float64."""
        return float(self.numbers(np.array([key], np.uint64))[0])

    def keys_not_below(self, numbers: NDArray[np.float64]) -> Keys:
        """For each number the key of the smallest number of this type that is not below it."""
        return self.keys(thresholds(numbers, np.dtype(self.name)))

    def key(self, number: float) -> int:
        """As ``keys_not_below`` for one number."""
        return int(self.keys_not_below(np.array([number]))[0])

    def buckets(self, keys: Keys) -> NDArray[np.int64]:
        """The bucket of every key, ascending with it."""
        if not self.floating:
            return _SINGLE.buckets(_SINGLE.keys(self.numbers(keys).astype(np.float32)))
        return (keys >> np.uint64(self.bits - BUCKET_BITS)).astype(np.int64)

    def bounds(self, bucket: int) -> tuple[int, int]:
        """The first and the last finite key of a bucket."""
        if self.floating:
            shift = self.bits - BUCKET_BITS
            return max(bucket << shift, self.first), min(((bucket + 1) << shift) - 1, self.last)
        return self._first_at_least(bucket), self._first_at_least(bucket + 1) - 1

    def _first_at_least(self, bucket: int) -> int:
        low, high = self.first, self.last + 1
        while low < high:
            middle = (low + high) // 2
            if int(self.buckets(np.array([middle], np.uint64))[0]) >= bucket:
                high = middle
            else:
                low = middle + 1
        return low


def _float(name: str, bits: int, infinity: int) -> Wide:
    top = 1 << (bits - 1)
    return Wide(name, bits, True, True, (2 * top - 1) ^ (top | (infinity - 1)), top | (infinity - 1))


_SINGLE: Final = _float("float32", 32, 0x7F800000)


@cache
def wide(name: str) -> Wide:
    """The type that numpy calls ``name``: a float or an integer of 32 or 64 bits."""
    if name == "float32":
        return _SINGLE
    if name == "float64":
        return _float(name, 64, 0x7FF0000000000000)
    bits = 64 if name.endswith("64") else 32
    return Wide(name, bits, False, not name.startswith("u"), 0, (1 << bits) - 1)
