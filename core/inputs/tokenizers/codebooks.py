"""Codebooks that need no file: bytes, code points and hashed words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from core.errors import Unavailable, UsageError
from core.inputs.tokenizers.types import VOCABULARY, Info, Token, checked_ids, checked_texts

_WORDS: Final = re.compile(r"\w+|[^\w\s]")
_POINTS: Final = 0x110000


class ByteBook:
    """The UTF-8 bytes of a text, each 0 to 255 plus ``first`` (ByT5 keeps 3 ids free before them)."""

    def __init__(self, first: int = 0) -> None:
        if not 0 <= first <= VOCABULARY:
            raise UsageError(f"the first byte id is {first}, allowed is 0 to {VOCABULARY}")
        self._first = first
        words = f"Bytes of UTF-8 from id {first} on; right only for a model of bytes."
        self.info = Info("bytes", "", first + 256, {}, False, words)

    def encode(self, texts: Sequence[str], *, special: bool = True, parse: bool = True) -> list[tuple[Token, ...]]:
        """One token a byte, as ``Tokenizer.encode``; there are no control tokens."""
        return [
            tuple(
                Token(self._first + byte, f"0x{byte:02X}", at, at + 1)
                for at, letter in enumerate(text)
                for byte in letter.encode()
            )
            for text in checked_texts(texts)
        ]

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of ids, as ``Tokenizer.decode``; ids below the first byte are left out."""
        checked_ids(ids, self.info.size)
        return bytes(token - self._first for token in ids if token >= self._first).decode("utf-8", "replace")


class PointBook:
    """The Unicode code points of a text, each its own id."""

    def __init__(self) -> None:
        self.info = Info("points", "", _POINTS, {}, False, "Unicode code points; right only for a model of characters.")

    def encode(self, texts: Sequence[str], *, special: bool = True, parse: bool = True) -> list[tuple[Token, ...]]:
        """One token a character, as ``Tokenizer.encode``; there are no control tokens."""
        return [tuple(Token(ord(c), c, at, at + 1) for at, c in enumerate(text)) for text in checked_texts(texts)]

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of ids, as ``Tokenizer.decode``; halves of surrogate pairs become U+FFFD."""
        return checked_texts(["".join(map(chr, checked_ids(ids, _POINTS)))])[0]


class HashBook:
    """Words and signs in small letters, each hashed below ``size``; 0 stays free for padding."""

    def __init__(self, size: int = 30_000, seed: int = 0) -> None:
        if not 2 <= size <= VOCABULARY or not 0 <= seed < 1 << 63:
            raise UsageError(f"a hashed vocabulary of {size} with seed {seed}, allowed are 2 to {VOCABULARY}")
        self._key = seed.to_bytes(8, "little")
        words = f"Words hashed to 1 to {size - 1}; ids fit, but mean nothing to the model."
        self.info = Info("words", "", size, {"pad": 0}, False, words)

    def encode(self, texts: Sequence[str], *, special: bool = True, parse: bool = True) -> list[tuple[Token, ...]]:
        """One token a word or sign, as ``Tokenizer.encode``; there are no control tokens in it."""
        return [
            tuple(Token(self._id(match[0]), match[0], *match.span()) for match in _WORDS.finditer(text))
            for text in checked_texts(texts)
        ]

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Never: a hash cannot be turned back.

        Raises:
            Unavailable: always.
        """
        raise Unavailable("hashed words cannot be turned back into text")

    def _id(self, word: str) -> int:
        digest = hashlib.blake2b(word.lower().encode(), digest_size=8, key=self._key).digest()
        return 1 + int.from_bytes(digest, "little") % (self.info.size - 1)
