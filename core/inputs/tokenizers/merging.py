"""Joining neighbours by priority: the heart of byte-pair encoding and of SentencePiece's BPE.

Sennrich et al. (2016), "Neural Machine Translation of Rare Words with Subword Units".
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from core.inputs.tokenizers.types import Clock

Priority = Callable[[str, str], float | None]
"""The rank of joining two neighbours, lowest first; ``None`` where they stay apart."""


def merged(parts: Sequence[str], priority: Priority, clock: Clock) -> list[tuple[int, int]]:
    """Ranges of ``parts`` that end up as one; among equal ranks the leftmost pair goes first."""
    count = len(parts)
    text: list[str] = list(parts)
    after = [*range(1, count), -1]
    before = list(range(-1, count - 1))
    heap: list[tuple[float, int, str]] = []

    def offer(left: int) -> None:
        right = after[left]
        rank = None if right < 0 else priority(text[left], text[right])
        if rank is not None:
            heapq.heappush(heap, (rank, left, text[left] + text[right]))

    for index in range(count - 1):
        offer(index)
    steps = 0
    while heap:
        _, left, joined = heapq.heappop(heap)
        steps += 1
        if not steps & 0xFFF:
            clock.check()
        right = after[left] if text[left] else -1
        if right < 0 or text[left] + text[right] != joined:
            continue
        text[left], text[right] = joined, ""
        after[left] = after[right]
        if after[left] >= 0:
            before[after[left]] = left
        if before[left] >= 0:
            offer(before[left])
        offer(left)
    starts = [index for index in range(count) if text[index]]
    return list(zip(starts, [*starts[1:], count], strict=True)) if starts else []
