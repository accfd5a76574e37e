"""Tokenizer libraries in native code, run in a process of their own for each request.

A tokenizer file can hold a regular expression without end, a template that doubles a text fifty
times or bytes that end the library: the process has a time limit, a memory limit and no part of ours.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict, cast

from core.errors import BrokenFile, LimitExceeded, RunError
from core.inputs.tokenizers.types import CHARACTERS, SECONDS, Info, Token, checked_ids, checked_texts

_CHILD: Final = str(Path(__file__).with_name("child.py"))
_MOST: Final = 4 * CHARACTERS
_PASSED_ON: Final = ("PATH", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT", "USERPROFILE")

Row = tuple[int, str, int, int, int, int]


class Answer(TypedDict):
    """What the process hands back: ids with pieces, characters, control flag and segment."""

    size: int
    roles: dict[str, int]
    rows: list[list[Row]]
    text: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """What stays the same from one request to the next.

    Attributes:
        kind: ``json``, ``merges``, ``wordpiece`` or ``sentencepiece``.
        controls: pieces to take as control tokens where the vocabulary has them.
        roles: pieces whose ids are asked for.
    """

    kind: str
    path: str
    merges: str = ""
    lowercase: bool = False
    controls: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


def ask(
    request: Request,
    texts: Sequence[str] = (),
    ids: Sequence[int] | None = None,
    *,
    special: bool = True,
    parse: bool = True,
    control: bool = False,
) -> Answer:
    """Start the process, ask it, and wait for its answer; it reads the file.

    Raises:
        LimitExceeded: if it takes longer than ``SECONDS``.
        BrokenFile: if the library cannot use the file, with the library's words.
    """
    asked = {
        "kind": request.kind, "path": request.path, "merges": request.merges, "lowercase": request.lowercase,
        "controls": request.controls, "roles": request.roles, "texts": texts, "special": special, "parse": parse,
        "ids": ids, "control": control, "most": _MOST, "seconds": int(SECONDS) + 1,
    }  # fmt: skip
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"TOKENIZERS_PARALLELISM": "false", "PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "2"}
    try:
        done = subprocess.run(
            [sys.executable, "-I", _CHILD],
            input=json.dumps(asked).encode(), capture_output=True, timeout=SECONDS, env=environment, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise LimitExceeded(
            f"was stopped after {SECONDS:g} s", path=request.path, hint="Use a shorter text or another tokenizer."
        ) from None
    except OSError as error:
        raise RunError(f"the tokenizer process cannot be started: {error.strerror}", path=request.path) from None
    if done.returncode:
        raise _failed(request, done.returncode, done.stderr)
    return cast("Answer", json.loads(done.stdout))


def _failed(request: Request, code: int, stderr: bytes) -> BrokenFile:
    said = stderr.decode("utf-8", "replace").splitlines()
    lines = [line for line in said if line.strip() and not line.startswith("note: ")] or [f"it ended with code {code}"]
    words = re.sub(r"^[\w.]*(Exception|Error): ", "", lines[-1])[:300]
    return BrokenFile(f"cannot be used as a tokenizer: {words}", path=request.path)


@dataclass(frozen=True, slots=True)
class Native:
    """A tokenizer of a native library.

    Attributes:
        before, after: tokens put around a text where the library itself adds none.
    """

    request: Request
    described: Info
    before: tuple[Token, ...] = field(default=())
    after: tuple[Token, ...] = field(default=())

    @property
    def info(self) -> Info:
        """What is known of it."""
        return self.described

    def encode(self, texts: Sequence[str], *, special: bool = True, parse: bool = True) -> list[tuple[Token, ...]]:
        """The tokens of each text, as ``Tokenizer.encode``; starts a process."""
        texts = checked_texts(texts)
        answer = ask(self.request, texts, special=special, parse=parse)
        controls = set(self.described.specials.values()) if self.request.kind == "sentencepiece" else set[int]()
        found: list[tuple[Token, ...]] = []
        for text, row in zip(texts, answer["rows"], strict=True):
            inside = tuple(_tokens(row, len(text), controls))
            found.append((*self.before, *inside, *_moved(self.after, len(text))) if special else inside)
        return found

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of ids, as ``Tokenizer.decode``; starts a process."""
        return ask(self.request, ids=list(checked_ids(ids, self.described.size)), control=special)["text"] or ""


def _tokens(row: Sequence[Row], end: int, controls: set[int]) -> Iterator[Token]:
    """Tokens with characters inside the text; one that was added stands where the one before it ends."""
    before = 0
    for token, piece, start, stop, special, segment in row:
        first, last = min(start, end), min(max(start, stop), end)
        if special and first == last:
            first = last = before
        before = last
        yield Token(token, piece, first, last, bool(special) or token in controls, segment)


def _moved(tokens: tuple[Token, ...], end: int) -> tuple[Token, ...]:
    return tuple(Token(t.id, t.piece, end, end, t.special) for t in tokens)


def by_role(ids: Mapping[str, int], names: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Ids by role; of several pieces for one role the first that the vocabulary has."""
    found: dict[str, int] = {}
    for role, piece in names:
        if piece in ids:
            found.setdefault(role, ids[piece])
    return found
