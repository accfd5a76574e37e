"""Masks: which elements are there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError
from core.inputs import picture
from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import SYNTHETIC, Generated


def mask(
    shape: tuple[int, ...], dtype: str, pattern: str, seed: int, share: float, cell: int, lengths: tuple[int, ...],
    path: str, threshold: int,
) -> Generated:  # fmt: skip
    """Ones and zeros of ``shape``; the pattern lies in the last axis (lengths) or the last two (the others).

    Lengths are one a row of the first axis, or one for all. A picture is stretched to the last two axes.

    Raises:
        UsageError: if the shape has too few axes, or lengths do not fit it.
        ModelError: as ``picture.opened``.
    """
    bounded(shape)
    match pattern:
        case "zeros":
            on: NDArray[np.generic] = np.zeros(shape, np.bool_)
        case "checkerboard":
            on = _checkerboard(shape, cell)
        case "random":
            on = np.random.default_rng(seed).random(shape) < share
        case "lengths":
            on = _lengths(shape, lengths)
        case "image":
            on = _from_picture(shape, path, threshold)
        case _:
            on = np.ones(shape, np.bool_)
    words = {"lengths": "lengths " + ", ".join(map(str, lengths[:8])), "random": f"random, seed {seed}"}
    fidelity = "All valid: nothing is left out." if pattern == "ones" else SYNTHETIC
    if pattern in ("lengths", "image"):
        fidelity = "As given."
    facts: dict[str, object] = {"on": int(np.count_nonzero(on)), "of": int(on.size)}
    return Generated(as_dtype(on, dtype), f"mask {words.get(pattern, pattern)}", fidelity, facts)


def _checkerboard(shape: tuple[int, ...], cell: int) -> NDArray[np.bool_]:
    total = np.zeros((), np.int64)
    for size in shape[-2:]:
        total = total[..., None] + np.arange(size) // cell
    return np.broadcast_to(total % 2 == 0, shape).copy()


def _lengths(shape: tuple[int, ...], lengths: tuple[int, ...]) -> NDArray[np.bool_]:
    rows = shape[0] if len(shape) > 1 else 1
    if not shape or len(lengths) not in (1, rows):
        raise UsageError(f"{len(lengths)} lengths were given for {rows} rows")
    if max(lengths) > shape[-1]:
        raise UsageError(f"a length of {max(lengths)} is longer than the {shape[-1]} places of a row")
    ends = np.asarray(lengths).reshape([-1] + [1] * (len(shape) - 1))
    return np.broadcast_to(np.arange(shape[-1]) < ends, shape).copy()


def _from_picture(shape: tuple[int, ...], path: str, threshold: int) -> NDArray[np.bool_]:
    if len(shape) < 2:
        raise UsageError(f"a mask from a picture needs two axes, the shape has {len(shape)}")
    grey, _ = picture.resized(picture.read(path, "L"), (shape[-2], shape[-1]), "stretch", "nearest", 0, 0)
    return np.broadcast_to(np.asarray(grey) >= threshold, shape).copy()
