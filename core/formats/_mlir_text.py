"""MLIR text cut into tokens; long ``dense<...>`` payloads stay in the file as byte ranges.

Lexical rules: "Common syntax" of the MLIR language reference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from core.errors import BrokenFile
from core.limits import KIB, MIB, NESTING, check
from core.source import Source

TEXT_BYTES: Final = 128 * MIB
"""Text that is parsed, long payloads not counted."""

LONG: Final = 2 * KIB
"""A payload longer than this is cut out and stays a byte range."""

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:[ \t\r\n]+|//[^\n]*)+)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<arrow>->)
    |(?P<name>[%@^#!](?:"(?:[^"\\\n]|\\.)*"|[\w$.\-]+))
    |(?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))
    |(?P<word>[A-Za-z_][\w$.]*)
    |(?P<mark>::|[\[\](){}<>,:=*?+\-/|&.;])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: string, arrow, name, number, word or mark.
        first: whether it is the first one on its line.
        start: character index in the compacted text.
    """

    kind: str
    text: str
    first: bool
    start: int


@dataclass(frozen=True, slots=True)
class Payload:
    """A cut-out ``dense`` payload: bytes of the file between its quotes or brackets."""

    start: int
    stop: int
    hexadecimal: bool


@dataclass(frozen=True, slots=True)
class Compacted:
    """The text with payload i replaced by ``"@payload:i"``."""

    text: str
    payloads: tuple[Payload, ...]


_DENSE: Final = b"dense<"


def compact(source: Source) -> Compacted:
    """Read the file in pieces and cut long payloads out; memory is bounded by ``TEXT_BYTES``.

    Raises:
        LimitExceeded: if more than ``TEXT_BYTES`` of text are left.
        BrokenFile: if it is not UTF-8.
    """
    parts: list[bytes] = []
    payloads: list[Payload] = []
    kept = at = 0
    while at < source.size:
        block = source.read(at, min(source.size, at + MIB + len(_DENSE)))
        place = block.find(_DENSE)
        if place < 0 or place > MIB:
            step = min(len(block), MIB) if at + len(block) < source.size else len(block)
            parts.append(block[:step])
            kept += step
            at += step
        else:
            begin = at + place + len(_DENSE)
            parts.append(block[: place + len(_DENSE)])
            kept += place + len(_DENSE)
            at = _payload(source, begin, parts, payloads)
        check("the length of the text", kept, TEXT_BYTES, path=source.path)
    try:
        return Compacted(b"".join(parts).decode("utf-8"), tuple(payloads))
    except UnicodeDecodeError as error:
        raise BrokenFile("is not UTF-8", path=source.path, byte=error.start, field="text") from None


def _payload(source: Source, begin: int, parts: list[bytes], payloads: list[Payload]) -> int:
    """Handle what follows ``dense<`` at byte ``begin``; the byte from which to go on."""
    head = source.read(begin, min(source.size, begin + LONG))
    quoted = head[:1] == b'"'
    mark = b'"' if quoted else b">"
    if not quoted and head[:1] != b"[":
        return begin
    end = head.find(mark, 1)
    if end >= 0:
        return begin
    stop = _find(source, mark, begin + 1)
    if stop < 0:
        return begin
    hexadecimal = quoted and head[1:3] == b"0x"
    inner = (begin + 3 if hexadecimal else begin + 1 if quoted else begin, stop)
    payloads.append(Payload(inner[0], inner[1], hexadecimal))
    word = b"@payload:%d" % (len(payloads) - 1)
    parts.append(b'"' + word + b'"')
    return stop + 1 if quoted else stop


def _find(source: Source, mark: bytes, at: int) -> int:
    while at < source.size:
        block = source.read(at, min(source.size, at + MIB))
        place = block.find(mark)
        if place >= 0:
            return at + place
        at += len(block)
    return -1


def tokens(text: str, path: str) -> list[Token]:
    """All tokens of the text.

    Raises:
        BrokenFile: at a character that begins no token. LimitExceeded: beyond 200 nested braces.
    """
    found: list[Token] = []
    at, fresh, depth = 0, True, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BrokenFile(f"is no MLIR text: {text[at : at + 20]!r}", path=path, byte=len(text[:at].encode()))
        if match.lastgroup == "space":
            fresh = fresh or "\n" in match[0]
        else:
            found.append(Token(str(match.lastgroup), match[0], fresh, at))
            fresh = False
            if match.lastgroup == "mark" and match[0] in "{}":
                depth = max(0, depth + (1 if match[0] == "{" else -1))
                check("the nesting of regions", depth, NESTING, path=path, byte=at)
        at = match.end()
    return found
