"""Byte-pair encoding with a vocabulary of pieces and a rank for every pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from core.inputs.tokenizers.byte_level import to_letters
from core.inputs.tokenizers.merging import Priority, merged
from core.inputs.tokenizers.pretokens import Cut, cut
from core.inputs.tokenizers.types import Clock

Span = tuple[int, int, int]
"""An id with the characters it stands for, end excluded."""

_KEPT: Final = 20_000
"""Words whose ids are remembered."""


@dataclass(frozen=True, slots=True)
class Bpe:
    """Ids of text, cut by ``how`` and joined by ``priority``.

    Attributes:
        fallback: ids of a letter that is in no piece.
    """

    ids: Mapping[str, int]
    priority: Priority
    how: Cut
    fallback: Callable[[str], list[int]]
    known: dict[str, list[Span]] = field(default_factory=dict[str, list[Span]])

    def spans(self, text: str, clock: Clock) -> list[Span]:
        """The ids of a text with their characters; a character of several tokens is in each of them."""
        found: list[Span] = []
        for start, stop in cut(text, self.how.patterns, clock):
            word = text[start:stop]
            if not self.how.bytes:
                found += [(token, start + first, start + last) for token, first, last in self._word(word, clock)]
                continue
            owner = [at for at, letter in enumerate(word, start) for _ in letter.encode()]
            found += [
                (token, owner[first], owner[last - 1] + 1)
                for token, first, last in self._word(to_letters(word.encode()), clock)
            ]
        return found

    def _word(self, word: str, clock: Clock) -> list[Span]:
        """Ids of one word with the letters they stand for."""
        done = self.known.get(word)
        if done is None:
            done = self._encoded(word, clock)
            if len(self.known) < _KEPT and len(word) < 64:
                self.known[word] = done
        return done

    def _encoded(self, word: str, clock: Clock) -> list[Span]:
        # Gemma 4 has tokens for runs of line ends, which no merge makes.
        if word in self.ids and (self.how.whole or (not self.how.bytes and not word.strip("\n"))):
            return [(self.ids[word], 0, len(word))]
        found: list[Span] = []
        for start, stop in merged(word, self.priority, clock):
            token = self.ids.get(word[start:stop])
            if token is not None:
                found.append((token, start, stop))
                continue
            for at in range(start, stop):
                found += [(other, at, at + 1) for other in self.fallback(word[at])]
        return found


def ranked(merges: Mapping[tuple[str, str], int]) -> Priority:
    """Priority by a list of pairs."""

    def priority(left: str, right: str) -> float | None:
        return merges.get((left, right))

    return priority
