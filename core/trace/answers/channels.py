"""Which axis of a value counts its units, and what each unit did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.structure.wiring import CONVOLUTION, MATRIX
from core.trace.answers.reading import Reading
from core.trace.types import TracedValue

_FIRST: Final = CONVOLUTION | {
    "BatchNormalization", "InstanceNormalization", "GroupNormalization", "MaxPool", "AveragePool", "GlobalAveragePool",
    "Resize", "Upsample",
}  # fmt: skip
_LAST: Final = MATRIX | {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "Gather"}
_REACH: Final = 8


@dataclass(frozen=True, slots=True)
class Units:
    """The elements of a value by unit, ``array`` [units, rest]."""

    axis: int
    array: NDArray[Any]


def unit_axis(run: Reading, value: TracedValue) -> int:
    """The axis of channels or features, -1 where there is none.

    Walks up elementwise operators to a convolution (axis 1) or a matrix product (last axis);
    without either, axis 1 for four axes and more, else the last one.
    """
    rank, at = len(value.shape), value
    if rank < 2:
        return -1
    for _ in range(_REACH):
        op = run.op(at)
        if op in _FIRST:
            return 1
        if op in _LAST:
            return rank - 1
        before = [item for item in run.operands(at) if item.shape == value.shape]
        if not before:
            break
        at = before[0]
    return 1 if rank >= 4 else rank - 1


def units(run: Reading, value: TracedValue) -> Units | None:
    """The elements by unit where they are stored and there are at least two of each."""
    axis = unit_axis(run, value)
    if axis < 0 or value.shape[axis] < 2:
        return None
    array = run.elements(value)
    if array is None or array.size < 2 * value.shape[axis]:
        return None
    return Units(axis, np.moveaxis(array, axis, 0).reshape(value.shape[axis], -1))


def numbers(places: NDArray[Any]) -> list[str]:
    """Unit numbers as text."""
    return [str(int(place)) for place in places]
