"""What makes sense of a tensor of strings: how many, how long, how many different."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from core.dtypes import dtype_of
from core.errors import UsageError
from core.ir import Model, Tensor
from core.limits import MIB
from core.statistics.stream import Watch
from core.statistics.tensors import tensor_at

DIFFERENT: Final = 1 * MIB
"""Different strings that are told apart."""

SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class TextStats:
    """Statistics over all strings of a tensor; lengths in characters.

    Attributes:
        empty: strings without a character.
        different: how many there are, at least, where ``all_told`` is false.
        shortest, longest: lengths, ``None`` without a string; ``mean`` 0 then.
        frequent: the most frequent strings and how often they occur.
    """

    count: int
    empty: int
    different: int
    all_told: bool
    shortest: int | None
    longest: int | None
    mean: float
    frequent: tuple[tuple[str, int], ...]


def of_tensor(model: Model, tensor: Tensor | int, *, cancelled: Callable[[], bool] | None = None) -> TextStats:
    """Statistics over a stored tensor of strings; reads it from disk.

    Raises:
        UsageError: if it holds no strings.
        Unavailable: if the values cannot be decoded.
        Cancelled: if ``cancelled`` says so.
    """
    from core.tensors.read import blocks

    tensor = tensor_at(model, tensor)
    if dtype_of(tensor.dtype).kind != "string":
        raise UsageError(f"tensor {tensor.name[:200]!r} holds {tensor.dtype}, not strings")
    seen, told, count, total = Counter[str](), True, 0, 0
    lengths = list[int]()
    empty = 0
    for piece in Watch(cancelled=cancelled).through(blocks(model, tensor)):
        texts = [str(item) for item in piece.reshape(-1).tolist()]
        sizes = [len(text) for text in texts]
        count, total, empty = count + len(texts), total + sum(sizes), empty + sizes.count(0)
        if sizes:
            lengths = [min([*lengths, *sizes]), max([*lengths, *sizes])]
        if len(seen) < DIFFERENT:
            seen.update(texts)
        else:
            told = False
    low, high = lengths or (None, None)
    frequent = tuple(seen.most_common(SHOWN))
    return TextStats(count, empty, len(seen), told, low, high, total / count if count else 0.0, frequent)
