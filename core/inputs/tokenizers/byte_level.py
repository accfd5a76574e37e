"""Bytes written as visible characters, as GPT-2's vocabulary writes them."""

from __future__ import annotations

from typing import Final


def _letters() -> list[str]:
    """A character for every byte: printable ones of Latin-1 stand for themselves, the rest from U+0100 on."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


LETTERS: Final = _letters()
BYTES: Final[dict[str, int]] = {letter: byte for byte, letter in enumerate(LETTERS)}


def to_letters(data: bytes) -> str:
    """One character a byte."""
    return "".join([LETTERS[byte] for byte in data])


def to_bytes(piece: str) -> bytes:
    """The bytes of a piece; characters that stand for none are taken as UTF-8."""
    return b"".join(
        bytes((BYTES[letter],)) if letter in BYTES else letter.encode("utf-8", "replace") for letter in piece
    )
