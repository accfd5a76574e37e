"""The unigram model as GGUF files carry it (T5, XLM-R): the segmentation with the highest sum of scores.

Kudo (2018), "Subword Regularization"; the normalization table is SentencePiece's precompiled map,
a double array with the entry layout of Darts-clone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.errors import BrokenFile
from core.inputs.tokenizers.bpe import Span
from core.inputs.tokenizers.spm import SPACE
from core.inputs.tokenizers.types import Clock

UNKNOWN_PENALTY: Final = 10.0
"""Subtracted from the lowest score for a character that no piece has."""

Letter = tuple[str, int, int]
"""A normalized character with the characters it comes from, end excluded."""


class CharMap:
    """Longest-prefix replacements of the bytes of a text.

    Raises:
        BrokenFile: if the table points outside itself.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self._path = path
        size = int.from_bytes(data[:4], "little") if len(data) >= 4 else -1
        if size < 0 or size % 4 or 4 + size >= len(data):
            raise BrokenFile("is shorter than it says", path=path, field="precompiled_charsmap")
        self._units: tuple[int, ...] = struct.unpack(f"<{size // 4}I", data[4 : 4 + size])
        self._texts = data[4 + size :]

    def longest(self, data: bytes, start: int) -> tuple[bytes, int]:
        """The replacement at ``start`` and the bytes it replaces, 0 where there is none."""
        node, length, value = self._base(self._unit(0)), 0, 0
        for at in range(start, len(data)):
            byte = data[at]
            if byte == 0:
                break
            node ^= byte
            unit = self._unit(node)
            if unit & 0x800000FF != byte:
                break
            node ^= self._base(unit)
            if unit >> 8 & 1:
                length, value = at - start + 1, self._unit(node) & 0x7FFFFFFF
        if not length:
            return b"", 0
        end = self._texts.find(b"\0", value)
        if value >= len(self._texts) or end < 0:
            raise self._broken()
        return self._texts[value:end], length

    def _base(self, unit: int) -> int:
        return unit >> 10 << ((unit & 0x200) >> 6)

    def _unit(self, index: int) -> int:
        if index >= len(self._units):
            raise self._broken()
        return self._units[index]

    def _broken(self) -> BrokenFile:
        return BrokenFile("points outside itself", path=self._path, field="precompiled_charsmap")


@dataclass(frozen=True, slots=True)
class Ugm:
    """Ids of text by the Viterbi algorithm.

    Attributes:
        longest: characters of the longest piece by first character.
        user: pieces that normalization leaves alone and that cost nothing.
        floor: the lowest score of an ordinary piece.
    """

    ids: Mapping[str, int]
    longest: Mapping[str, int]
    scores: Sequence[float]
    user: frozenset[str]
    unknown: int
    floor: float
    chars: CharMap | None
    prefix: bool
    merge_spaces: bool

    def spans(self, text: str, clock: Clock) -> list[Span]:
        """The ids of a text; unknown characters in a row are one token."""
        letters = self._normalized(text)
        text, count = "".join(letter for letter, _, _ in letters), len(letters)
        best: list[tuple[float, int, int]] = [(0.0, 0, self.unknown), *[(-1e300, 0, self.unknown)] * count]
        for at in range(count):
            if not at & 0x3FF:
                clock.check()
            score = best[at][0]
            single = False
            for stop, token in self._matches(text, at, clock):
                single = single or stop == at + 1
                reached = score + self.scores[token]
                if reached > best[stop][0]:
                    best[stop] = (reached, at, token)
            reached = score + self.floor - UNKNOWN_PENALTY
            if not single and reached > best[at + 1][0]:
                best[at + 1] = (reached, at, self.unknown)
        return self._backward(letters, best)

    def _matches(self, text: str, at: int, clock: Clock) -> Iterator[tuple[int, int]]:
        for length in range(1, min(self.longest.get(text[at], 0), len(text) - at) + 1):
            token = self.ids.get(text[at : at + length])
            if token is not None:
                yield at + length, token
            if not length & 0xFF:
                clock.check()

    def _backward(self, letters: list[Letter], best: list[tuple[float, int, int]]) -> list[Span]:
        found: list[Span] = []
        stop = len(letters)
        while stop > 0:
            _, start, token = best[stop]
            first, last = letters[start][1], letters[stop - 1][2]
            if found and token == self.unknown == found[-1][0]:
                found[-1] = (token, first, found[-1][2])
            else:
                found.append((token, first, max(first, last)))
            stop = start
        return found[::-1]

    def _normalized(self, text: str) -> list[Letter]:
        """The text with replacements made and its spaces as U+2581, one letter a character."""
        found: list[Letter] = []
        inside = prefixed = False
        for letter, start, stop in self._replaced(text):
            if letter == " ":
                inside = False
                if not self.merge_spaces:
                    found.append((SPACE, start, stop))
                continue
            if not inside:
                inside = True
                # SentencePiece puts no space first without a prefix; llama.cpp does, which is not the model's own way.
                if (self.prefix and not prefixed) or (self.merge_spaces and found):
                    found.append((SPACE, start, start))
                    prefixed = True
            found.append((letter, start, stop))
        return found

    def _replaced(self, text: str) -> Iterator[Letter]:
        data = text.encode()
        owner = [at for at, letter in enumerate(text) for _ in letter.encode()]
        longest = max(map(len, self.user), default=0)
        at = place = 0
        while place < len(text):
            lengths = range(min(longest, len(text) - place), 0, -1)
            kept = next((n for n in lengths if text[place : place + n] in self.user), 0)
            new = text[place : place + kept] if kept else text[place]
            used = min(len(new.encode()), len(data) - at)
            if not kept and self.chars is not None:
                raw, length = self.chars.longest(data, at)
                if length:
                    new, used = raw.decode("utf-8", "replace"), length
            stop = owner[at + used - 1] + 1
            for letter in new:
                yield letter, place, stop
            at += used
            place = owner[at] if at < len(data) else len(text)
