"""Token ids without a tokenizer: drawn, counted up or written down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of
from core.errors import UsageError
from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import Generated

_FIDELITY = {
    "random": "Ids of the vocabulary in random order: no text reads like this.",
    "ramp": "Ids in rising order: no text reads like this.",
    "values": "The ids given.",
}


def ids(
    shape: tuple[int, ...], dtype: str, pattern: str, seed: int, vocabulary: int, first: int, values: tuple[int, ...]
) -> Generated:
    """Ids of ``shape`` from ``first`` to ``vocabulary - 1``; a ramp begins again at ``first`` where it ends.

    ``values`` fill each row, again from the start where the row is longer.

    Raises:
        UsageError: if an id is not below the vocabulary, or the type holds no whole numbers.
    """
    bounded(shape)
    if dtype_of(dtype).kind not in ("int", "uint"):
        raise UsageError(f"ids cannot be {dtype}", hint="Use int32, int64, uint32 or uint64.")
    length = shape[-1] if shape else 1
    if pattern == "values":
        if not values:
            raise UsageError("no ids were given", hint="Write them with commas between.")
        first = max(values)
    if first >= vocabulary:
        raise UsageError(f"id {first} is not below the vocabulary of {vocabulary}")
    if pattern == "values":
        made: NDArray[np.int64] = np.resize(np.asarray(values, np.int64), length)
    elif pattern == "ramp":
        made = first + np.arange(length, dtype=np.int64) % (vocabulary - first)
    else:
        made = np.random.default_rng(seed).integers(first, vocabulary, shape)
    words = f"{pattern} ids below {vocabulary}" + (f", seed {seed}" if pattern == "random" else "")
    return Generated(as_dtype(np.broadcast_to(made, shape).copy(), dtype), words, _FIDELITY[pattern])
