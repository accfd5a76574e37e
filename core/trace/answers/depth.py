"""Magnitudes along the depth: where they explode, and where everything becomes the same."""

from __future__ import annotations

import math
from typing import Final

from core.ir import Finding
from core.statistics.types import TensorStats
from core.trace.answers.reading import Reading, finding
from core.trace.types import TracedValue

GROWTH: Final = 1000.0
"""Times that one operator must raise the root mean square of what it took."""

COLLAPSE: Final = 1e-3
"""Share of its inputs' relative spread that may be left."""

_LEAST: Final = 16
_SHOWN: Final = 8
_SHAPED: Final = frozenset(
    {"Softmax", "Where", "Range", "Gather", "Shape", "Cast", "Constant", "ConstantOfShape", "Expand", "Exp", "Pow"}
)


def answer(run: Reading) -> list[Finding]:
    """Operators that blow magnitudes up, and operators after which the spread is gone."""
    grown: list[Finding] = []
    flat: list[Finding] = []
    for value in run.floats:
        taken = [v for v in run.operands(value) if v.stats is not None and v.stats.finite >= _LEAST]
        stats = value.stats
        if stats is None or stats.finite < _LEAST or not taken or run.op(value) in _SHAPED:
            continue
        grown += _growth(run, value, stats, taken)
        flat += _collapse(run, value, stats, taken)
    return grown[:_SHOWN] + flat[:_SHOWN]


def rms(stats: TensorStats) -> float:
    """Root mean square of the finite elements, 0 where there are none."""
    return stats.l2 / math.sqrt(stats.finite) if stats.finite else 0.0


def _growth(run: Reading, value: TracedValue, stats: TensorStats, taken: list[TracedValue]) -> list[Finding]:
    before = max(rms(v.stats) for v in taken if v.stats is not None)
    now = rms(stats)
    if not before or now < GROWTH * before or now < 1:
        return []
    text = f"Magnitudes explode at {value.name!r} ({run.op(value)}): root mean square {before:.3g} becomes {now:.3g}, "
    return [finding("run.explosion", "warning", f"{text}{now / before:,.0f} times as much.", value)]


def _collapse(run: Reading, value: TracedValue, stats: TensorStats, taken: list[TracedValue]) -> list[Finding]:
    before = max(_spread(v.stats) for v in taken if v.stats is not None)
    now = _spread(stats)
    if not stats.absmax or stats.min == stats.max or before < COLLAPSE or now > COLLAPSE * before:
        return []
    text = f"The spread of {value.name!r} ({run.op(value)}) collapses: standard deviation {stats.std:.3g}"
    return [finding("run.collapse", "warning", f"{text} about a mean of {stats.mean:.3g}.", value)]


def _spread(stats: TensorStats) -> float:
    """Standard deviation as a share of the root mean square, 0 for a constant and at most 1."""
    size = rms(stats)
    return (stats.std or 0.0) / size if size else 0.0
