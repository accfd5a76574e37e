"""Channels that say the same everywhere."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.ir import Finding
from core.structure.wiring import CONVOLUTION, MATRIX, NORMS
from core.trace.answers.channels import numbers, units
from core.trace.answers.reading import Reading, finding, listed

_LAYERS: Final = CONVOLUTION | MATRIX | NORMS
_LEAST: Final = 8
"""Elements a channel must have before being constant means something."""


def answer(run: Reading) -> list[Finding]:
    """Layers with channels whose elements are all equal, zero or not."""
    found: list[Finding] = []
    for value in run.floats:
        op, stats = run.op(value), value.stats
        if op not in _LAYERS or stats is None:
            continue
        if stats.finite == stats.count > 1 and stats.min == stats.max:
            text = f"All {stats.count:,} elements of {value.name!r} ({op}) are {stats.min:.6g}."
            found.append(finding("run.constant", "warning", text, value))
            continue
        split = units(run, value)
        if split is None or split.array.shape[1] < _LEAST:
            continue
        same = np.flatnonzero(split.array.min(axis=1) == split.array.max(axis=1))
        if same.size:
            shown = listed(numbers(same), 8)
            text = f"{same.size} of {len(split.array)} channels of {value.name!r} ({op}) are constant: {shown}."
            found.append(finding("run.constant", "info", text, value))
    return found
