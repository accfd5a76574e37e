"""Numbers with their units, as every page writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

THIN: Final = "\u202f"
"""Narrow no-break space between digits and unit."""

NONE: Final = "–"
_STEPS: Final = ("", "k", "M", "G", "T", "P", "E")


def count(number: int) -> str:
    """``12600000`` as ``12.6 M``; below 10,000 all digits."""
    if abs(number) < 10_000:
        return f"{number:,}".replace(",", THIN)
    scaled, step = _scale(number)
    return f"{scaled}{THIN}{_STEPS[step]}"


def size(nbytes: int) -> str:
    """Bytes in decimal units: ``3163737`` as ``3.16 MB``."""
    if abs(nbytes) < 1000:
        return f"{nbytes}{THIN}B"
    scaled, step = _scale(nbytes)
    return f"{scaled}{THIN}{'kMGTPE'[step - 1]}B"


def binary_size(nbytes: int) -> str:
    """A limit in binary units, as limits are given: ``2147483648`` as ``2 GiB``."""
    for step, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << step:
            return f"{nbytes / (1 << step):.4g}{THIN}{unit}"
    return f"{nbytes}{THIN}B"


def number(value: float | None, digits: int = 4) -> str:
    """A measured value with ``digits`` significant digits."""
    if value is None:
        return NONE
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}g}"
    return text.replace("-", "−")


def share(part: float, whole: float) -> str:
    """``part`` of ``whole`` in percent; small shares keep a digit, tiny ones say so."""
    if whole <= 0:
        return NONE
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return f"<{THIN}0.1{THIN}%"
    if percent >= 99.95 and part < whole:
        return f"99.9{THIN}%"
    return f"{percent:.1f}{THIN}%" if percent < 100 else f"100{THIN}%"


def seconds(duration: float) -> str:
    """A duration: ``0.0042`` as ``4.20 ms``, ``3.2`` as ``3.20 s``, ``200`` as ``3 min 20 s``."""
    if duration < 0:
        return NONE
    for bound, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (59.5, 1.0, "s")):
        if duration < bound:
            return f"{_three(duration * factor)}{THIN}{unit}"
    minutes, rest = divmod(round(duration), 60)
    if minutes < 60:
        return f"{minutes}{THIN}min" + (f" {rest}{THIN}s" if rest else "")
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{THIN}h" + (f" {minutes}{THIN}min" if minutes else "")


def ago(then: float, now: float) -> str:
    """How long ago a moment was, both in seconds since 1970."""
    passed = now - then
    if passed < 60:
        return "just now"
    for bound, unit, name in ((3600, 60, "minute"), (86_400, 3600, "hour"), (86_400 * 60, 86_400, "day")):
        if passed < bound:
            amount = int(passed // unit)
            return f"{amount} {name}{'' if amount == 1 else 's'} ago"
    months = int(passed // (86_400 * 30))
    return f"{months} months ago" if months < 24 else f"{months // 12} years ago"


def shape(dims: Sequence[int | str | None] | None) -> str:
    """Dimensions: ``batch × 3 × 224``, ``?`` for an unknown one, ``scalar`` for none."""
    if dims is None:
        return "rank unknown"
    if not dims:
        return "scalar"
    return " × ".join("?" if dim is None else str(dim) for dim in dims)


def plural(amount: int, one: str, many: str | None = None) -> str:
    """``1 tensor``, ``2 tensors``."""
    return f"{count(amount)} {one if amount == 1 else many or one + 's'}"


def _scale(number: int) -> tuple[str, int]:
    """Three significant digits and the power of 1000; rounding up never leaves ``1000``."""
    magnitude, step = abs(number) / 1000, 1
    while magnitude >= 999.5 and step < len(_STEPS) - 1:
        magnitude, step = magnitude / 1000, step + 1
    return ("−" if number < 0 else "") + _three(magnitude), step


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
