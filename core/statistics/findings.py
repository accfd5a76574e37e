"""What the numbers of a tensor say that a person should look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType
from core.ir import Finding
from core.statistics.channels import Channels
from core.statistics.spectral import Spectrum
from core.statistics.types import TensorStats

OUTLIER: Final = 20.0
"""A channel stands out where its largest absolute value is this many times the median channel's."""

SUBNORMAL_SHARE: Final = 0.01
SATURATED_SHARE: Final = 0.01
SATURATED_STEP: Final = 4.0
"""An end of the range is saturated where its bin holds this many times the next occupied bin."""

COLLAPSED: Final = 0.1
"""A matrix has collapsed where this share of its possible rank holds all but a millionth of it."""

_SHOWN: Final = 8


def from_stats(name: str, dtype: DType, stats: TensorStats) -> list[Finding]:
    """Findings from the statistics of one tensor."""
    at = f"tensor {name[:200]}"
    out: list[Finding] = []
    if stats.nan or stats.inf:
        out.append(
            Finding(
                "values.non_finite",
                "error" if stats.nan else "warning",  # masks hold infinities on purpose
                f"{stats.nan} NaN and {stats.inf} infinite of {stats.count} elements.",
                at,
            )
        )
    if stats.finite > 1 and stats.finite == stats.count and stats.min is not None and stats.min == stats.max:
        if stats.absmax == 0:
            out.append(Finding("values.all_zero", "warning", f"All {stats.count} elements are zero.", at))
        else:
            out.append(Finding("values.constant", "info", f"All {stats.count} elements are {stats.min:.6g}.", at))
    if stats.subnormal > SUBNORMAL_SHARE * stats.count:
        share = stats.subnormal / stats.count
        out.append(
            Finding(
                "values.subnormal",
                "warning",
                f"{share:.1%} of the elements are subnormal in {dtype.name}: they are slow on some "
                "machines and become zero on others.",
                at,
            )
        )
    if dtype.kind in ("int", "uint") and 1 < dtype.bits <= 8 and (share := _saturated(dtype, stats)):
        out.append(
            Finding(
                "values.saturated",
                "warning",
                f"{share:.1%} of the elements sit at the ends of the range of {dtype.name}: "
                "the scale may be too small.",
                at,
            )
        )
    return out


def _saturated(dtype: DType, stats: TensorStats) -> float:
    if stats.histogram is None or stats.min == stats.max:
        return 0.0
    lowest = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    highest = lowest + (1 << dtype.bits) - 1
    counts = [c for c in stats.histogram.counts if c]
    ends = 0
    if dtype.kind == "int" and stats.min in (lowest, lowest + 1):  # symmetric schemes stop one earlier
        ends += _spike(counts, stats.finite)
    if stats.max == highest:
        ends += _spike(counts[::-1], stats.finite)
    return ends / stats.finite


def _spike(counts: list[int], total: int) -> int:
    high = len(counts) > 2 and counts[0] > SATURATED_SHARE * total and counts[0] > SATURATED_STEP * counts[1]
    return counts[0] if high else 0


def from_channels(name: str, channels: Channels) -> list[Finding]:
    """Findings from the channels of one tensor: dead ones, and ones that stand out."""
    at = f"tensor {name[:200]}"
    out: list[Finding] = []
    if len(channels) < 2:
        return out
    size = channels.absmax
    dead = np.flatnonzero(size == 0)
    if 0 < dead.size < len(channels):
        out.append(
            Finding(
                "values.dead_channels",
                "warning",
                f"{dead.size} of {len(channels)} channels along axis {channels.axis} are all zero: {_listed(dead)}.",
                at,
            )
        )
    alive = size[size > 0]
    if alive.size >= 4:
        median = float(np.median(alive))
        loud = np.flatnonzero(size > OUTLIER * median)
        if loud.size:
            out.append(
                Finding(
                    "values.outlier_channels",
                    "warning",
                    f"{loud.size} of {len(channels)} channels along axis {channels.axis} reach more than "
                    f"{OUTLIER:g} times the median channel's largest value: {_listed(loud)}.",
                    at,
                )
            )
    return out


def _listed(indexes: NDArray[np.int64]) -> str:
    text = ", ".join(str(i) for i in indexes[:_SHOWN].tolist())
    return text + (" ..." if indexes.size > _SHOWN else "")


def from_spectrum(name: str, found: Spectrum) -> list[Finding]:
    """A finding where nearly all of a matrix lies in few directions."""
    most = min(found.shape)
    if most < 16 or found.rank is None or found.norm == 0 or found.rank > COLLAPSED * most:
        return []
    return [
        Finding(
            "values.rank_collapse",
            "warning",
            f"{found.rank} of {most} possible directions hold all but a millionth of this matrix "
            f"(spectral norm {found.norm:.4g}, stable rank {found.stable_rank:.3g}).",
            f"tensor {name[:200]}",
        )
    ]


def duplicates(digests: Mapping[int, str], names: Mapping[int, str], sizes: Mapping[int, int]) -> list[Finding]:
    """One finding for each group of tensors with the same content hash, most bytes first.

    Args:
        digests: content hash by tensor index; empty ones are left out.
        names: name by tensor index.
        sizes: stored bytes by tensor index.
    """
    groups: dict[str, list[int]] = {}
    for index, digest in digests.items():
        if digest:
            groups.setdefault(digest, []).append(index)
    equal = [sorted(group) for group in groups.values() if len(group) > 1]
    equal.sort(key=lambda group: (-sum(sizes[i] for i in group[1:]), group))
    return [_duplicate(group, names, sum(sizes[i] for i in group[1:])) for group in equal]


def _duplicate(group: list[int], names: Mapping[int, str], spare: int) -> Finding:
    shown = _quoted(names[i] for i in group[1 : 1 + _SHOWN]) + (" ..." if len(group) > 1 + _SHOWN else "")
    return Finding(
        "values.duplicate",
        "info",
        f"The same elements are stored again in {shown}: {spare} bytes could be shared.",
        f"tensor {names[group[0]][:200]}",
    )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name[:200]) for name in names)
