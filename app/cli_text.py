"""What the command line prints: tables, figures and a progress bar, with a file's text made harmless."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from core.errors import UsageError
from core.limits import GIB, MIB

_HARMFUL: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNITS: Final = {"": 1, "b": 1, "k": 1000, "kb": 1000, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9,
                 "kib": 1024, "mib": MIB, "gib": GIB}  # fmt: skip
_TIMES: Final = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_REDRAW: Final = 0.1
"""Seconds between two drawings of the progress bar."""


def printable(text: object, limit: int = 0) -> str:
    """``text`` on one line, every control, direction or lone surrogate mark written as an escape."""
    shown = "".join(c if unicodedata.category(c) not in _HARMFUL else _escape(c) for c in str(text))
    return shown if not limit or len(shown) <= limit else shown[: limit - 1] + "…"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def print_json(data: object) -> None:
    """One JSON document in ASCII, so that no terminal is moved by it; not-numbers become null."""
    print(json.dumps(plain_numbers(data), indent=1, allow_nan=False))


def plain_numbers(data: Any) -> Any:
    """``data`` with what JSON has no number for replaced by ``None``."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {str(key): plain_numbers(item) for key, item in data.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(data, (list, tuple)):
        return [plain_numbers(item) for item in data]  # pyright: ignore[reportUnknownVariableType]
    return data


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns two spaces apart; numbers to the right, texts shortened to the width of the terminal."""
    cells = [[cell(item) for item in row] for row in rows]
    right = [
        bool(rows) and all(isinstance(row[i], (int, float, type(None))) for row in rows) for i in range(len(header))
    ]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(header)]
    for line in [list(header), *cells]:
        parts = [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(line, widths, right, strict=True)]
        print("  ".join(parts).rstrip())


def print_facts(facts: Mapping[str, object]) -> None:
    """Names and values, one a line; empty values are left out."""
    shown = {name: value for name, value in facts.items() if value not in (None, "", [], {})}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        print(f"{name.ljust(width)}  {cell(value, 0)}")


def cell(item: object, limit: int = 60) -> str:
    """One value as a table shows it."""
    if item is None:
        return "-"
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, int):
        return f"{item:,}"
    if isinstance(item, float):
        return f"{item:.6g}"
    return printable(item, limit)


def shape(dims: Sequence[int | str | None] | None) -> str:
    """A shape as ``[batch, 3, ?]``; ``?`` alone where the rank is unknown."""
    if dims is None:
        return "?"
    return "[" + ", ".join("?" if dim is None else printable(dim) for dim in dims) + "]"


def size(nbytes: int) -> str:
    """Bytes in decimal units, e.g. ``3.16 MB``."""
    for bound, unit in ((10**9, "GB"), (10**6, "MB"), (1000, "kB")):
        if nbytes >= bound:
            return f"{nbytes / bound:.3g} {unit}"
    return f"{nbytes} B"


def parse_size(text: str) -> int:
    """Bytes from ``2GiB``, ``500 MB`` or a plain number.

    Raises:
        UsageError: if it is none of these.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].lower() not in _UNITS:
        raise UsageError(f"{printable(text, 40)!r} is not a size", hint="Write it like 512MiB or 2GiB.")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def parse_time(text: str) -> float:
    """Seconds from ``60s``, ``2min``, ``500ms`` or a plain number.

    Raises:
        UsageError: if it is none of these.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].lower() not in _TIMES:
        raise UsageError(f"{printable(text, 40)!r} is not a time", hint="Write it like 60s or 2min.")
    return float(match[1]) * _TIMES[match[2].lower()]


class Bar:
    """A progress bar on standard error where that is a terminal, else nothing; gone at the end.

    ``bar(done, total)`` moves it; it may be called as often as one likes.
    """

    def __init__(self, title: str, total: int = 0) -> None:
        self._title, self._total = printable(title, 40), total
        self._live = sys.stderr.isatty()
        self._drawn = 0.0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, done: int, total: int = 0) -> None:
        """Draw ``done`` of ``total`` bytes or steps, at most ten times a second."""
        now = time.monotonic()
        if not self._live or now - self._drawn < _REDRAW:
            return
        self._drawn = now
        total = total or self._total
        share = min(1.0, done / total) if total else 0.0
        width = max(10, min(40, shutil.get_terminal_size().columns - len(self._title) - 12))
        filled = round(share * width)
        sys.stderr.write(f"\r{self._title} [{'#' * filled}{'.' * (width - filled)}] {share:4.0%}\x1b[K")
        sys.stderr.flush()
