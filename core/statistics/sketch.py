"""Quantiles and histogram from bucket counts, and their refinement to exact ones.

One pass counts the finite elements of each bucket (``core.statistics.keys``). That gives every
rank to within the elements of one bucket. Later passes count finer steps inside the few buckets
that hold a wanted order statistic or an edge of the histogram, 14 bits a pass, until each step
is a single number: one pass for float32 and for integers below 2**24, up to four for float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.statistics.keys import BUCKETS, Keys, Wide
from core.statistics.ordered import between, edges_of, ranks
from core.statistics.types import Histogram

STEP_BITS: Final = 14
STEPS: Final = 1 << STEP_BITS
QUANTILE, EDGE = np.uint8(1), np.uint8(2)


@dataclass(frozen=True, slots=True)
class Span:
    """Keys ``first`` to ``last`` (both included) that hold ``count`` elements after ``before`` others."""

    first: int
    last: int
    before: int
    count: int

    @property
    def shift(self) -> int:
        """Bits of a key that one refinement leaves open."""
        return max(0, (self.last - self.first).bit_length() - STEP_BITS)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What one refining pass looks for; arrays so that a kernel can take it.

    Attributes:
        active: by bucket, whether it holds a wanted order statistic (1) or an edge (2).
        first, last, shift: the spans to count in steps of ``2**shift`` keys, ascending.
        edges: keys of the histogram's inner thresholds.
    """

    active: NDArray[np.uint8]
    first: Keys
    last: Keys
    shift: Keys
    edges: Keys


@dataclass(slots=True, eq=False)
class Refined:
    """What one refining pass counts: steps by span, and elements by bin in buckets with an edge."""

    steps: NDArray[np.int64]
    bins: NDArray[np.int64]

    def add(self, other: Refined) -> None:
        """Add the counts of another part of the data."""
        self.steps += other.steps
        self.bins += other.bins


class Sketch:
    """Bucket counts of one tensor and what they say about ranks.

    Args:
        kind: the type of the elements.
        counts: elements by bucket, shape [BUCKETS]; those of NaN and infinities are set to 0.
        low, high: smallest and largest finite element; there is at least one.
        zero: how many are zero, so that a bucket of zeros is no wider than zero.
        bins: steps of the histogram.
    """

    def __init__(self, kind: Wide, counts: NDArray[np.int64], low: float, high: float, zero: int, bins: int) -> None:
        self.kind, self.counts, self.zero, self.bins = kind, counts, zero, bins
        if kind.floating:
            ends = kind.buckets(np.array([kind.first, kind.last], np.uint64))
            counts[: ends[0]] = 0
            counts[ends[1] + 1 :] = 0
        self.reached = np.cumsum(counts)
        self.total = int(self.reached[-1])
        self.ends = kind.key(low), kind.key(high)
        self.edges = edges_of(low, high, bins)
        self.inner = kind.keys_not_below(self.edges[1:-1])
        self.inner_buckets = kind.buckets(self.inner)
        self._known: dict[int, Span] = {}
        self._histogram: Histogram | None = None
        wanted = {rank for _, below, above, _ in ranks(self.total) for rank in (below, above)}
        self.spans = {rank: self._span(int(np.searchsorted(self.reached, rank, "right"))) for rank in sorted(wanted)}

    def _span(self, bucket: int) -> Span:
        if bucket not in self._known:
            self._known[bucket] = self._make_span(bucket)
        return self._known[bucket]

    def _make_span(self, bucket: int) -> Span:
        first, last = self.kind.bounds(bucket)
        count = int(self.counts[bucket])
        zero = self.kind.key(0.0)
        if first <= zero <= last and count == self.zero:
            first = last = zero
        first, last = max(first, self.ends[0]), min(last, self.ends[1])
        return Span(first, last, int(self.reached[bucket]) - count, count)

    # --- refinement ---------------------------------------------------------------------

    def plan(self) -> Plan | None:
        """What the next pass has to count; ``None`` where everything is exact already."""
        spans = self._open()
        edge_buckets = [] if self._histogram else self._split_buckets()
        if not spans and not edge_buckets:
            return None
        active = np.zeros(BUCKETS, np.uint8)
        first = np.array([s.first for s in spans], np.uint64)
        active[self.kind.buckets(first)] |= QUANTILE
        active[edge_buckets] |= EDGE
        return Plan(
            active=active,
            first=first,
            last=np.array([s.last for s in spans], np.uint64),
            shift=np.array([s.shift for s in spans], np.uint64),
            edges=self.inner,
        )

    def empty(self, plan: Plan) -> Refined:
        """Counts of nothing, in the shapes that ``plan`` needs."""
        return Refined(np.zeros((plan.first.size, STEPS), np.int64), np.zeros(self.bins, np.int64))

    def refine(self, found: Refined) -> None:
        """Take in the counts of a whole pass over the data."""
        if self._histogram is None:
            self._histogram = Histogram(tuple(self.edges.tolist()), tuple(self._whole_bins(found.bins).tolist()))
        spans = self._open()
        reached = np.cumsum(found.steps, axis=1)
        for rank, span in self.spans.items():
            if span in spans:
                row = spans.index(span)
                step = int(np.searchsorted(reached[row], rank - span.before, "right"))
                count = int(found.steps[row, step])
                before = span.before + int(reached[row, step]) - count
                first = span.first + (step << span.shift)
                last = min(span.last, first + (1 << span.shift) - 1)
                self.spans[rank] = Span(first, last, before, count)

    def _open(self) -> list[Span]:
        wanted = {s for s in self.spans.values() if s.first < s.last}
        return sorted(wanted, key=lambda s: s.first)

    def _split_buckets(self) -> list[int]:
        seen = {int(b) for b in self.inner_buckets.tolist() if self.counts[b]}
        return sorted(seen)

    def _whole_bins(self, partial: NDArray[np.int64]) -> NDArray[np.int64]:
        rest = self.counts.copy()
        rest[self._split_buckets()] = 0
        reached = np.concatenate([[0], np.cumsum(rest)])
        inner = reached[self.inner_buckets]
        return np.diff(np.concatenate([[0], inner, [reached[-1]]])) + partial

    # --- results ------------------------------------------------------------------------

    def quantiles(self) -> dict[str, float]:
        """The quantiles of ``types.QUANTILES``, exact where every span is a single number."""

        def at(rank: int) -> float:
            span = self.spans[rank]
            low = self.kind.number(span.first)
            if span.first == span.last:
                return low
            share = (rank - span.before + 0.5) / span.count
            return between(low, self.kind.number(span.last), share)

        return {name: between(at(low), at(high), weight) for name, low, high, weight in ranks(self.total)}

    def histogram(self) -> Histogram:
        """Counts in equal steps; elements of a bucket that an edge splits are shared out evenly."""
        if self._histogram is not None:
            return self._histogram
        upto = [0, *(self._below(b, k) for b, k in zip(self.inner_buckets.tolist(), self.inner.tolist(), strict=True))]
        counts = np.diff(np.array([*upto, self.total], np.int64))
        return Histogram(tuple(self.edges.tolist()), tuple(counts.tolist()))

    def _below(self, bucket: int, key: int) -> int:
        count = int(self.counts[bucket])
        if count == 0:
            return int(self.reached[bucket])
        span = self._span(bucket)
        share = 0.0
        if key > span.last:
            share = 1.0
        elif key > span.first:
            share = (key - span.first) / (span.last - span.first + 1)
        return span.before + round(count * share)

    def error(self) -> float:
        """Bound on the rank error of quantiles and histogram as a share of the finite elements."""
        worst = max((s.count for s in self._open()), default=0)
        if self._histogram is None:
            spans = [(self._span(b), k) for b, k in zip(self.inner_buckets.tolist(), self.inner.tolist(), strict=True)]
            worst = max([worst, *(s.count for s, k in spans if s.first < k <= s.last)])
        return worst / self.total
