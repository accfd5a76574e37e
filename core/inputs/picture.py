"""Pictures from files of any Pillow format, and their way to the pixels and numbers of a model.

Sizes are checked in the header before anything is decoded.
"""

from __future__ import annotations

import struct
import threading
import warnings
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import BrokenFile, LimitExceeded, Unavailable, UnknownFormat, UnreadableFile, UsageError
from core.inputs.encode import as_dtype
from core.inputs.recipe import READY
from core.limits import MIB

FILE_BYTES: Final = 256 * MIB
PIXELS: Final = 64 * MIB
"""Pixels of one picture, counted over all that is decoded."""

_LEFT_OUT: Final = frozenset({"EPS", "WMF", "FPX", "MIC", "BUFR", "GRIB", "HDF5", "MPEG"})
"""EPS and WMF start other programs to draw themselves; the others hold no picture Pillow can decode alone."""

_BROKEN: Final = (
    OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, IndexError, TypeError, KeyError,
    OverflowError, AttributeError, NotImplementedError, ZeroDivisionError,
)  # fmt: skip
_READY_FOLDER: Final = Path(__file__).parent / "ready_made"
_WARNINGS: Final = threading.Lock()

STATISTICS: Final[dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "0..1": ((0.0,), (1.0,)),
    "-1..1": ((0.5,), (0.5,)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
}
"""Mean and deviation by name: torchvision's ImageNet figures and OpenAI CLIP's."""


@contextmanager
def opened(path: str) -> Generator[Any]:
    """A Pillow image whose header was read and whose size is allowed; nothing is decoded yet.

    Raises:
        UnreadableFile: if the file is missing or may not be read.
        UnknownFormat: if it is no picture.
        LimitExceeded: beyond ``PIXELS`` or ``FILE_BYTES``.
        BrokenFile: if it is damaged, here or while it is decoded inside the ``with`` block.
    """
    from PIL import Image, UnidentifiedImageError

    place, shown = _place(path)
    Image.init()
    formats = [name for name in Image.OPEN if name not in _LEFT_OUT]
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(place, formats=formats) as image:
                size_checked(image, shown)
                yield image
        except (Image.DecompressionBombWarning, Image.DecompressionBombError):
            raise _too_large(shown) from None
        except UnidentifiedImageError:
            raise UnknownFormat("is no picture that can be read here", path=shown) from None
        except _BROKEN as error:
            raise BrokenFile(f"is a damaged picture: {str(error)[:200]}", path=shown) from None


def size_checked(image: Any, path: str) -> None:
    """Refuse a picture or frame of more than ``PIXELS``.

    Raises:
        LimitExceeded: with both sides.
    """
    width, height = image.size
    if width * height > PIXELS:
        raise LimitExceeded(
            f"has {height} × {width} pixels, allowed are {PIXELS} in all", path=path, hint="Make it smaller first."
        )


def _too_large(path: str) -> LimitExceeded:
    return LimitExceeded(f"unpacks to more than {PIXELS} pixels", path=path, hint="Make it smaller first.")


def _place(path: str) -> tuple[Path, str]:
    """The file on disk and how it is called in messages."""
    if not path:
        raise UsageError("no picture was named", hint=f"Give the path of one, or {READY}picture.")
    place = Path(path)
    if path.startswith(READY):
        place = _READY_FOLDER / f"{path.removeprefix(READY)}.png"
        if place.parent != _READY_FOLDER or not place.is_file():
            names = ", ".join(sorted(f"{READY}{p.stem}" for p in _READY_FOLDER.glob("*.png")))
            raise UsageError(f"no ready-made picture is called {path[:80]!r}", hint=f"There are {names}.")
    try:
        regular, nbytes = place.is_file(), place.stat().st_size
        if regular:
            with place.open("rb"):
                pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the path is not valid"
        raise UnreadableFile(f"cannot be read: {reason}", path=path) from None
    if not regular:
        raise UnreadableFile("is not a regular file", path=path)
    if nbytes > FILE_BYTES:
        raise LimitExceeded(f"has {nbytes} bytes, allowed for a picture are {FILE_BYTES}", path=path)
    return place, path


def plain(image: Any, mode: str, path: str) -> Any:
    """A decoded frame in mode ``RGB`` or ``L``, turned upright by its EXIF orientation.

    16-bit greys keep their upper 8 bits; float pixels from 0 to 1 are multiplied by 255. Transparency is dropped.

    Raises:
        BrokenFile: if a pixel is no finite number.
    """
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode == "F":
        numbers = np.asarray(image)
        if not np.isfinite(numbers).all():
            raise BrokenFile("has pixels that are no finite numbers", path=path, hint="Replace NaN and infinity first.")
        unit = bool(numbers.size) and numbers.min() >= 0 and numbers.max() <= 1
        image = Image.fromarray(np.clip(np.rint(numbers * 255 if unit else numbers), 0, 255).astype(np.uint8))
    elif image.mode.startswith("I"):
        numbers = np.asarray(image).astype(np.int64)
        wide = image.mode != "I" or numbers.max(initial=0) > 255
        image = Image.fromarray(np.clip(numbers >> 8 if wide else numbers, 0, 255).astype(np.uint8))
    return image if image.mode == mode else image.convert(mode)


def read(path: str, mode: str) -> Any:
    """The first frame of a picture file in mode ``RGB`` or ``L``, upright; reads and decodes the file."""
    with opened(path) as image:
        image.load()
        return plain(image, mode, path)


def resized(
    image: Any, size: tuple[int, int], fit: str, resample: str, shorter: int, fill: int
) -> tuple[Any, dict[str, object]]:
    """A picture brought to ``size`` (height, width; 0 keeps a side), and what was done to it.

    Letterbox and crop round the other side to the nearest pixel and put the picture in the middle, the odd
    pixel to the right and below.
    """
    from PIL import Image

    method = Image.Resampling[resample.upper()]
    height, width = size[0] or image.height, size[1] or image.width
    facts: dict[str, object] = {"original": [image.height, image.width], "size": [height, width], "fit": fit}
    if fit == "stretch":
        return image if image.size == (width, height) else image.resize((width, height), method), facts
    ratios = (height / image.height, width / image.width)
    scale = min(ratios) if fit == "letterbox" else shorter / min(image.height, image.width) if shorter else max(ratios)
    inner = (max(1, round(image.height * scale)), max(1, round(image.width * scale)))
    inner = (min(inner[0], height), min(inner[1], width)) if fit == "letterbox" else inner
    if inner[0] * inner[1] > PIXELS:
        raise LimitExceeded(f"the resized picture would have {inner[0]} × {inner[1]} pixels, allowed are {PIXELS}")
    if (image.height, image.width) != inner:
        image = image.resize((inner[1], inner[0]), method)
    facts["resized"] = list(inner)
    top, left = int((height - inner[0]) / 2), int((width - inner[1]) / 2)
    facts["offset"] = [top, left]
    if fit == "letterbox":
        canvas = Image.new(image.mode, (width, height), (fill,) * len(image.getbands()))
        canvas.paste(image, (left, top))
        return canvas, facts
    return image.crop((-left, -top, -left + width, -top + height)), facts


def coloured(image: Any, channels: str) -> NDArray[np.uint8]:
    """Pixels as an array of height × width × channels in the wanted order."""
    pixels = np.asarray(image, np.uint8)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    return pixels[..., ::-1] if channels == "bgr" else pixels


def normalised(
    pixels: NDArray[np.uint8], normalise: str, mean: tuple[float, ...], std: tuple[float, ...], channels: str
) -> NDArray[np.generic]:
    """``(pixels / 255 - mean) / std`` in float32, channels last; the pixels themselves for ``none``.

    Named figures are those of red, green, blue and follow the channel order; for gray their mean is taken.
    Custom figures are in the order of the channels.

    Raises:
        UsageError: if custom figures are neither one nor one a channel.
    """
    if normalise == "none":
        return pixels
    count = pixels.shape[-1]
    figures = [mean or (0.0,), std or (1.0,)] if normalise == "custom" else list(STATISTICS[normalise])
    if normalise != "custom":
        if channels == "bgr":
            figures = [values[::-1] for values in figures]
        elif channels == "gray":
            figures = [(sum(values) / len(values),) for values in figures]
    for name, values in zip(("mean", "std"), figures, strict=True):
        if len(values) not in (1, count):
            raise UsageError(f"{name} has {len(values)} numbers for {count} channels")
    low, spread = (np.asarray(values, np.float32) for values in figures)
    numbers = pixels.astype(np.float32) / np.float32(255)
    return numbers if normalise == "0..1" else (numbers - low) / spread


def typed(numbers: NDArray[np.generic], dtype: str, normalise: str) -> NDArray[np.generic]:
    """Numbers as the element type; whole-number types only take plain pixels.

    Raises:
        UsageError: if a normalised picture is asked for in whole numbers.
    """
    from core.dtypes import dtype_of

    if dtype_of(dtype).kind in ("int", "uint", "bool") and normalise != "none":
        raise UsageError(f"a picture as {dtype} holds no {normalise} numbers", hint="Choose normalise none.")
    return as_dtype(numbers, dtype)


def ready_names() -> tuple[str, ...]:
    """Names of the ready-made pictures."""
    found = tuple(sorted(place.stem for place in _READY_FOLDER.glob("*.png")))
    if not found:
        raise Unavailable("the ready-made pictures are missing from this installation")
    return found
