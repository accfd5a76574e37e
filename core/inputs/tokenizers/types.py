"""What every tokenizer offers, and the bounds that all of them keep."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from core.errors import LimitExceeded, UsageError
from core.ir import Finding
from core.limits import MIB, check

CHARACTERS: Final = 1 << 18
"""Characters of all texts tokenized at once."""

VOCABULARY: Final = 4_000_000
FILE_BYTES: Final = 128 * MIB
"""Bytes of one tokenizer file."""

SECONDS: Final = 10.0
"""Time that one call may take, whatever the vocabulary and the text are."""

SPECIALS: Final = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a text.

    Attributes:
        piece: the entry of the vocabulary as its file writes it.
        start, stop: the characters it stands for, end excluded; equal for one that was added.
        special: whether it is a control token, not text.
        segment: token type id that the file's template gives it.
    """

    id: int
    piece: str
    start: int
    stop: int
    special: bool = False
    segment: int = 0


@dataclass(frozen=True, slots=True)
class Info:
    """What is known of a tokenizer.

    Attributes:
        kind: its name in ``table.KINDS``.
        source: the file it was read from, empty for a codebook.
        size: every id is below it.
        specials: ids by role, those of ``SPECIALS`` that it has.
        exact: whether the ids are those that the model was made for.
        fidelity: the same in one sentence.
        length: tokens beyond which the file itself truncates, 0 where it does not.
    """

    kind: str
    source: str
    size: int
    specials: Mapping[str, int]
    exact: bool
    fidelity: str
    length: int = 0
    findings: tuple[Finding, ...] = field(default=())


class Tokenizer(Protocol):
    """A vocabulary with the way from text to ids and back."""

    @property
    def info(self) -> Info:
        """What is known of it; reads nothing."""
        ...

    def encode(self, texts: Sequence[str], *, special: bool = True, parse: bool = True) -> list[tuple[Token, ...]]:
        """The tokens of each text.

        Args:
            special: add what the file's template adds (BOS, EOS, CLS, SEP).
            parse: take control tokens written in the text for what they are.

        Raises:
            LimitExceeded: if the texts are longer than ``CHARACTERS`` or it takes longer than ``SECONDS``.
        """
        ...

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of ids; control tokens only where ``special`` says so.

        Raises:
            UsageError: if an id is not in the vocabulary.
            Unavailable: if the way is not reversible.
        """
        ...


class Clock:
    """Ends work that takes longer than it may."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that remain, at least a hundredth."""
        return max(0.01, self._end - time.monotonic())

    def check(self) -> None:
        """Raise LimitExceeded if the time is over."""
        if time.monotonic() > self._end:
            raise LimitExceeded(f"tokenizing took longer than {self.seconds:g} s", hint="Use a shorter text.")


def checked_texts(texts: Sequence[str]) -> list[str]:
    """The texts with lone surrogates, which no vocabulary has, as U+FFFD; lengths stay.

    Raises:
        LimitExceeded: beyond ``CHARACTERS``.
    """
    check("the number of characters to tokenize", sum(map(len, texts)), CHARACTERS)
    return [
        text if text.isascii() else "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
        for text in texts
    ]


def checked_ids(ids: Sequence[int], size: int) -> Sequence[int]:
    """The ids, all of them in the vocabulary.

    Raises:
        UsageError: with the id and the size where one is not.
    """
    for token in ids:
        if not 0 <= token < size:
            raise UsageError(f"token id {token} is not in the vocabulary of {size}")
    return ids
