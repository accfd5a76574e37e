"""Pictures and signals that ship with the product, as tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from core.errors import Unavailable, UsageError
from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import Generated
from core.inputs.image import image
from core.inputs.recipe import READY, shape_text

PICTURES: Final = {"picture": (1, 3, 224, 224), "digit": (1, 1, 28, 28)}
SIGNALS: Final = {"heartbeat": 250, "vowel": 16000, "steps": 100}
"""Samples a second by name."""

_FOLDER: Final = Path(__file__).parent / "ready_made"
_FIDELITY: Final = "A stand-in for a real recording or photograph: calculated, not taken."


def ready(name: str, shape: tuple[int, ...], dtype: str) -> Generated:
    """A picture from 0 to 1, [1, channels, height, width] (or channels last), or a signal from -1 to 1, [1, samples].

    Args:
        shape: empty for its own; a picture is resized to it, a signal repeated along the last axis.

    Raises:
        UsageError: if a picture is asked for in a shape that has no place for it.
    """
    bounded(shape)
    if name in PICTURES:
        return _picture(name, shape or PICTURES[name], dtype)
    try:
        with np.load(_FOLDER / "signals.npz", allow_pickle=False) as file:
            line = file[name].astype(np.float64) / 32767
    except OSError:
        raise Unavailable("the ready-made signals are missing from this installation") from None
    wanted = shape or (1, line.size)
    made = np.broadcast_to(np.resize(line, wanted[-1]), wanted)
    return Generated(as_dtype(made, dtype), f"ready-made {name}", _FIDELITY, {"rate": SIGNALS[name]})


def _picture(name: str, shape: tuple[int, ...], dtype: str) -> Generated:
    last = len(shape) in (3, 4) and shape[-1] in (1, 3) and shape[-3] not in (1, 3)
    if len(shape) not in (3, 4) or (shape[-1] if last else shape[-3]) not in (1, 3):
        raise UsageError(f"a picture has no place in shape {shape_text(shape)}", hint="Use channels, height, width.")
    height, width, count = shape[-3:] if last else (*shape[-2:], shape[-3])
    whole = np.dtype(np.uint8) if dtype in ("uint8", "int32", "int64") else None
    made = image(
        f"{READY}{name}", height, width, "stretch", "bilinear", 0, 0, "rgb" if count == 3 else "gray",
        "none" if whole else "0..1", (), (), "HWC" if last else "CHW", 16, 2, 2, 1, 1, dtype,
    )  # fmt: skip
    return Generated(np.broadcast_to(made.array, shape).copy(), f"ready-made {name}", _FIDELITY, made.facts)
