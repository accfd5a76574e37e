"""All findings from the values of one tensor, and those that several tensors make together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of
from core.errors import LimitExceeded, UsageError
from core.ir import ByteRange, Finding, Model, Severity, Tensor
from core.limits import MIB
from core.statistics import affine, blocks, channels, spectral
from core.statistics.copies import NearCopy
from core.statistics.findings import from_channels, from_spectrum, from_stats
from core.statistics.tensors import of_tensor as measured
from core.statistics.tensors import tensor_at
from core.statistics.types import TensorStats

MATRIX: Final = 16 * MIB
"""Elements up to which the rank of a matrix is estimated without being asked for."""

WIDE: Final = 1000.0
"""A scale stands out where it is this many times the median one."""

ZERO_SCALES: Final = 0.05
_SHOWN: Final = 8
_HALF: Final = 2.0**-14
_SINGLE: Final = 2.0**-126


def of_tensor(
    model: Model,
    tensor: int,
    stats: TensorStats | None = None,
    *,
    seed: int = 0,
    cancelled: Callable[[], bool] | None = None,
) -> list[Finding]:
    """Findings from the values of one tensor, its channels, its scales and its rank; reads it a few times.

    Args:
        stats: its statistics where they are known.
        seed: of the random projection that estimates the rank of a large matrix.

    Raises:
        Unavailable: if the values cannot be decoded.
        Cancelled: if ``cancelled`` says so.
    """
    held = tensor_at(model, tensor)
    dtype = dtype_of(held.dtype)
    stats = measured(model, tensor, cancelled=cancelled) if stats is None else stats
    out = from_stats(held.name, dtype, stats)
    if dtype.kind in ("string", "opaque") or held.elements < 2:
        return out
    for axis in range(min(len(held.shape), 2) if len(held.shape) > 1 else 0):
        try:
            out += from_channels(held.name, channels.of_tensor(model, held, axis, cancelled=cancelled))
        except LimitExceeded:  # more channels than are worth a column
            continue
    out += _scales(model, tensor, held)
    if dtype.kind == "float" and len(held.shape) > 1 and held.elements <= MATRIX and stats.finite == stats.count:
        try:
            out += from_spectrum(held.name, spectral.of_tensor(model, held, seed))
        except (UsageError, LimitExceeded):  # numbers beyond the type it is computed in
            return out
    return out


def _scales(model: Model, tensor: int, held: Tensor) -> list[Finding]:
    if held.encoding.startswith("ggml."):
        found = blocks.of_tensor(model, tensor)
        if np.isnan(found.scale).all():  # its scales are no floats, or each block has several
            return []
        return from_scales(held.name, found.scale, _HALF, signed=True)
    known = affine.affine_of(model, tensor)
    return [] if known is None else from_scales(held.name, known.scale.astype(np.float64), _SINGLE)


def from_scales(name: str, scale: NDArray[np.float64], normal: float, *, signed: bool = False) -> list[Finding]:
    """Findings from the scales of a quantized tensor: one, one a channel, or one a block.

    Args:
        normal: smallest normal number of the type they are stored in.
        signed: whether a negative scale is part of the encoding.
    """
    finite = np.isfinite(scale)
    size = np.abs(scale[finite])
    median = float(np.median(size[size > 0])) if (size > 0).any() else 0.0
    zero = int((size == 0).sum())
    wrong: tuple[tuple[int, Severity, str], ...] = (
        (int((~finite).sum()), "error", "are not finite"),
        (0 if signed else int((scale[finite] < 0).sum()), "warning", "are negative"),
        (zero if zero > ZERO_SCALES * scale.size or scale.size == 1 else 0, "warning",
         "are zero: everything they scale becomes zero"),
        (int(((size > 0) & (size < normal)).sum()), "warning",
         "are subnormal in the type they are stored in and have lost digits"),
        (int((size > WIDE * median).sum()) if median else 0, "warning",
         f"are more than {WIDE:g} times the median one ({median:.3g})"),
    )  # fmt: skip
    at = f"tensor {name[:200]}"
    return [
        Finding("values.suspicious_scale", severity,
                f"{count} of {scale.size} scales {what}.", at)
        for count, severity, what in wrong if count
    ]  # fmt: skip


def tied(tensors: Sequence[Tensor]) -> list[Finding]:
    """One finding for each group of tensors that are the same stored bytes under several names; reads nothing."""
    groups: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        if (key := _storage(tensor)) is not None:
            groups.setdefault(key, []).append(tensor)
    return [_tied(group) for group in groups.values() if len({t.name for t in group}) > 1]


def _storage(tensor: Tensor) -> object:
    if tensor.elements < 2 or tensor.problem:
        return None
    if tensor.storage >= 0:
        return tensor.storage
    if isinstance(tensor.data, ByteRange) and tensor.data.nbytes:
        return tensor.data.source, tensor.data.start, tensor.data.stop
    return None


def _tied(group: list[Tensor]) -> Finding:
    shown = ", ".join(repr(t.name[:200]) for t in group[1 : 1 + _SHOWN]) + (" ..." if len(group) > 1 + _SHOWN else "")
    return Finding(
        "values.tied", "info",
        f"It shares its {group[0].nbytes} stored bytes with {shown}: a change of one is a change of all.",
        f"tensor {group[0].name[:200]}",
    )  # fmt: skip


def from_copies(names: Mapping[int, str], found: Iterable[NearCopy]) -> list[Finding]:
    """One finding for each pair of tensors that nearly agree; equal ones are ``findings.duplicates``."""
    return [
        Finding(
            "values.near_copy", "info",
            f"It differs from {names[pair.second][:200]!r} by {pair.distance:.2%} of its norm "
            f"(cosine {pair.cosine:.6f}).",
            f"tensor {names[pair.first][:200]}",
        )
        for pair in found if pair.distance > 0
    ]  # fmt: skip


def of_model(model: Model, known: Mapping[int, TensorStats]) -> list[Finding]:
    """Findings from statistics that were taken, errors first, and tied weights; reads nothing."""
    out: list[Finding] = []
    for index, stats in sorted(known.items()):
        tensor = model.tensors[index]
        out += from_stats(tensor.name, dtype_of(tensor.dtype), stats)
    rank = {"error": 0, "warning": 1, "info": 2}
    return sorted([*out, *tied(model.tensors)], key=lambda finding: rank[finding.severity])
