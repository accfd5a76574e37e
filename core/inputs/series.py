"""Generated signals: periodic waves, a chirp, noise, a random walk, one impulse."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError
from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import Generated

_FIDELITY: Final = "A textbook signal, calculated in double precision and rounded to the type."


def series(
    wave: str, samples: int, rate: float, frequency: float, end_frequency: float, amplitude: float, phase: float,
    at: int, channels: int, batch: int, layout: str, seed: int, dtype: str,
) -> Generated:  # fmt: skip
    """A signal in the layout (``N`` batch, ``C`` channels, ``T`` samples); noise differs in every channel.

    Raises:
        UsageError: if the layout has no axis for the channels or copies, or the impulse lies outside.
    """
    for letter, size, name in (("C", channels, "channels"), ("N", batch, "copies")):
        if letter not in layout and size > 1:
            raise UsageError(f"layout {layout} has no axis for {size} {name}")
    if wave == "impulse" and at >= samples:
        raise UsageError(f"the impulse at sample {at} lies outside of {samples} samples")
    bounded((batch, channels, samples))
    numbers = _signal(
        wave, (batch, channels, samples), rate, frequency, end_frequency, amplitude, phase, at, seed
    )  # fmt: skip
    order = ["NCT".index(letter) for letter in layout]
    left_out = [axis for axis in range(3) if axis not in order]
    made = numbers.transpose(*left_out, *order).reshape([numbers.shape[axis] for axis in order])
    periodic = wave in ("sine", "cosine", "square", "saw")
    facts: dict[str, object] = {"rate": rate, "seconds": samples / rate}
    if wave == "chirp":
        facts["frequency"] = [frequency, end_frequency]
    elif periodic:
        facts["frequency"] = frequency
    if periodic and 2 * frequency > rate:
        facts["note"] = f"{frequency:g} Hz lies above half the rate and appears folded down"
    words = f"{wave} {frequency:g} Hz at {rate:g} Hz" if periodic or wave == "chirp" else f"{wave}, seed {seed}"
    return Generated(as_dtype(np.ascontiguousarray(made), dtype), words, _FIDELITY, facts)


def _signal(
    wave: str, shape: tuple[int, int, int], rate: float, frequency: float, end: float, amplitude: float,
    phase: float, at: int, seed: int,
) -> NDArray[np.float64]:  # fmt: skip
    rng = np.random.default_rng(seed)
    if wave == "noise":
        return amplitude * rng.standard_normal(shape)
    if wave == "walk":
        return np.cumsum(amplitude * rng.standard_normal(shape), axis=-1)
    if wave == "impulse":
        numbers = np.zeros(shape)
        numbers[..., at] = amplitude
        return numbers
    seconds = np.arange(shape[2], dtype=np.float64) / rate
    turns = frequency * seconds
    if wave == "chirp":  # linear: the frequency reaches its end with the last sample's end
        turns = turns + (end - frequency) * seconds**2 / (2 * shape[2] / rate)
    turns = turns + phase * np.arange(shape[1])[:, None]
    match wave:
        case "cosine":
            line = np.cos(2 * np.pi * turns)
        case "square":
            line = np.where(turns % 1 < 0.5, 1.0, -1.0)
        case "saw":
            line = 2 * (turns % 1) - 1
        case _:
            line = np.sin(2 * np.pi * turns)
    return np.broadcast_to(amplitude * line, shape)
