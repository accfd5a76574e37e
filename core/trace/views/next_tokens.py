"""What a language model would say next: the likeliest tokens at one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class NextToken:
    """One candidate; ``piece`` is empty where no tokenizer is known."""

    rank: int
    id: int
    piece: str
    logit: float
    probability: float


@dataclass(frozen=True, slots=True)
class NextTokens:
    """The likeliest tokens and how sure the model is; ``entropy`` in bits over the whole vocabulary."""

    tokens: tuple[NextToken, ...]
    entropy: float


def next_tokens(logits: NDArray[Any], most: int = 20, piece: Callable[[int], str] = lambda _: "") -> NextTokens:
    """The ``most`` likeliest of a row of logits [vocabulary], the likeliest first.

    Probabilities are the softmax over all finite logits, in float64.
    """
    row = np.asarray(logits, np.float64).ravel()
    row = np.where(np.isnan(row), -np.inf, row)
    top = float(row.max(initial=-np.inf))
    if not np.isfinite(top):
        return NextTokens((), float("nan"))
    weights = np.exp(row - top)
    share = weights / weights.sum()
    order = np.argsort(-row, kind="stable")[: max(0, most)]
    positive = share[share > 0]
    entropy = float(-(positive * np.log2(positive)).sum())
    found = (NextToken(rank, int(i), piece(int(i)), float(row[i]), float(share[i])) for rank, i in enumerate(order, 1))
    return NextTokens(tuple(found), entropy)
