"""Which axis of a value counts its units, and what each unit did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.ir import Model
from core.structure.wiring import ACTIVATIONS, CONVOLUTION, ELEMENTWISE, MATRIX, QUANTIZING
from core.trace.answers.reading import Reading, split
from core.trace.types import TracedValue

_FIRST: Final = CONVOLUTION | {
    "BatchNormalization", "InstanceNormalization", "GroupNormalization", "MaxPool", "AveragePool", "GlobalAveragePool",
    "Resize", "Upsample",
}  # fmt: skip
_LAST: Final = MATRIX | {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "Gather"}
_THROUGH: Final = ELEMENTWISE | ACTIVATIONS | QUANTIZING | {"Softmax"}
_REACH: Final = 8


@dataclass(frozen=True, slots=True)
class Units:
    """The elements of a value by unit, ``array`` [units, rest]."""

    axis: int
    array: NDArray[Any]


def unit_axis(model: Model, value: str, rank: int) -> int:
    """The axis of channels or features of a value by its id, -1 where there is none.

    Walks up elementwise operators to a convolution (axis 1) or a matrix product (last axis);
    without either, axis 1 for four axes and more, else the last one.
    """
    if rank < 2:
        return -1
    number, at = split(value)
    graph = model.graphs[number] if number < len(model.graphs) else None
    for _ in range(_REACH if graph is not None and 0 <= at < graph.value_count else 0):
        assert graph is not None
        maker = graph.value(at).producer
        if maker < 0:
            break
        node = graph.node(maker)
        if node.op_type in _FIRST:
            return 1
        if node.op_type in _LAST:
            return rank - 1
        taken = [i for i in node.inputs if i >= 0 and graph.value(i).tensor < 0]
        if node.op_type not in _THROUGH or not taken:
            break
        at = taken[0]
    return 1 if rank >= 4 else rank - 1


def units(run: Reading, value: TracedValue) -> Units | None:
    """The elements by unit where they are stored and there are at least two of each."""
    axis = unit_axis(run.model, value.id, len(value.shape))
    if axis < 0 or value.shape[axis] < 2:
        return None
    array = run.elements(value)
    if array is None or array.size < 2 * value.shape[axis]:
        return None
    return Units(axis, np.moveaxis(array, axis, 0).reshape(value.shape[axis], -1))


def numbers(places: NDArray[Any]) -> list[str]:
    """Unit numbers as text."""
    return [str(int(place)) for place in places]
