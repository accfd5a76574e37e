"""A stack of frames from a folder of pictures, several files or one animated file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.errors import NotFound, UnreadableFile, UsageError
from core.inputs import picture
from core.inputs.encode import bounded
from core.inputs.generated import Generated
from core.inputs.image import pixels_of, qwen_patches, qwen_size
from core.inputs.recipe import Recipe
from core.limits import FILES, check

_FIDELITY: Final = "Frames decoded and resized by Pillow as this recipe says, spread evenly over those there are."
_AXES: Final = {"TCHW": (0, 3, 1, 2), "CTHW": (3, 0, 1, 2), "THWC": (0, 1, 2, 3)}


def video(
    paths: tuple[str, ...], frames: int, height: int, width: int, fit: str, resample: str, shorter: int, fill: int,
    channels: str, normalise: str, mean: tuple[float, ...], std: tuple[float, ...], layout: str, patch: int,
    temporal: int, merge: int, least_pixels: int, most_pixels: int, dtype: str,
) -> Generated:  # fmt: skip
    """Frames in the layout; where no size is given all take that of the first frame.

    Raises:
        UsageError: if nothing is named.
        LimitExceeded: if the stack would be too large.
    """
    files = picture_files(paths)
    count = len(files) if len(files) > 1 else _count(files[0])
    chosen = spread(count, frames)
    mode = "L" if channels == "gray" else "RGB"
    stack: list[np.ndarray[Any, Any]] = []
    facts: dict[str, object] = {}
    for decoded in _decoded(files, chosen, mode):
        if not stack:
            height, width = height or decoded.height, width or decoded.width
            if layout == "qwen":
                height, width = qwen_size(height, width, patch * merge, least_pixels, most_pixels)
            bounded((len(chosen), height, width, 3), "the video")
        shown, facts = picture.resized(decoded, (height, width), fit, resample, shorter, fill)
        stack.append(pixels_of(shown, channels, normalise, mean, std))
    numbers = np.stack(stack)
    facts = {**facts, "frames": list(chosen), "of": count}
    if layout == "qwen":
        made, grid = qwen_patches(numbers, patch, temporal, merge)
        facts["grid_thw"] = list(grid)
    else:
        made = np.ascontiguousarray(numbers.transpose(_AXES[layout.removeprefix("N")]))
        made = made[None] if layout.startswith("N") else made
    source = Recipe("video", options={"paths": paths}).describe()
    return Generated(picture.typed(made, dtype, normalise), source, _FIDELITY, facts)


def picture_files(paths: tuple[str, ...]) -> list[str]:
    """The files named; those of a folder in the order of the numbers in their names, hidden ones left out.

    Raises:
        UsageError: if nothing is named.
        NotFound: if a folder holds no file.
        LimitExceeded: beyond ``limits.FILES``.
    """
    if not paths:
        raise UsageError("no pictures were named", hint="Give a folder, several files or one animated file.")
    found: list[str] = []
    for path in paths:
        place = Path(path)
        if not place.is_dir():
            found.append(path)
            continue
        try:
            inside = [str(p) for p in place.iterdir() if p.is_file() and not p.name.startswith(".")]
        except OSError as error:
            raise UnreadableFile(f"cannot be read: {error.strerror}", path=path) from None
        if not inside:
            raise NotFound("holds no file", path=path)
        found += sorted(inside, key=_by_number)
        check("the number of files", len(found), FILES, path=path)
    return found


def spread(count: int, wanted: int) -> tuple[int, ...]:
    """Indexes of ``wanted`` frames of ``count``, first and last included; all where 0; repeated where too few."""
    if wanted == 0:
        return tuple(range(count))
    return tuple(int(at) for at in np.rint(np.linspace(0, count - 1, wanted)))


def _by_number(path: str) -> list[tuple[int, int, str]]:
    name = re.split(r"[/\\]", path)[-1]
    return [(0, int(p), "") if p.isdecimal() and len(p) < 19 else (1, 0, p) for p in re.split(r"(\d+)", name) if p]


def _count(path: str) -> int:
    with picture.opened(path) as opened:
        return check("the number of frames", int(getattr(opened, "n_frames", 1)), FILES, path=path)


def _decoded(files: list[str], chosen: tuple[int, ...], mode: str) -> Iterator[Any]:
    if len(files) > 1:
        for at in chosen:
            yield picture.read(files[at], mode)
        return
    with picture.opened(files[0]) as opened:
        for at in chosen:
            opened.seek(at)
            picture.size_checked(opened, files[0])
            yield picture.plain(opened.copy(), mode, files[0])
