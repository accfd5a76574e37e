"""Log-mel energies of samples, as librosa, torchaudio and Whisper define them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from core.errors import UsageError
from core.inputs.encode import bounded

Reals = NDArray[np.float64]
_BLOCK: Final = 1 << 22
"""Numbers transformed at once."""


def to_mel(hz: Reals, scale: str) -> Reals:
    """Mel of frequencies in Hz.

    ``htk``: 2595 log10(1 + f / 700). ``slaney``: 3 f / 200 below 1000 Hz, above it 15 + 27 ln(f / 1000) / ln 6.4
    (Slaney, Auditory Toolbox 1998).
    """
    if scale == "htk":
        return 2595 * np.log10(1 + hz / 700)
    return np.where(hz < 1000, 3 * hz / 200, 15 + 27 * np.log(np.maximum(hz, 1e-9) / 1000) / np.log(6.4))


def to_hz(mel: Reals, scale: str) -> Reals:
    """The inverse of ``to_mel``."""
    if scale == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    return np.where(mel < 15, 200 * mel / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


def mel_bands(rate: float, n_fft: int, mels: int, low: float, high: float, scale: str, area: bool) -> Reals:
    """Triangles of shape [mels, n_fft // 2 + 1] over the frequencies of a transform.

    Raises:
        UsageError: if the band edges are not in rising order below half the rate.
    """
    high = high or rate / 2
    if not 0 <= low < high <= rate / 2:
        raise UsageError(f"mel bands from {low:g} to {high:g} Hz do not lie below half the rate, {rate / 2:g} Hz")
    ends = to_mel(np.array([low, high]), scale)
    edges = to_hz(np.asarray(np.linspace(ends[0], ends[1], mels + 2), np.float64), scale)
    bins = np.arange(n_fft // 2 + 1) * rate / n_fft
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    bands = np.maximum(0, np.minimum(rising, falling))
    return bands * (2 / (edges[2:] - edges[:-2]))[:, None] if area else bands


def log_mel(
    samples: NDArray[np.floating], rate: float, n_fft: int, hop: int, window: int, mels: int, low_hz: float,
    high_hz: float, scale: str, area: bool, power: float, centre: bool, log: str, floor: float,
) -> NDArray[np.float32]:  # fmt: skip
    """[channels, mels, frames] of samples [time, channels], calculated in double precision.

    A periodic Hann window stands in the middle of ``n_fft``. ``whisper`` is log10, cut 8 below the highest, plus 4,
    divided by 4, without the last frame (openai/whisper, audio.py).

    Raises:
        UsageError: if the recording is too short for one frame or the window longer than ``n_fft``.
    """
    window = window or n_fft
    if window > n_fft:
        raise UsageError(f"the window of {window} samples is longer than n_fft, {n_fft}")
    bands = mel_bands(rate, n_fft, mels, low_hz, high_hz, scale, area)
    shape = np.zeros(n_fft)
    start = (n_fft - window) // 2
    shape[start : start + window] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    made: list[Reals] = []
    for channel in samples.T.astype(np.float64):
        line = channel
        if centre:
            if len(line) <= n_fft // 2:
                raise UsageError(f"{len(line)} samples are too few to mirror {n_fft // 2} at either end")
            line = np.pad(line, n_fft // 2, mode="reflect")
        if len(line) < n_fft:
            raise UsageError(f"{len(line)} samples are too few for one frame of {n_fft}")
        made.append(_energies(line, shape, hop, bands, power))
    energies = np.stack(made)
    if log == "whisper":
        energies = np.log10(np.maximum(energies[..., :-1], floor))
        energies = (np.maximum(energies, energies.max(initial=-np.inf) - 8) + 4) / 4
    elif log != "none":
        energies = np.log(np.maximum(energies, floor)) / {"ln": 1.0, "log10": np.log(10), "db": np.log(10) / 10}[log]
    return energies.astype(np.float32)


def _energies(line: Reals, shape: Reals, hop: int, bands: Reals, power: float) -> Reals:
    frames = sliding_window_view(line, len(shape))[::hop]
    bounded((len(frames), len(bands)), "the spectrogram")
    made = np.empty((len(bands), len(frames)))
    step = max(1, _BLOCK // len(shape))
    for start in range(0, len(frames), step):
        magnitudes = np.abs(np.fft.rfft(frames[start : start + step] * shape, axis=-1))
        made[:, start : start + step] = bands @ (magnitudes**power).T
    return made
