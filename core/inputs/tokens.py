"""Text as the arrays that a language model takes: ids, attention mask, positions and segments, all of one text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from core.errors import InputMismatch, UsageError
from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import Generated
from core.inputs.tokenizers.load import codebook, load
from core.inputs.tokenizers.types import Info, Token, Tokenizer
from core.ir import Model

Part = Literal["ids", "mask", "positions", "segments"]
Side = Literal["right", "left"]
Presence = Literal["auto", "yes", "no"]

_TABLE: Final = 200
"""Rows of the token table that go into the facts of a generated array."""


@dataclass(frozen=True, slots=True)
class Options:
    """How texts become rows of one length.

    Attributes:
        length: tokens of a row; 0 for those of the longest text.
        pad: the side that is filled up.
        pad_id: what it is filled up with; -1 for the tokenizer's own, else EOS, else 0.
        truncate: the side that a longer text loses, its text tokens first; ``refuse`` to refuse it.
        special: add what the tokenizer's template adds.
        parse: take control tokens written in the text for what they are.
        bos, eos: whether each row begins and ends with them; ``auto`` as the template has it.
    """

    length: int = 0
    pad: Side = "right"
    pad_id: int = -1
    truncate: Literal["right", "left", "refuse"] = "right"
    special: bool = True
    parse: bool = True
    bos: Presence = "auto"
    eos: Presence = "auto"


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of tokens and the arrays made of them, each [texts, length] of int64.

    Attributes:
        rows: the tokens of each text without padding.
        cut: tokens that each text lost.
        mask: 1 for tokens, 0 for padding.
        positions: 0, 1, 2, … over the tokens of a row; padding repeats the nearest.
    """

    info: Info
    rows: tuple[tuple[Token, ...], ...]
    cut: tuple[int, ...]
    ids: NDArray[np.int64]
    mask: NDArray[np.int64]
    positions: NDArray[np.int64]
    segments: NDArray[np.int64]
    pad_id: int

    def table(self, row: int = 0) -> Iterator[tuple[int, int, str, int, int, bool]]:
        """Place, id, piece, first and last character (end excluded) and control flag of each token of a text."""
        return ((at, t.id, t.piece, t.start, t.stop, t.special) for at, t in enumerate(self.rows[row]))

    def generated(self, part: Part = "ids", dtype: str = "int64") -> Generated:
        """One of the arrays in an element type, with tokenizer, fidelity and token table recorded.

        Raises:
            UsageError: if an id does not fit the type.
        """
        array = {"ids": self.ids, "mask": self.mask, "positions": self.positions, "segments": self.segments}[part]
        facts: dict[str, object] = {
            "tokenizer": self.info.kind, "file": self.info.source.replace("\\", "/").rsplit("/", 1)[-1],
            "vocabulary": self.info.size, "exact": self.info.exact, "part": part, "pad_id": self.pad_id,
            "tokens": [len(row) for row in self.rows], "cut": list(self.cut),
            "table": [list(entry) for entry in self.table()][:_TABLE] if self.rows else [],
        }  # fmt: skip
        words = {"ids": "token ids", "mask": "attention mask", "positions": "positions", "segments": "segments"}[part]
        return Generated(as_dtype(array, dtype), f"text by {self.info.kind}, {words}", self.info.fidelity, facts)


def tokenize(tokenizer: Tokenizer, texts: Sequence[str], options: Options = Options(), embedding: int = 0) -> Batch:
    """Texts as rows of one length; an empty text is a row of padding and what the template adds.

    Args:
        embedding: rows of the model's embedding table, 0 where it is not known.

    Raises:
        UsageError: if there is no text, a text is too long for ``refuse``, or BOS or EOS is asked for and missing.
        InputMismatch: if an id is beyond the embedding table.
        LimitExceeded: if the text or the array is too large, or it takes too long.
    """
    if not texts:
        raise UsageError("no text was given", hint="Give one text; it may be empty.")
    found = [
        _framed(tokenizer.info, row, len(text), options)
        for row, text in zip(tokenizer.encode(texts, special=options.special, parse=options.parse), texts, strict=True)
    ]
    length = options.length or max(map(len, found))
    bounded((len(found), length), "the tokens")
    rows = [_shortened(row, length, options.truncate) for row in found]
    pad_id = _pad(tokenizer.info, options)
    _fits(tokenizer.info, rows, pad_id if any(len(row) < length for row in rows) else 0, embedding)
    shape = (len(rows), length)
    ids, mask = np.full(shape, pad_id, np.int64), np.zeros(shape, np.int64)
    segments = np.zeros(shape, np.int64)
    for at, row in enumerate(rows):
        place = slice(length - len(row), length) if options.pad == "left" else slice(0, len(row))
        ids[at, place] = [token.id for token in row]
        segments[at, place] = [token.segment for token in row]
        mask[at, place] = 1
    positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    cut = tuple(len(before) - len(after) for before, after in zip(found, rows, strict=True))
    return Batch(tokenizer.info, tuple(rows), cut, ids, mask, positions, segments, pad_id)


def text(
    text: str, path: str, codes: str, part: Part, length: int, pad: Side, pad_id: int,
    truncate: Literal["right", "left", "refuse"], special: bool, parse: bool, bos: Presence, eos: Presence,
    vocabulary: int, embedding: int, seed: int, dtype: str,
) -> Generated:  # fmt: skip
    """[1, length]: one array of a text, by the tokenizer at ``path`` or, without one, by a codebook.

    Raises:
        NotFound: if there is no tokenizer at the path or no such codebook.
        UsageError, InputMismatch, LimitExceeded: as ``tokenize``.
    """
    tokenizer = load(path) if path else codebook(codes, vocabulary, seed)
    options = Options(length, pad, pad_id, truncate, special, parse, bos, eos)
    return tokenize(tokenizer, [text], options, embedding).generated(part, dtype)


def embedding_rows(model: Model) -> int:
    """Rows of the model's token embedding table, 0 where the file does not tell which tensor it is."""
    sizes = {
        tensor.shape[0]
        for tensor in model.tensors
        if len(tensor.shape) == 2 and any(name in tensor.name.lower() for name in _EMBEDDINGS)
    }
    return sizes.pop() if len(sizes) == 1 else 0


_EMBEDDINGS: Final = (
    "word_embeddings",
    "embed_tokens",
    "token_embd",
    "wte.weight",
    "tok_embeddings",
    "embed_in.weight",
)


def _framed(info: Info, row: tuple[Token, ...], end: int, options: Options) -> tuple[Token, ...]:
    """The row with BOS and EOS as asked for."""
    for role, wanted in (("bos", options.bos), ("eos", options.eos)):
        if wanted == "auto":
            continue
        token = info.specials.get(role)
        if token is None:
            if wanted == "yes":
                raise UsageError(f"the tokenizer has no {role.upper()} token", hint="Leave it to the template.")
            continue
        first = role == "bos"
        there = bool(row) and row[0 if first else -1].id == token
        if wanted == "no" and there and row[0 if first else -1].special:
            row = row[1:] if first else row[:-1]
        elif wanted == "yes" and not there:
            at = 0 if first else end
            added = (Token(token, role.upper(), at, at, True),)
            row = added + row if first else row + added
    return row


def _shortened(row: tuple[Token, ...], length: int, side: str) -> tuple[Token, ...]:
    """At most ``length`` tokens; those that were added around the text stay as long as there is room."""
    if len(row) <= length:
        return row
    if side == "refuse":
        raise UsageError(f"the text has {len(row)} tokens, the row has room for {length}", hint="Shorten the text.")
    before = next((at for at, token in enumerate(row) if not _added(token)), len(row))
    after = next((at for at, token in enumerate(reversed(row)) if not _added(token)), 0) if before < len(row) else 0
    room = length - before - after
    if room < 0:
        return row[:length]
    inside = row[before : len(row) - after]
    kept = inside[len(inside) - room :] if side == "left" else inside[:room]
    return row[:before] + kept + row[len(row) - after :]


def _added(token: Token) -> bool:
    return token.special and token.start == token.stop


def _pad(info: Info, options: Options) -> int:
    if options.pad_id >= 0:
        return options.pad_id
    return info.specials.get("pad", info.specials.get("eos", 0))


def _fits(info: Info, rows: Sequence[tuple[Token, ...]], pad_id: int, embedding: int) -> None:
    """Every id is below the embedding table, or below the vocabulary where the table is not known."""
    largest = max((token.id for row in rows for token in row), default=0)
    largest = max(largest, pad_id)
    if embedding and largest >= embedding:
        text = f"token id {largest} is beyond the model's embedding table, which has {embedding} rows"
        raise InputMismatch(text, hint="Use the tokenizer that belongs to the model.")
    if not embedding and largest >= info.size:
        raise UsageError(f"the padding id {largest} is beyond the vocabulary, which has {info.size} pieces")
