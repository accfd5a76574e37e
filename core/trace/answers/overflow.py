"""Whether values would survive in fp16 and in int8."""

from __future__ import annotations

from typing import Final

from core.ir import Finding
from core.trace.answers.reading import Reading, finding, percent
from core.trace.answers.shares import Share, below, beyond
from core.trace.types import TracedValue

FP16_INFINITE: Final = 65520.0
"""From here on a number rounds to infinity in fp16 (IEEE 754: largest 65504, half a step more)."""

FP16_ZERO: Final = 2.0**-25
"""Below this a number rounds to zero in fp16: half its smallest subnormal."""

MASK: Final = -1e30
"""Below this a number stands for minus infinity: exporters write the lowest of float32 into masks."""

_INT8_LOST: Final = 0.5
_SHOWN: Final = 12
_WIDE: Final = ("float32", "float64", "bfloat16")


def answer(run: Reading) -> list[Finding]:
    """Values with elements beyond fp16, and values whose outliers leave int8 nothing for the rest."""
    wide = [value for value in run.floats if value.dtype in _WIDE]
    masks = [value for value in wide if _is_mask(value)]
    found = [_mask(value, len(masks)) for value in masks[:1]]
    found += [item for value in wide if value not in masks and (item := _fp16(run, value)) is not None][:_SHOWN]
    return found + [item for value in wide if (item := _int8(run, value)) is not None][:_SHOWN]


def _is_mask(value: TracedValue) -> bool:
    """Whether all it has beyond fp16 is the very low number that masks of attention use for minus infinity."""
    stats = value.stats
    return stats is not None and stats.min is not None and stats.max is not None and (
        stats.min <= MASK and stats.max < FP16_INFINITE
    )  # fmt: skip


def _mask(value: TracedValue, count: int) -> Finding:
    low = value.stats.min if value.stats is not None else MASK
    more = f" (and {count - 1} values after it)" if count > 1 else ""
    text = f"{value.name!r}{more} goes down to {low:.3g}, as masks do; in fp16 that is minus infinity."
    return finding("run.mask", "info", text, value)


def _fp16(run: Reading, value: TracedValue) -> Finding | None:
    stats = value.stats
    if stats is None or stats.absmax is None or stats.absmax < FP16_INFINITE:
        return None
    share = beyond(stats, FP16_INFINITE, run.elements(value))
    text = (
        f"{value.name!r} reaches {stats.absmax:.4g}: {_words(share)} of it would be infinite in fp16 (at most 65504)."
    )
    return finding("run.fp16_overflow", "warning", text, value)


def _int8(run: Reading, value: TracedValue) -> Finding | None:
    """Per tensor and symmetric, the scale is absmax / 127; what is below half a step becomes zero."""
    stats = value.stats
    if stats is None or not stats.absmax or stats.finite < 64 or run.op(value) in ("", "Softmax", "Constant"):
        return None
    step = stats.absmax / 127
    if below(stats, step / 2).high < _INT8_LOST:
        return None
    lost = below(stats, step / 2, run.elements(value))
    if lost.low < _INT8_LOST:
        return None
    tail = max(abs(stats.quantiles.get("0.001", 0.0)), abs(stats.quantiles.get("0.999", 0.0)))
    beyond_tail = f"; its middle 99.8 % lies within {tail:.4g}" if tail < stats.absmax else ""
    text = f"With one int8 scale (largest {stats.absmax:.4g}) {_words(lost)} of {value.name!r} would round to zero"
    return finding("run.int8_range", "info", f"{text}{beyond_tail}.", value)


def _words(share: Share) -> str:
    if share.exact:
        return percent(share.low)
    return f"{percent(share.low)} to {percent(share.high)}"
