"""Where the blocks of numbers come from: a range of a file, an array, or decoded pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType
from core.limits import KIB
from core.source import Source

Block = NDArray[Any]

BLOCK_BYTES: Final = 768 * KIB
"""Bytes read at once; a multiple of every element and of three bytes of 6-bit elements."""


def unit_of(dtype: DType) -> str:
    """numpy's name of what a stored block of that type is taken as."""
    return {8: "uint8", 16: "uint16"}.get(dtype.bits, "uint8" if dtype.bits < 8 else dtype.name)


@dataclass(frozen=True, slots=True)
class FileFeed:
    """Little-endian elements at ``start`` to ``stop`` of a file, read into one buffer a part.

    Complex elements come as float64 magnitudes, NaN if either part is.
    """

    source: Source
    start: int
    stop: int
    dtype: DType
    elements: int

    @property
    def unit(self) -> str:
        """What a block holds."""
        return "float64" if self.dtype.kind == "complex" else unit_of(self.dtype)

    def parts(self, most: int) -> Sequence[Iterator[Block]]:
        """Part i of n reads blocks i, i + n, i + 2n, ..."""
        blocks = -(-(self.stop - self.start) // BLOCK_BYTES)
        n = max(1, min(most, blocks))
        return [self._part(i, n) for i in range(n)]

    def _part(self, first: int, step: int) -> Iterator[Block]:
        raw = bytearray(min(BLOCK_BYTES, self.stop - self.start))
        view, buffer = memoryview(raw), np.frombuffer(raw, np.uint8)
        kind = np.dtype(self.dtype.storage if self.dtype.kind == "complex" else self.unit)
        for at in range(self.start + first * BLOCK_BYTES, self.stop, step * BLOCK_BYTES):
            size = min(BLOCK_BYTES, self.stop - at)
            self.source.read_into(at, view[:size])
            block = buffer[:size].view(kind)
            yield magnitude(block) if self.dtype.kind == "complex" else block


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFeed:
    """The elements of an array of any strides in C order, a bounded piece at a time."""

    array: NDArray[Any]
    unit: str

    @property
    def elements(self) -> int:
        """How many there are."""
        return self.array.size

    def parts(self, most: int) -> Sequence[Iterator[Block]]:
        """Contiguous parts of about the same length."""
        step = BLOCK_BYTES // np.dtype(self.unit).itemsize
        n = max(1, min(most, -(-self.array.size // step)))
        bounds = [self.array.size * i // n for i in range(n + 1)]
        return [self._part(bounds[i], bounds[i + 1], step) for i in range(n)]

    def _part(self, start: int, stop: int, step: int) -> Iterator[Block]:
        flat = self.array.reshape(-1) if self.array.flags.c_contiguous else self.array.flat
        for at in range(start, stop, step):
            yield as_unit(flat[at : min(at + step, stop)], self.unit)


@dataclass(frozen=True, slots=True, eq=False)
class PieceFeed:
    """Decoded flat pieces that ``again`` gives from the start each time it is called."""

    again: Callable[[], Iterator[Block]]
    unit: str
    elements: int

    def parts(self, most: int) -> Sequence[Iterator[Block]]:
        """One part, for decoding goes in order."""
        return [(as_unit(piece.reshape(-1), self.unit) for piece in self.again())]


def as_unit(flat: Block, unit: str) -> Block:
    """A flat piece of numbers as what ``unit`` says: bit patterns, or numbers of native order."""
    wanted = np.dtype(unit)
    if flat.dtype.kind == "c":
        return magnitude(flat)
    if unit in ("uint8", "uint16") and flat.dtype.itemsize == wanted.itemsize:
        native = flat.astype(flat.dtype.newbyteorder("="), copy=False)
        return native.view(wanted)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return flat.astype(wanted, copy=False)


def magnitude(flat: Block) -> NDArray[np.float64]:
    """Absolute values of complex numbers as float64, NaN if either part is."""
    with np.errstate(invalid="ignore", over="ignore"):  # signalling NaN; sizes beyond float64
        wide = flat.astype(np.complex128)
        size = np.abs(wide)
    size[np.isnan(wide.real) | np.isnan(wide.imag)] = np.nan
    return size
