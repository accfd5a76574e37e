"""The tokenizer of a GGUF file, from its own vocabulary, in Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from core.errors import BrokenFile, Unavailable
from core.inputs.tokenizers import vocabulary as v
from core.inputs.tokenizers.bpe import Bpe, Span, ranked
from core.inputs.tokenizers.byte_level import to_bytes
from core.inputs.tokenizers.pretokens import CUTS, Cut
from core.inputs.tokenizers.spm import SPACE, Spm
from core.inputs.tokenizers.types import Clock, Info, Token, checked_ids, checked_texts
from core.inputs.tokenizers.ugm import CharMap, Ugm
from core.inputs.tokenizers.vocabulary import Vocabulary, read_vocabulary
from core.inputs.tokenizers.wpm import Wpm
from core.source import Source

_BYTE: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_KINDS: Final = {"llama": "SPM", "bert": "WPM", "gpt2": "BPE", "t5": "UGM", "gemma4": "BPE"}

Segment = Callable[[str, bool, Clock], list[Span]]
"""Text without control tokens to ids; the switch says whether it follows a control token or the start."""


def open_gguf(path: str) -> Gguf:
    """The tokenizer that a GGUF file carries; reads its vocabulary.

    Raises:
        Unavailable: if there is none, or its kind or pre-tokenizer is not known.
        BrokenFile: if its arrays contradict each other.
    """
    source = Source(path)
    try:
        return Gguf(read_vocabulary(source), source.path)
    finally:
        source.close()


@dataclass(frozen=True, slots=True)
class _Control:
    """A piece that is looked for in the text before everything else.

    Attributes:
        user: defined by the user, so it is text, and found even where control tokens are not.
        left, right: whether it takes the white space on that side.
    """

    piece: str
    token: int
    user: bool
    left: bool
    right: bool


class Gguf:
    """Ids as llama.cpp makes them from the same file, which are those of the model's own tokenizer."""

    def __init__(self, vocabulary: Vocabulary, path: str) -> None:
        self._vocabulary, self._path = vocabulary, path
        self._ids = vocabulary.ids
        self._cut = _cut(vocabulary, path)
        self._prefix = vocabulary.flag("add_space_prefix", vocabulary.model == "llama")
        self._segment = self._segmenter()
        self._controls = _controls(vocabulary)
        self._info = self._described()

    @property
    def info(self) -> Info:
        """What is known of it."""
        return self._info

    def encode(self, texts: Sequence[str], *, special: bool = True, parse: bool = True) -> list[tuple[Token, ...]]:
        """The tokens of each text, as ``Tokenizer.encode``."""
        clock = Clock()
        return [self._encoded(text, special, parse, clock) for text in checked_texts(texts)]

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of ids, as ``Tokenizer.decode``."""
        data = b""
        first = True
        for token in checked_ids(ids, self._info.size):
            piece, kind = self._vocabulary.pieces[token], self._vocabulary.kinds[token]
            if kind in (v.CONTROL, v.UNKNOWN) and not special:
                first = kind != v.UNKNOWN and first
                continue
            data += self._text(piece, kind, first)
            first = False
        return data.decode("utf-8", "replace")

    def _text(self, piece: str, kind: int, first: bool) -> bytes:
        if kind in (v.CONTROL, v.UNKNOWN, v.USER):
            return piece.encode("utf-8", "replace")
        byte = _BYTE.fullmatch(piece) if kind == v.BYTE or not self._cut.bytes else None
        if byte is not None:
            return bytes((int(byte[1], 16),))
        if self._vocabulary.model == "gpt2" and self._cut.bytes:
            return to_bytes(piece)
        text = piece.replace(SPACE, " ")
        stripped = first and text.startswith(" ") and (self._prefix or self._vocabulary.model == "bert")
        return (text[1:] if stripped else text).encode("utf-8", "replace")

    def _encoded(self, text: str, special: bool, parse: bool, clock: Clock) -> tuple[Token, ...]:
        found: list[Token] = []
        before, after = self._frame() if special else (-1, -1)
        if before >= 0:
            found.append(self._token(before, 0, 0, True))
        start = True
        for part, begin in self._parts(text, parse):
            if isinstance(part, _Control):
                found.append(self._token(part.token, begin, begin + len(part.piece), not part.user))
                start = True
                continue
            for token, first, last in self._segment(part, start, clock):
                found.append(self._token(token, begin + first, begin + last))
            start = False
        if after >= 0:
            found.append(self._token(after, len(text), len(text), True))
        return tuple(found)

    def _token(self, token: int, start: int, stop: int, special: bool = False) -> Token:
        return Token(token, self._vocabulary.pieces[token], start, stop, special)

    def _frame(self) -> tuple[int, int]:
        """The tokens before and after a text, -1 for none."""
        read, known = self._vocabulary, self._vocabulary.specials
        if read.model == "bert":
            return known.get("cls", known.get("bos", -1)), known.get("sep", -1)
        bos = read.flag("add_bos_token", read.model == "llama" or self._cut.bos)
        eos = read.flag("add_eos_token", read.model == "t5")
        return known.get("bos", -1) if bos else -1, known.get("eos", -1) if eos else -1

    def _parts(self, text: str, parse: bool) -> list[tuple[str | _Control, int]]:
        """Control tokens and the text between them with their places; longer control tokens are found first."""
        parts: list[tuple[str | _Control, int]] = [(text, 0)] if text else []
        for control in self._controls:
            if control.piece in text and (parse or control.user):
                parts = [piece for part, at in parts for piece in _split(part, at, control)]
        return parts

    def _segmenter(self) -> Segment:
        read, ids = self._vocabulary, self._ids
        match read.model:
            case "llama":
                spm = Spm(ids, read.scores, self._bytes(), read.specials.get("unk", 0))
                return lambda text, start, clock: spm.spans(text, start and self._prefix, clock)
            case "bert":
                lower = read.flag("normalizer.lowercase", True)
                longest = max(map(len, read.pieces), default=1)
                accents = read.flag("normalizer.strip_accents", lower)
                wpm = Wpm(ids, longest, read.specials.get("unk", 0), lower, accents)
                return lambda text, _, clock: wpm.spans(text, clock)
            case "t5":
                ugm = _ugm(read, self._prefix, self._path)
                return lambda text, _, clock: ugm.spans(text, clock)
            case _:
                bpe = Bpe(ids, ranked(_merges(read, self._path)), self._cut, self._fallback())
                escape = not self._cut.bytes
                return lambda text, _, clock: bpe.spans(text.replace(" ", SPACE) if escape else text, clock)

    def _fallback(self) -> Callable[[str], list[int]]:
        known = self._bytes()
        if self._cut.bytes:
            return lambda letter: [self._ids[letter]] if letter in self._ids else []
        return lambda letter: [known[byte] for byte in letter.encode() if known[byte] >= 0]

    def _bytes(self) -> list[int]:
        """The token of each byte, -1 where there is none."""
        return [self._ids.get(f"<0x{byte:02X}>", -1) for byte in range(256)]

    def _described(self) -> Info:
        read = self._vocabulary
        kind = _KINDS[read.model] + (f", pre-tokenizer {read.pre or 'default'}" if read.model == "gpt2" else "")
        exact = read.model != "gpt2" or bool(read.pre)
        words = f"The file's own vocabulary ({kind}), read as llama.cpp reads it."
        if not exact:
            words = f"The file's own vocabulary ({kind}); it does not name its pre-tokenizer, so ids may differ."
        return Info("gguf", self._path, len(read.pieces), read.specials, exact, words, findings=read.findings)


def _cut(read: Vocabulary, path: str) -> Cut:
    if read.model == "gemma4":
        return CUTS["gemma4"]
    if read.model != "gpt2":
        return CUTS["default"]
    found = CUTS.get(read.pre or "default")
    if found is None:
        text = f"has the pre-tokenizer {read.pre[:60]!r}, which is not known"
        raise Unavailable(text, path=path, hint="Use the tokenizer.json of the model.")
    return found


def _merges(read: Vocabulary, path: str) -> dict[tuple[str, str], int]:
    if not read.merges:
        raise BrokenFile("is missing", path=path, field="tokenizer.ggml.merges")
    found: dict[tuple[str, str], int] = {}
    for rank, line in enumerate(read.merges):
        at = line.find(" ", 1)
        if at > 0:
            found.setdefault((line[:at], line[at + 1 :]), rank)
    return found


def _ugm(read: Vocabulary, prefix: bool, path: str) -> Ugm:
    usable = {p: t for t, p in enumerate(read.pieces) if p and read.kinds[t] in (v.NORMAL, v.USER, v.UNUSED)}
    longest: dict[str, int] = {}
    for piece in usable:
        longest[piece[0]] = max(longest.get(piece[0], 0), len(piece))
    normal = [score for score, kind in zip(read.scores, read.kinds, strict=True) if kind == v.NORMAL]
    free = tuple(0.0 if kind == v.USER else score for score, kind in zip(read.scores, read.kinds, strict=True))
    return Ugm(
        ids=usable,
        longest=longest,
        scores=free,
        user=frozenset(p for p, t in usable.items() if read.kinds[t] == v.USER),
        unknown=read.specials.get("unk", 0),
        floor=min(normal, default=0.0),
        chars=CharMap(read.charsmap, path) if read.charsmap else None,
        prefix=prefix,
        merge_spaces=read.flag("remove_extra_whitespaces", False),
    )


def _controls(read: Vocabulary) -> list[_Control]:
    """Longest first. The file does not say which take white space with them; llama.cpp goes by these names."""
    phi3 = "phi-3" in read.name or "phi3" in read.name
    bare = {"<unk>", "<s>", "<|endoftext|>"}
    masks = {"<mask>"} if read.pre.startswith("jina-v2-") or read.model == "t5" else set[str]()
    masks |= {"[MASK]"} if "modern-bert" in read.name else set[str]()
    found = [
        _Control(piece, token, kind == v.USER, piece in masks, phi3 and piece not in bare)
        for token, (piece, kind) in enumerate(zip(read.pieces, read.kinds, strict=True))
        if piece and kind in (v.UNKNOWN, v.CONTROL, v.USER)
    ]
    return sorted(found, key=lambda control: -len(control.piece.encode("utf-8", "replace")))


def _split(part: str | _Control, at: int, control: _Control) -> list[tuple[str | _Control, int]]:
    if isinstance(part, _Control):
        return [(part, at)]
    found: list[tuple[str | _Control, int]] = []
    begin = 0
    while (place := part.find(control.piece, begin)) >= 0:
        text = part[begin:place]
        text = text.rstrip(" \t\n\v\f\r") if control.left else text
        if text:
            found.append((text, at + begin))
        found.append((control, at + place))
        begin = place + len(control.piece)
        while control.right and begin < len(part) and part[begin] in " \t\n\v\f\r":
            begin += 1
    if begin < len(part):
        found.append((part[begin:], at + begin))
    return found
