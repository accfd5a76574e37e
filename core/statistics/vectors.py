"""The passes over one block by numpy alone; ``core.statistics.kernels`` has the same functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.statistics.keys import BUCKETS, Keys, wide
from core.statistics.moments import BLOCK, EMPTY, Moments, merge, of_block
from core.statistics.sketch import EDGE, QUANTILE, STEPS, Plan, Refined


def count(block: NDArray[Any], counts: NDArray[np.int64]) -> None:
    """Add how often each number of a block of uint16 occurs."""
    counts += np.bincount(block, minlength=counts.size)


def sweep(block: NDArray[Any], tiny: float, counts: NDArray[np.int64]) -> Moments:
    """Moments of a block of 32 or 64 bit numbers; adds its elements to the counts of their buckets."""
    kind, m = wide(block.dtype.name), EMPTY
    for at in range(0, block.size, BLOCK):
        piece = block[at : at + BLOCK]
        m = merge(m, of_block(piece, tiny))
    counts += np.bincount(kind.buckets(kind.keys(block)), minlength=BUCKETS)
    return m


def refine(block: NDArray[Any], plan: Plan, found: Refined) -> None:
    """Add the elements of a block to the steps and bins that ``plan`` asks for."""
    kind = wide(block.dtype.name)
    keys = kind.keys(block)
    active = plan.active[kind.buckets(keys)]
    split = keys[(active & EDGE) != 0]
    if split.size:
        at = np.searchsorted(plan.edges, split, "right")
        found.bins += np.bincount(at, minlength=found.bins.size)
    _step(keys[(active & QUANTILE) != 0], plan, found)


def _step(keys: Keys, plan: Plan, found: Refined) -> None:
    if plan.first.size == 0 or keys.size == 0:
        return
    row = np.searchsorted(plan.first, keys, "right") - 1
    inside = (row >= 0) & (keys <= plan.last[row])
    row, keys = row[inside], keys[inside]
    steps = ((keys - plan.first[row]) >> plan.shift[row]).astype(np.int64)
    flat = np.bincount(row * STEPS + steps, minlength=found.steps.size)
    found.steps += flat.reshape(found.steps.shape)
