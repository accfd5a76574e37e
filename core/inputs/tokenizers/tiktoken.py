"""Rank files as OpenAI's tiktoken reads them: base64 bytes and a rank a line.

Neighbours join where the whole has a rank, lowest first. Patterns and control tokens are not in
the file; they follow from the number of ranks, which differs from family to family.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.errors import BrokenFile
from core.inputs.tokenizers.bpe import Bpe
from core.inputs.tokenizers.byte_level import to_bytes, to_letters
from core.inputs.tokenizers.pretokens import GPT2, GPT4O, LLAMA3, QWEN2, Cut
from core.inputs.tokenizers.types import FILE_BYTES, VOCABULARY, Clock, Info, Token, checked_ids, checked_texts
from core.limits import check
from core.source import Source


@dataclass(frozen=True, slots=True)
class _Family:
    """What a number of ranks means."""

    name: str
    pattern: str
    controls: dict[str, int]


def _run(first: int, *pieces: str) -> dict[str, int]:
    return {piece: first + place for place, piece in enumerate(pieces)}


_FIM: Final = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_FAMILIES: Final[dict[int, _Family]] = {
    50256: _Family("GPT-2 (r50k_base)", GPT2, _run(50256, "<|endoftext|>")),
    50280: _Family("p50k_base", GPT2, _run(50256, "<|endoftext|>")),
    100256: _Family("cl100k_base", LLAMA3, _run(100257, "<|endoftext|>", *_FIM) | {"<|endofprompt|>": 100276}),
    199998: _Family("o200k_base", GPT4O, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    128000: _Family("Llama 3", LLAMA3, _run(128000, "<|begin_of_text|>", "<|end_of_text|>")),
    151643: _Family("Qwen", QWEN2, _run(151643, "<|endoftext|>", "<|im_start|>", "<|im_end|>")),
}
_ROLES: Final = {"<|endoftext|>": "eos", "<|end_of_text|>": "eos", "<|begin_of_text|>": "bos"}


def open_tiktoken(path: str) -> Tiktoken:
    """A rank file; reads all of it.

    Raises:
        BrokenFile: with the line that is no rank.
        LimitExceeded: if it is larger than ``FILE_BYTES``.
    """
    source = Source(path)
    check("the size of the rank file", source.size, FILE_BYTES, path=path)
    ranks: dict[str, int] = {}
    for number, line in enumerate(b"".join(source.blocks(0, source.size)).splitlines(), 1):
        if not line:
            continue
        coded, _, rank = line.partition(b" ")
        try:
            ranks[to_letters(base64.b64decode(coded, validate=True))] = check("a rank", int(rank), VOCABULARY)
        except (ValueError, binascii.Error):
            raise BrokenFile(f"has a line {number} that is no base64 with a rank", path=path) from None
    source.close()
    return Tiktoken(ranks, path)


class Tiktoken:
    """Ids by ranks."""

    def __init__(self, ranks: dict[str, int], path: str) -> None:
        family = _FAMILIES.get(len(ranks))
        self._controls = family.controls if family else {}
        self._pieces = {rank: piece for piece, rank in ranks.items()}
        self._names = {token: piece for piece, token in self._controls.items()}

        def priority(left: str, right: str) -> float | None:
            return ranks.get(left + right)

        how = Cut((family.pattern if family else LLAMA3,), whole=True)
        self._bpe = Bpe(ranks, priority, how, lambda letter: [ranks[letter]] if letter in ranks else [])
        size = max((*self._pieces, *self._names), default=-1) + 1
        specials = {_ROLES[piece]: token for piece, token in self._controls.items() if piece in _ROLES}
        if family:
            words = f"The ranks of the file; by their number it is {family.name}, whose pattern is used."
        else:
            words = f"The ranks of the file; their number, {len(ranks)}, is of no known family: the pattern is a guess."
        self._info = Info("tiktoken", path, size, specials, family is not None, words)

    @property
    def info(self) -> Info:
        """What is known of it."""
        return self._info

    def encode(self, texts: Sequence[str], *, special: bool = True, parse: bool = True) -> list[tuple[Token, ...]]:
        """The tokens of each text, as ``Tokenizer.encode``; no template is known, so nothing is added."""
        clock = Clock()
        return [tuple(self._encoded(text, parse, clock)) for text in checked_texts(texts)]

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of ids, as ``Tokenizer.decode``; ids that no rank has are left out."""
        data = b""
        for token in checked_ids(ids, self._info.size):
            if token in self._names:
                data += self._names[token].encode() if special else b""
            else:
                data += to_bytes(self._pieces.get(token, ""))
        return data.decode("utf-8", "replace")

    def _encoded(self, text: str, parse: bool, clock: Clock) -> list[Token]:
        found: list[Token] = []
        at = 0
        while at <= len(text):
            begin, piece = self._next_control(text, at) if parse else (len(text), "")
            for token, start, stop in self._bpe.spans(text[at:begin], clock):
                found.append(Token(token, self._pieces[token], at + start, at + stop))
            if not piece:
                break
            at = begin + len(piece)
            found.append(Token(self._controls[piece], piece, begin, at, True))
        return found

    def _next_control(self, text: str, at: int) -> tuple[int, str]:
        places = [(place, piece) for piece in self._controls if (place := text.find(piece, at)) >= 0]
        return min(places, default=(len(text), ""))
