"""A recording as the model will hear it: samples, frames of samples, or log-mel energies."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from core.errors import UsageError
from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import Generated
from core.inputs.logmel import log_mel
from core.inputs.recipe import Recipe
from core.inputs.sound import Samples, read_sound, resample

_AUTO: Final = {"samples": "NT", "frames": "NFM", "mel": "NMF"}
_AXES: Final = {"samples": "CT", "frames": "CFM", "mel": "CMF"}
_EXACT: Final = "The file's own samples."
_CHANGED: Final = "Resampled by a windowed sinc; another resampler differs in the last digits."
_MEL: Final = "Log-mel in double precision by librosa's definitions; equal to the model's own if its parameters are."


def audio(
    path: str, rate: int, mono: bool, start: float, seconds: float, form: str, frame: int, step: int, n_fft: int,
    hop: int, window: int, mels: int, low_hz: float, high_hz: float, scale: str, area: bool, power: float,
    centre: bool, log: str, floor: float, layout: str, dtype: str,
) -> Generated:  # fmt: skip
    """A recording in the layout; ``N`` is 1. Samples lie between -1 and 1.

    Raises:
        UsageError: if the layout does not fit the form or the channels, or nothing is left of the recording.
        ModelError: as ``sound.read_sound``.
    """
    samples, own = read_sound(path)
    channels = samples.shape[1]
    samples = samples.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32) if mono else samples
    samples = resample(samples, own, rate or own)
    rate = rate or own
    samples = _cut(samples, round(start * rate), round(seconds * rate), path)
    layout = _AUTO[form] if layout == "auto" else layout
    match form:
        case "mel":
            numbers: NDArray[np.generic] = log_mel(
                samples, rate, n_fft, hop, window, mels, low_hz, high_hz, scale, area, power, centre, log, floor
            )
        case "frames":
            numbers = frames(samples, frame, step or frame)
        case _:
            numbers = samples.T
    made = np.ascontiguousarray(_laid_out(numbers, _AXES[form], layout))
    facts: dict[str, object] = {
        "rate": rate, "file_rate": own, "channels": channels, "seconds": samples.shape[0] / rate,
    }  # fmt: skip
    fidelity = _MEL if form == "mel" else _EXACT if own == rate else _CHANGED
    return Generated(as_dtype(made, dtype), Recipe("audio", options={"path": path}).describe(), fidelity, facts)


def frames(samples: Samples, frame: int, step: int) -> Samples:
    """[channels, frames, frame]: the last frame is filled up with silence."""
    count = 1 + max(0, -(-(samples.shape[0] - frame) // step))
    bounded((samples.shape[1], count, frame), "the frames")
    padded = np.pad(samples, ((0, max(0, (count - 1) * step + frame - samples.shape[0])), (0, 0)))
    return np.asarray(sliding_window_view(padded, frame, axis=0)[::step].transpose(1, 0, 2), np.float32)


def _cut(samples: Samples, start: int, length: int, path: str) -> Samples:
    if start >= len(samples):
        raise UsageError("ends before the part that was asked for", path=path)
    kept = samples[start : start + length] if length else samples[start:]
    bounded((max(length, len(kept)), samples.shape[1]), "the recording")
    return np.pad(kept, ((0, max(0, length - len(kept))), (0, 0)))


def _laid_out(numbers: NDArray[np.generic], axes: str, layout: str) -> NDArray[np.generic]:
    """Axes in the order of the layout; ``N`` is new, a single channel may be left out."""
    if set(layout) - {"N", "C"} != set(axes) - {"C"}:
        raise UsageError(
            f"layout {layout} does not fit {axes.removeprefix('C')}", hint="Choose auto or another layout."
        )
    if "C" not in layout and numbers.shape[0] != 1:
        raise UsageError(f"layout {layout} has no axis for {numbers.shape[0]} channels", hint="Choose mono.")
    inner = [axes.index(letter) for letter in layout if letter != "N"]
    if "C" not in layout:
        numbers, inner = numbers[0], [axis - 1 for axis in inner]
    made = numbers.transpose(inner)
    return made[None] if "N" in layout else made
