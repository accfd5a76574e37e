"""SentencePiece's BPE as GGUF files carry it: neighbours join where the whole is a piece, best score first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.inputs.tokenizers.bpe import Span
from core.inputs.tokenizers.merging import merged
from core.inputs.tokenizers.types import Clock

SPACE = "\u2581"


@dataclass(frozen=True, slots=True)
class Spm:
    """Ids of text by pieces and scores.

    Attributes:
        bytes: id of the token of each byte, -1 where there is none.
    """

    ids: Mapping[str, int]
    scores: Sequence[float]
    bytes: Sequence[int]
    unknown: int

    def spans(self, text: str, prefix: bool, clock: Clock) -> list[Span]:
        """The ids of a text, with a space before it where ``prefix`` says so."""
        shift = int(prefix)
        letters = SPACE * shift + text.replace(" ", SPACE)
        found: list[Span] = []
        for start, stop in merged(letters, self._priority, clock):
            first, last = max(0, start - shift), max(0, stop - shift)
            token = self.ids.get(letters[start:stop])
            if token is not None:
                found.append((token, first, last))
            else:
                found += [(self._byte(byte), first, last) for byte in letters[start:stop].encode()]
        return found

    def _priority(self, left: str, right: str) -> float | None:
        token = self.ids.get(left + right)
        return None if token is None else -self.scores[token]

    def _byte(self, byte: int) -> int:
        return self.bytes[byte] if self.bytes[byte] >= 0 else self.unknown
