"""A picture as the model will see it: size, channels, numbers, order of axes."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError
from core.inputs import picture
from core.inputs.encode import bounded
from core.inputs.generated import Generated
from core.inputs.recipe import Recipe

_FIDELITY: Final = "Decoded and resized by Pillow as this recipe says; equal to the model's own if that does the same."
_QWEN: Final = "Sizes, order and numbers as the Qwen2-VL and Qwen3-VL image processor of transformers (slow kind)."

LAYOUTS: Final = {
    "CHW": (2, 0, 1), "HWC": (0, 1, 2),
}  # fmt: skip


def image(
    path: str, height: int, width: int, fit: str, resample: str, shorter: int, fill: int, channels: str,
    normalise: str, mean: tuple[float, ...], std: tuple[float, ...], layout: str, patch: int, temporal: int,
    merge: int, least_pixels: int, most_pixels: int, dtype: str,
) -> Generated:  # fmt: skip
    """One picture of ``path`` in the layout: ``N`` is 1, ``patches`` is [1, count, patch * patch * channels] row
    by row, ``qwen`` is ``pixel_values`` [patches, channels * temporal * patch * patch].

    Raises:
        UsageError: if options contradict each other.
        ModelError: as ``picture.opened``.
    """
    check_layout(layout, channels)
    decoded = picture.read(path, "L" if channels == "gray" else "RGB")
    if layout == "qwen":
        height, width = qwen_size(
            height or decoded.height, width or decoded.width, patch * merge, least_pixels, most_pixels
        )
    bounded((height or decoded.height, width or decoded.width, 3))
    shown, facts = picture.resized(decoded, (height, width), fit, resample, shorter, fill)
    numbers = pixels_of(shown, channels, normalise, mean, std)
    source = Recipe("image", options={"path": path}).describe()
    facts = {**facts, "channels": channels, "normalise": normalise}
    if layout == "qwen":
        rows, grid = qwen_patches(np.repeat(numbers[None], temporal, 0), patch, temporal, merge)
        facts["grid_thw"] = list(grid)
        return Generated(picture.typed(rows, dtype, normalise), source, _QWEN, facts)
    made = patches(numbers, patch)[None] if layout == "patches" else _laid_out(numbers, layout)
    return Generated(picture.typed(made, dtype, normalise), source, _FIDELITY, facts)


def check_layout(layout: str, channels: str) -> None:
    """Refuse layouts without a channel axis for coloured pictures.

    Raises:
        UsageError: if so.
    """
    if layout in ("NHW", "HW") and channels != "gray":
        raise UsageError(f"layout {layout} has no axis for colours", hint="Choose channels gray.")


def pixels_of(
    shown: Any, channels: str, normalise: str, mean: tuple[float, ...], std: tuple[float, ...]
) -> NDArray[np.generic]:
    """Height × width × channels numbers of a resized picture."""
    return picture.normalised(picture.coloured(shown, channels), normalise, mean, std, channels)


def _laid_out(numbers: NDArray[np.generic], layout: str) -> NDArray[np.generic]:
    inner = layout.removeprefix("N")
    made = numbers[..., 0] if inner == "HW" else np.ascontiguousarray(numbers.transpose(LAYOUTS[inner]))
    return made[None] if layout.startswith("N") else made


def patches(numbers: NDArray[np.generic], patch: int) -> NDArray[np.generic]:
    """[count, patch * patch * channels]: patches row by row, each with channels last.

    Raises:
        UsageError: if a side is no multiple of the patch.
    """
    height, width, count = numbers.shape
    if height % patch or width % patch:
        raise UsageError(
            f"{height} × {width} pixels do not divide into patches of {patch}", hint="Set height and width."
        )
    grid = numbers.reshape(height // patch, patch, width // patch, patch, count)
    return grid.transpose(0, 2, 1, 3, 4).reshape(-1, patch * patch * count)


def qwen_size(height: int, width: int, factor: int, least: int, most: int) -> tuple[int, int]:
    """Sides as multiples of ``factor`` whose product lies between ``least`` and ``most``.

    Source: ``smart_resize`` in transformers, models/qwen2_vl/image_processing_qwen2_vl.py.

    Raises:
        UsageError: if one side is more than 200 times the other.
    """
    if max(height, width) > 200 * min(height, width):
        raise UsageError(f"a picture of {height} × {width} is longer than 200 times its width")
    rows, columns = round(height / factor) * factor, round(width / factor) * factor
    if rows * columns > most:
        beta = math.sqrt(height * width / most)
        rows = max(factor, math.floor(height / beta / factor) * factor)
        columns = max(factor, math.floor(width / beta / factor) * factor)
    elif rows * columns < least:
        beta = math.sqrt(least / (height * width))
        rows, columns = math.ceil(height * beta / factor) * factor, math.ceil(width * beta / factor) * factor
    return rows, columns


def qwen_patches(
    frames: NDArray[np.generic], patch: int, temporal: int, merge: int
) -> tuple[NDArray[np.generic], tuple[int, int, int]]:
    """``pixel_values`` and ``grid_thw`` of [time, height, width, channels] frames.

    Rows go by time, then by squares of ``merge`` × ``merge`` patches that the model merges, row by row inside each;
    a row is channel, time within the patch, y, x. Missing last frames repeat the last one.

    Raises:
        UsageError: if a side is no multiple of ``patch * merge``.
    """
    time, height, width, count = frames.shape
    if height % (patch * merge) or width % (patch * merge):
        raise UsageError(f"{height} × {width} pixels do not divide into squares of {patch * merge}")
    if time % temporal:
        frames = np.concatenate([frames, np.repeat(frames[-1:], temporal - time % temporal, 0)])
    grid = (frames.shape[0] // temporal, height // patch, width // patch)
    cut = frames.reshape(
        grid[0], temporal, grid[1] // merge, merge, patch, grid[2] // merge, merge, patch, count
    )  # t, dt, row, my, y, column, mx, x, c
    rows = cut.transpose(0, 2, 5, 3, 6, 8, 1, 4, 7)
    return rows.reshape(grid[0] * grid[1] * grid[2], count * temporal * patch * patch), grid
