"""Units that never fire, and units that sit at the end of their range."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.ir import Finding
from core.trace.answers.channels import numbers, units
from core.trace.answers.reading import Reading, finding, listed
from core.trace.types import TracedValue

_GATES: Final = ("Relu", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "Clip", "HardSwish")
_BOUNDED: Final = {"Sigmoid": (0.0, 1.0), "HardSigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
_NEAR: Final = 0.01
"""Distance to the end of the range that counts as saturated, as a share of the range."""

_MOST: Final = 0.95
"""Share of a unit's elements that must be there."""


def answer(run: Reading) -> list[Finding]:
    """Dead units of rectifiers and saturated units of sigmoids and tanhs, a finding for each value."""
    found: list[Finding] = []
    for value in run.floats:
        op, stats = run.op(value), value.stats
        if op in _GATES and stats is not None and stats.zero:
            found += _dead(run, value, op)
        elif op in _BOUNDED:
            found += _saturated(run, value, op)
    return found


def _dead(run: Reading, value: TracedValue, op: str) -> list[Finding]:
    stats = value.stats
    if stats is not None and stats.zero == stats.count:
        text = f"All of {value.name!r} is zero: no unit of this {op} fired."
        return [finding("run.dead", "warning", text, value)]
    split = units(run, value)
    if split is None:
        return []
    dead = np.flatnonzero(~split.array.astype(bool).any(axis=1))
    if not dead.size:
        return []
    text = f"{dead.size} of {len(split.array)} units of {value.name!r} ({op}) never fired: {listed(numbers(dead), 8)}."
    return [finding("run.dead", "warning", text, value)]


def _saturated(run: Reading, value: TracedValue, op: str) -> list[Finding]:
    split = units(run, value)
    if split is None:
        return []
    full = np.flatnonzero(_ends(split.array, *_BOUNDED[op]) >= _MOST)
    if not full.size:
        return []
    shown = listed(numbers(full), 8)
    text = f"{full.size} of {len(split.array)} units of {value.name!r} ({op}) sit within 1 % of an end: {shown}."
    return [finding("run.saturated", "warning", text, value)]


def _ends(array: NDArray[Any], low: float, high: float) -> NDArray[np.float64]:
    near = _NEAR * (high - low)
    return np.asarray(((array <= low + near) | (array >= high - near)).mean(axis=1), np.float64)
