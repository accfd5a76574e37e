"""A statistic of many tensors together: by module, and along the depth of the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError

BANDS: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Quantiles of a depth profile, the ends included."""

_PARTS: Final = re.compile(r"[./]+")
_LAYER: Final = re.compile(r"[0-9]{1,6}")

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Box:
    """Five numbers of a statistic over the tensors of one module.

    Attributes:
        module: beginning of the tensors' names, empty for tensors outside any.
        count: tensors that have the statistic.
        low, q1, median, q3, high: smallest, quartiles (numpy's ``linear``) and largest.
    """

    module: str
    count: int
    low: float
    q1: float
    median: float
    q3: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class DepthProfile:
    """A statistic over the tensors of each layer, layers ascending; one entry a layer.

    Attributes:
        layers: numbers of the layers as the names give them.
        count: tensors of each that have the statistic.
        low, q10, q25, median, q75, q90, high: quantiles (numpy's ``linear``) of it.
    """

    layers: Longs
    count: Longs
    low: Floats
    q10: Floats
    q25: Floats
    median: Floats
    q75: Floats
    q90: Floats
    high: Floats


def module_of(name: str, depth: int) -> str:
    """The first ``depth`` parts of a dotted or slashed name, its last part never among them."""
    parts = [part for part in _PARTS.split(name) if part]
    return ".".join(parts[:-1][:depth])


def layer_of(name: str) -> int | None:
    """The first part of a name that is a number: 3 of ``model.layers.3.mlp.weight``; ``None`` without one."""
    return next((int(part) for part in _PARTS.split(name) if _LAYER.fullmatch(part)), None)


def by_module(names: Sequence[str], values: Floats, *, depth: int = 2, most: int = 40) -> list[Box]:
    """Box-plot numbers of a statistic by module, modules in the order of their first tensor.

    Args:
        names: names of the tensors.
        values: the statistic of each; those that are no finite number are left out.
        depth: parts of a name that make a module.
        most: modules kept, those with most tensors where there are more.

    Raises:
        UsageError: if there are not as many values as names.
    """
    groups = _grouped([module_of(name, depth) for name in names], values)
    kept = set(sorted(groups, key=lambda module: -len(groups[module]))[:most])
    return [_box(module, np.array(found)) for module, found in groups.items() if module in kept]


def along_depth(names: Sequence[str], values: Floats) -> DepthProfile | None:
    """Quantile bands of a statistic by layer number; ``None`` where no name with a finite value holds one.

    Raises:
        UsageError: if there are not as many values as names.
    """
    groups = _grouped([layer_of(name) for name in names], values)
    layers = sorted(layer for layer in groups if layer is not None)
    if not layers:
        return None
    bands = np.array([np.quantile(groups[layer], BANDS) for layer in layers]).T
    count = np.array([len(groups[layer]) for layer in layers], np.int64)
    return DepthProfile(np.array(layers, np.int64), count, *bands)


def _grouped(keys: Sequence[K], values: Floats) -> dict[K, list[float]]:
    if len(keys) != len(values):
        raise UsageError(f"{len(keys)} names come with {len(values)} values")
    groups: dict[K, list[float]] = {}
    for key, value in zip(keys, values.tolist(), strict=True):
        if np.isfinite(value):
            groups.setdefault(key, []).append(value)
    return groups


def _box(module: str, found: Floats) -> Box:
    return Box(module, found.size, *(float(x) for x in np.quantile(found, (0.0, 0.25, 0.5, 0.75, 1.0))))
