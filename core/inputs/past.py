"""Past keys and values of attention: empty as at the start, or filled."""

from __future__ import annotations

import numpy as np

from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import SYNTHETIC, Generated


def past(
    batch: int, heads: int, length: int, head_size: int, layout: str, content: str, seed: int, dtype: str
) -> Generated:
    """One cache tensor in the layout (``B`` batch, ``H`` heads, ``T`` steps, ``D`` head size, ``E`` both in one)."""
    sizes = {"B": batch, "H": heads, "T": length, "D": head_size, "E": heads * head_size}
    shape = bounded(tuple(sizes[letter] for letter in layout))
    numbers = np.random.default_rng(seed).standard_normal(shape) if content == "normal" else np.zeros(shape)
    if length == 0:
        words, fidelity = "empty past", "As at the start of a text: nothing is remembered."
    else:
        words, fidelity = f"past of {length} steps, {content}", SYNTHETIC
    return Generated(as_dtype(numbers, dtype), words, fidelity)
