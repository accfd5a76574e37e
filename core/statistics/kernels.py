"""The passes over one block compiled by Numba; the same functions as ``core.statistics.vectors``.

Imported only where more than ``engine.KERNEL_BYTES`` are to be scanned. Never ``fastmath``,
which drops the checks for NaN. Integer work runs over chunks that stay in the first cache, so
that LLVM turns it into vector instructions; float sums go in 64 lanes, and squared deviations
are taken from the chunk's own mean, chunks combine as in ``core.statistics.moments``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit  # type: ignore[import-untyped]
from numpy.typing import NDArray

from core.statistics import moments
from core.statistics.keys import BUCKET_BITS, BUCKETS, wide
from core.statistics.moments import Moments
from core.statistics.sketch import Plan, Refined

CHUNK: Final = 2048
LANES: Final = 64
_EXPONENT: Final = {32: 0x7F800000, 64: 0x7FF0000000000000}

compiled: Any = njit(nogil=True, cache=True)


def count(block: NDArray[Any], counts: NDArray[np.int64]) -> None:
    """Add how often each number of a block of uint16 occurs."""
    _count(_ready(block), counts)


def sweep(block: NDArray[Any], tiny: float, counts: NDArray[np.int64]) -> Moments:
    """Moments of a block of 32 or 64 bit numbers; adds its elements to the counts of their buckets."""
    kind, block = wide(block.dtype.name), _ready(block)
    if not kind.floating:
        low, high, zero, mean, m2, l1 = _sweep_int(_long(block), counts)
        return Moments(block.size, zero=int(zero), low=float(low), high=float(high), mean=mean, m2=m2, l1=l1)
    unsigned = np.dtype(f"u{kind.bits // 8}").type
    infinity = unsigned(_EXPONENT[kind.bits])
    least = np.array([tiny], block.dtype).view(unsigned)[0]
    raw = block.view(unsigned)
    nan, positive, negative, zero, subnormal, first, last, mean, m2, l1 = _sweep_float(
        block, raw, infinity, least, unsigned(kind.bits - 1), unsigned(kind.bits - BUCKET_BITS), counts
    )
    if nan + positive + negative == block.size:
        return Moments(block.size, nan=int(nan), pos_inf=int(positive), neg_inf=int(negative))
    found = Moments(
        count=block.size,
        nan=int(nan),
        pos_inf=int(positive),
        neg_inf=int(negative),
        zero=int(zero),
        subnormal=int(subnormal),
        low=kind.number(int(first)),
        high=kind.number(int(last)),
        mean=mean,
        m2=m2,
        l1=l1,
    )
    return moments.of_block(block, tiny) if moments.out_of_range(found.absmax) else found


def refine(block: NDArray[Any], plan: Plan, found: Refined) -> None:
    """Add the elements of a block to the steps and bins that ``plan`` asks for."""
    kind, block = wide(block.dtype.name), _ready(block)
    scratch = np.empty(CHUNK, np.uint64), np.empty(CHUNK, np.uint32)
    many = (plan.active, plan.first, plan.last, plan.shift, plan.edges, found.steps, found.bins)
    if kind.floating:
        unsigned = np.dtype(f"u{kind.bits // 8}").type
        raw = block.view(unsigned)
        _refine_float(raw, unsigned(kind.bits - 1), unsigned(kind.bits - BUCKET_BITS), *scratch, *many)
    else:
        single = np.empty(CHUNK, np.float32)
        top = np.uint64(kind.top if kind.signed else 0)
        mask = np.uint64(2 * kind.top - 1)
        _refine_int(_long(block), top, mask, single, single.view(np.uint32), *scratch, *many)


def warm_up() -> None:
    """Compile every kernel, or load it from the cache on disk; seconds the first time."""
    plan = Plan(
        np.zeros(BUCKETS, np.uint8), np.zeros(1, np.uint64), np.zeros(1, np.uint64),
        np.zeros(1, np.uint64), np.zeros(1, np.uint64),
    )  # fmt: skip
    found = Refined(np.zeros((1, 1 << 14), np.int64), np.zeros(2, np.int64))
    for name in ("float32", "float64", "int64", "uint64"):
        block = np.ones(8, name)
        sweep(block, 0.0, np.zeros(BUCKETS, np.int64))
        refine(block, plan, found)
    count(np.zeros(8, np.uint16), np.zeros(1 << 16, np.int64))


def _long(block: NDArray[Any]) -> NDArray[Any]:
    """Integers of 32 bits as 64, which saves compiling for each width."""
    return block if block.dtype.itemsize == 8 else block.astype(np.int64)


def _ready(block: NDArray[Any]) -> NDArray[Any]:
    """The block itself, or a copy where it is read-only or unaligned, which would compile anew."""
    return np.require(block, requirements=["C", "A", "W"])


@compiled
def _count(block: Any, counts: Any) -> None:
    for i in range(block.size):
        counts[block[i]] += 1


@compiled
def _scatter(keys: Any, n: Any, shift: Any, counts: Any) -> None:
    for i in range(n):
        counts[keys[i] >> shift] += 1


@compiled
def _float_keys(raw: Any, at: Any, n: Any, sign: Any, keys: Any) -> None:
    one = raw.dtype.type(1)
    top = one << sign
    ones = top | (top - one)
    for i in range(n):
        bits = raw[at + i]
        key = bits ^ ones if bits >> sign else bits | top
        keys[i] = top if bits == top else key


@compiled
def _sums(x: Any, at: Any, n: Any, sums: Any, sizes: Any) -> Any:
    sums[:] = 0.0
    sizes[:] = 0.0
    whole = n - n % LANES
    for start in range(at, at + whole, LANES):
        piece = x[start : start + LANES]
        for lane in range(LANES):
            sums[lane] += piece[lane]
        for lane in range(LANES):
            sizes[lane] += abs(np.float64(piece[lane]))
    for i in range(at + whole, at + n):
        sums[0] += x[i]
        sizes[0] += abs(np.float64(x[i]))
    mean, l1 = sums.sum() / n, sizes.sum()
    sums[:] = 0.0
    for start in range(at, at + whole, LANES):
        piece = x[start : start + LANES]
        for lane in range(LANES):
            away = piece[lane] - mean
            sums[lane] += away * away
    for i in range(at + whole, at + n):
        away = x[i] - mean
        sums[0] += away * away
    return mean, sums.sum(), l1


@compiled
def _sweep_float(x: Any, raw: Any, infinity: Any, least: Any, sign: Any, shift: Any, counts: Any) -> Any:
    one = raw.dtype.type(1)
    top = one << sign
    magnitude = top - one
    keys = np.empty(CHUNK, raw.dtype)
    good = np.empty(CHUNK, x.dtype)
    sums, sizes = np.empty(LANES), np.empty(LANES)
    nan = positive = negative = zero = below = 0
    first, last = magnitude | top, raw.dtype.type(0)
    done, mean, m2, l1 = 0, 0.0, 0.0, 0.0
    for at in range(0, raw.size, CHUNK):
        n = min(CHUNK, raw.size - at)
        _float_keys(raw, at, n, sign, keys)
        unsigned = raw.dtype.type
        most = unsigned(0)
        low, high = unsigned(magnitude | top), unsigned(0)
        zeros, few = unsigned(0), unsigned(0)
        for i in range(n):
            size = unsigned(raw[at + i] & magnitude)
            most = unsigned(max(most, size))
            zeros = unsigned(zeros + unsigned(size == 0))
            few = unsigned(few + unsigned(size < least))
            low = unsigned(min(low, keys[i]))
            high = unsigned(max(high, keys[i]))
        zero += np.int64(zeros)
        below += np.int64(few)
        _scatter(keys, n, shift, counts)
        if most < infinity:
            first, last = min(first, low), max(last, high)
            cmean, cm2, cl1 = _sums(x, at, n, sums, sizes)
        else:
            whole, n = n, 0
            for i in range(whole):
                size = raw[at + i] & magnitude
                if size < infinity:
                    good[n] = x[at + i]
                    n += 1
                    first, last = min(first, keys[i]), max(last, keys[i])
                elif size > infinity:
                    nan += 1
                elif raw[at + i] >> sign:
                    negative += 1
                else:
                    positive += 1
            if n == 0:
                continue
            cmean, cm2, cl1 = _sums(good, 0, n, sums, sizes)
        done += n
        step = cmean - mean
        share = n / done
        mean += step * share
        m2 += cm2 + step * step * share * (done - n)
        l1 += cl1
    return nan, positive, negative, zero, max(0, below - zero), first, last, mean, m2, l1


@compiled
def _sweep_int(x: Any, counts: Any) -> Any:
    single = np.empty(CHUNK, np.float32)
    raw = single.view(np.uint32)
    keys = np.empty(CHUNK, np.uint32)
    sums, sizes = np.empty(LANES), np.empty(LANES)
    low = high = x[0]
    zero, done, mean, m2, l1 = 0, 0, 0.0, 0.0, 0.0
    for at in range(0, x.size, CHUNK):
        n = min(CHUNK, x.size - at)
        for i in range(n):
            low = min(low, x[at + i])
            high = max(high, x[at + i])
            zero += x[at + i] == 0
            single[i] = np.float32(x[at + i])
        _float_keys(raw, 0, n, np.uint32(31), keys)
        _scatter(keys, n, np.uint32(14), counts)
        cmean, cm2, cl1 = _sums(x, at, n, sums, sizes)
        done += n
        step = cmean - mean
        share = n / done
        mean += step * share
        m2 += cm2 + step * step * share * (done - n)
        l1 += cl1
    return low, high, zero, mean, m2, l1


@compiled
def _refine_float(
    raw: Any, sign: Any, shift: Any, keys: Any, buckets: Any,
    active: Any, first: Any, last: Any, shifts: Any, edges: Any, steps: Any, bins: Any,
) -> None:  # fmt: skip
    for at in range(0, raw.size, CHUNK):
        n = min(CHUNK, raw.size - at)
        _float_keys(raw, at, n, sign, keys)
        for i in range(n):
            buckets[i] = keys[i] >> shift
        _take(keys, buckets, n, active, first, last, shifts, edges, steps, bins)


@compiled
def _refine_int(
    x: Any, top: Any, mask: Any, single: Any, raw: Any, keys: Any, buckets: Any,
    active: Any, first: Any, last: Any, shifts: Any, edges: Any, steps: Any, bins: Any,
) -> None:  # fmt: skip
    for at in range(0, x.size, CHUNK):
        n = min(CHUNK, x.size - at)
        for i in range(n):
            single[i] = np.float32(x[at + i])
            keys[i] = (np.uint64(x[at + i]) & mask) ^ top
        _float_keys(raw, 0, n, np.uint32(31), buckets)
        for i in range(n):
            buckets[i] >>= np.uint32(14)
        _take(keys, buckets, n, active, first, last, shifts, edges, steps, bins)


@compiled
def _not_above(sorted_keys: Any, key: Any) -> Any:
    low, high = 0, sorted_keys.size
    while low < high:
        middle = (low + high) >> 1
        if sorted_keys[middle] <= key:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _take(
    keys: Any, buckets: Any, n: Any,
    active: Any, first: Any, last: Any, shifts: Any, edges: Any, steps: Any, bins: Any,
) -> None:  # fmt: skip
    for i in range(n):
        wanted = active[buckets[i]]
        if wanted == 0:
            continue
        key = keys[i]
        if wanted & 2:
            bins[_not_above(edges, key)] += 1
        if wanted & 1:
            row = _not_above(first, key) - 1
            if row >= 0 and key <= last[row]:
                steps[row, (key - first[row]) >> shifts[row]] += 1
