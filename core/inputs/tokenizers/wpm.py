"""WordPiece as GGUF files carry it: words begin with U+2581, the longest piece first.

Words are made as BERT's own tokenizer makes them (Devlin et al., 2018): controls go, accents go and
case is folded where the file does not say otherwise, punctuation and Chinese characters stand alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from core.inputs.tokenizers.bpe import Span
from core.inputs.tokenizers.spm import SPACE
from core.inputs.tokenizers.types import Clock

_CHINESE: Final = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip

LONGEST_WORD: Final = 100
"""Characters of a word beyond which BERT's own tokenizer calls it unknown."""

Letter = tuple[str, int]
"""A normalized character and the place of the one it comes from."""


@dataclass(frozen=True, slots=True)
class Wpm:
    """Ids of text by greedy longest match; a word with no full match is one unknown token."""

    ids: Mapping[str, int]
    longest: int
    unknown: int
    lowercase: bool = True
    strip_accents: bool = True

    def spans(self, text: str, clock: Clock) -> list[Span]:
        """The ids of a text with their characters."""
        found: list[Span] = []
        for word in self._words(text):
            clock.check()
            found += self._word(word)
        return found

    def _word(self, word: list[Letter]) -> list[Span]:
        if len(word) > LONGEST_WORD:
            return [(self.unknown, word[0][1], word[-1][1] + 1)]
        letters = SPACE + "".join(letter for letter, _ in word)
        places = [word[0][1], *(place for _, place in word)]
        found: list[Span] = []
        at, end = 0, len(letters)
        while at < end:
            for stop in range(min(end, at + self.longest), at, -1):
                token = self.ids.get(letters[at:stop])
                if token is not None:
                    found.append((token, places[at], places[stop - 1] + 1))
                    at = stop
                    break
            else:
                return [(self.unknown, places[0], places[-1] + 1)]
        return found

    def _words(self, text: str) -> Iterator[list[Letter]]:
        word: list[Letter] = []
        for letter, place in self._letters(text):
            alone = _alone(letter)
            if word and (alone or letter == " "):
                yield word
                word = []
            if alone:
                yield [(letter, place)]
            elif letter != " ":
                word.append((letter, place))
        if word:
            yield word

    def _letters(self, text: str) -> Iterator[Letter]:
        for place, letter in enumerate(text):
            if letter in "\t\n\r" or letter.isspace():
                yield " ", place
                continue
            if letter in "\0\ufffd" or unicodedata.category(letter) in ("Cc", "Cf", "Cn", "Co", "Cs"):
                continue
            parts = unicodedata.normalize("NFD", letter) if self.strip_accents else letter
            for part in parts:
                if self.strip_accents and unicodedata.category(part) == "Mn":
                    continue
                for small in part.lower() if self.lowercase else part:
                    yield small, place


def _alone(letter: str) -> bool:
    """Whether a character is a word of its own."""
    code = ord(letter)
    if code < 128:
        return 32 < code < 127 and not letter.isalnum()
    return unicodedata.category(letter).startswith("P") or any(low <= code <= high for low, high in _CHINESE)
