"""Statistics of numbers that come in blocks: one pass, or a few where exactness is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, unpack
from core.errors import Cancelled
from core.statistics.counting import of_counts, smallest_normal
from core.statistics.keys import BUCKETS, wide
from core.statistics.moments import EMPTY, Moments, merge, stats_of
from core.statistics.sketch import Plan, Refined, Sketch
from core.statistics.types import TensorStats

Block = NDArray[Any]
T = TypeVar("T")


class Feed(Protocol):
    """Numbers that can be gone through more than once.

    ``unit`` is numpy's name of what a block holds: numbers of 32 or 64 bits, or the bit patterns
    of smaller types as uint8 or uint16. ``elements`` of types below 8 bits lie packed.
    """

    @property
    def unit(self) -> str:
        """What a block holds."""
        ...

    @property
    def elements(self) -> int:
        """How many there are."""
        ...

    def parts(self, most: int) -> Sequence[Iterator[Block]]:
        """The blocks in at most ``most`` parts, for as many threads; a block is valid until the next."""
        ...


class Engine(Protocol):
    """The passes over one block: ``vectors`` by numpy or ``kernels`` by Numba."""

    def count(self, block: Block, counts: NDArray[np.int64]) -> None:
        """Add how often each number of a block of uint16 occurs."""

    def sweep(self, block: Block, tiny: float, counts: NDArray[np.int64]) -> Moments:
        """Moments of a block, and its elements added to their buckets."""
        ...

    def refine(self, block: Block, plan: Plan, found: Refined) -> None:
        """Add the elements that ``plan`` asks for."""


@dataclass(slots=True)
class Watch:
    """Counts the bytes done and stops the work when asked to.

    Attributes:
        progress: gets the bytes done so far.
        cancelled: is asked before every block.
    """

    progress: Callable[[int], object] | None = None
    cancelled: Callable[[], bool] | None = None
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def through(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The same blocks.

        Raises:
            Cancelled: before the next block once ``cancelled`` says so.
        """
        for block in blocks:
            if self.cancelled is not None and self.cancelled():
                raise Cancelled("the statistics were stopped")
            yield block
            with self.lock:
                self.done += block.nbytes
                if self.progress is not None:
                    self.progress(self.done)


@dataclass(frozen=True, slots=True)
class Way:
    """How to go through the blocks.

    Attributes:
        engine: ``core.statistics.vectors`` or ``core.statistics.kernels``.
        threads: how many parts are gone through at the same time.
        exact: whether to read again until quantiles and histogram are exact.
        bins: steps of the histogram.
    """

    engine: Engine
    threads: int = 1
    exact: bool = False
    bins: int = 64


def measure(feed: Feed, dtype: DType, way: Way, watch: Watch) -> TensorStats:
    """Statistics of all blocks of a feed whose elements are of type ``dtype``.

    Types of at most 16 bits are exact after one pass. Wider ones have, after one pass, everything
    exact or to the bounds of ``arrays.of_array`` but quantiles and histogram, whose ranks are
    within ``error``; with ``way.exact`` the feed is gone through again, once for float32 and for
    integers below 2**24, up to four times for others, until these are exact too.

    Raises:
        Cancelled: if ``watch.cancelled`` says so.
    """
    if feed.elements == 0:
        return TensorStats(count=0)
    if feed.unit in ("uint8", "uint16") and dtype.bits <= 16:
        return of_counts(_counted(feed, dtype, way, watch), dtype.name, way.bins)
    return _swept(feed, smallest_normal(dtype), way, watch)


# --- types of at most 16 bits -------------------------------------------------------------


def _counted(feed: Feed, dtype: DType, way: Way, watch: Watch) -> NDArray[np.int64]:
    parts = feed.parts(1 if dtype.packed else way.threads)
    if dtype.bits == 16:
        return _total(_in_threads(lambda blocks: _count_words(watch.through(blocks), way.engine), parts))
    if dtype.bits == 6:
        return _count_sixes(watch.through(parts[0]), feed.elements)
    found = _in_threads(lambda blocks: _count_bytes(watch.through(blocks), way.engine), parts)
    counts = _total([counts for counts, _ in found])
    return _unpacked(counts, dtype, feed.elements, found[-1][1]) if dtype.packed else counts


def _total(tables: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return sum(tables[1:], tables[0])


def _count_words(blocks: Iterator[Block], engine: Engine) -> NDArray[np.int64]:
    counts = np.zeros(1 << 16, np.int64)
    for block in blocks:
        engine.count(block, counts)
    return counts


def _count_bytes(blocks: Iterator[Block], engine: Engine) -> tuple[NDArray[np.int64], int]:
    """Counts of bytes, two at a time, and the last byte."""
    pairs, odd, last = np.zeros(1 << 16, np.int64), np.zeros(256, np.int64), 0
    for block in blocks:
        even, last = block.size & ~1, int(block[-1])
        engine.count(block[:even].view(np.uint16), pairs)
        if even < block.size:
            odd[last] += 1
    table = pairs.reshape(256, 256)
    return odd + table.sum(axis=0) + table.sum(axis=1), last


def _count_sixes(blocks: Iterator[Block], elements: int) -> NDArray[np.int64]:
    counts = np.zeros(64, np.int64)
    for block in blocks:
        codes = unpack(block, 6, min(elements, block.size * 8 // 6))
        counts += np.bincount(codes, minlength=64)
        elements -= codes.size
    return counts


def _unpacked(counts: NDArray[np.int64], dtype: DType, elements: int, last: int) -> NDArray[np.int64]:
    """Counts of elements below 8 bits from counts of bytes, less what fills up the last byte."""
    each = 8 // dtype.bits
    codes = unpack(np.arange(256, dtype=np.uint8), dtype.bits, 256 * each).reshape(256, each)
    out = np.zeros(1 << dtype.bits, np.int64)
    np.add.at(out, codes, counts[:, None])
    filling = int(out.sum()) - elements
    np.subtract.at(out, codes[last, each - filling :], 1)
    return out


# --- types of 32 and 64 bits ----------------------------------------------------------------


def _swept(feed: Feed, tiny: float, way: Way, watch: Watch) -> TensorStats:
    def part(blocks: Iterator[Block]) -> tuple[Moments, NDArray[np.int64]]:
        counts, m = np.zeros(BUCKETS, np.int64), EMPTY
        for block in watch.through(blocks):
            m = merge(m, way.engine.sweep(block, tiny, counts))
        return m, counts

    m, counts = EMPTY, np.zeros(0, np.int64)
    for more, theirs in _in_threads(part, feed.parts(way.threads)):
        m = merge(m, more)
        counts = counts + theirs if counts.size else theirs
    if m.finite == 0:
        return stats_of(m, {}, None)
    sketch = Sketch(wide(feed.unit), counts, m.low, m.high, m.zero, way.bins)
    while way.exact and (plan := sketch.plan()) is not None:
        sketch.refine(_refined(feed, sketch, plan, way, watch))
    return stats_of(m, sketch.quantiles(), sketch.histogram(), sketch.error())


def _refined(feed: Feed, sketch: Sketch, plan: Plan, way: Way, watch: Watch) -> Refined:
    def part(blocks: Iterator[Block]) -> Refined:
        found = sketch.empty(plan)
        for block in watch.through(blocks):
            way.engine.refine(block, plan, found)
        return found

    total = sketch.empty(plan)
    for found in _in_threads(part, feed.parts(way.threads)):
        total.add(found)
    return total


def _in_threads(work: Callable[[Iterator[Block]], T], parts: Sequence[Iterator[Block]]) -> list[T]:
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(len(parts), "statistics") as pool:
        return list(pool.map(work, parts))
