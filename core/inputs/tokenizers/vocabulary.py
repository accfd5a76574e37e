"""The vocabulary that a GGUF file carries in its metadata (gguf specification, ``tokenizer.ggml.*``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.errors import BrokenFile, Unavailable
from core.formats._gguf_header import ArrayValue, Header, Scalar, read_header
from core.inputs.tokenizers.types import VOCABULARY
from core.ir import Finding
from core.limits import check
from core.source import Source

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
_PREFIX: Final = "tokenizer.ggml."
_ROLES: Final = {
    "bos": "bos_token_id", "eos": "eos_token_id", "unk": "unknown_token_id", "sep": "seperator_token_id",
    "pad": "padding_token_id", "cls": "cls_token_id", "mask": "mask_token_id",
}  # fmt: skip
_DEFAULTS: Final[dict[str, dict[str, int]]] = {
    "llama": {"bos": 1, "eos": 2, "unk": 0},
    "bert": {"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103},
    "gpt2": {"bos": 11, "eos": 11},
    "t5": {"eos": 1, "unk": 2, "pad": 0},
    "gemma4": {},
}
"""Ids that llama.cpp takes where the file does not say, by ``tokenizer.ggml.model``."""


@dataclass(frozen=True)
class Vocabulary:
    """Everything the file says about text.

    Attributes:
        model: ``llama`` (SentencePiece BPE), ``gpt2`` and ``gemma4`` (BPE), ``bert`` or ``t5``.
        pre: the name of the pre-tokenizer, empty where the file has none.
        kinds: token type of each piece.
        name: name of the model in the file, in small letters.
    """

    model: str
    pre: str
    pieces: tuple[str, ...]
    kinds: tuple[int, ...]
    scores: tuple[float, ...]
    merges: tuple[str, ...]
    specials: dict[str, int]
    charsmap: bytes
    flags: dict[str, bool]
    name: str
    findings: tuple[Finding, ...]

    @property
    def ids(self) -> dict[str, int]:
        """Ids by piece; of equal pieces the last, as llama.cpp reads it."""
        return {piece: token for token, piece in enumerate(self.pieces)}

    def flag(self, name: str, default: bool) -> bool:
        """A switch such as ``add_bos_token``."""
        return self.flags.get(name, default)


def read_vocabulary(source: Source) -> Vocabulary:
    """Read the vocabulary of a GGUF file; reads its header and the arrays of the tokenizer.

    Raises:
        Unavailable: if it has none, or one of a kind that is not known.
        BrokenFile: if its arrays are of the wrong types or lengths.
    """
    header = read_header(source)
    model = header.values.get(_PREFIX + "model")
    if not isinstance(model, str) or _PREFIX + "tokens" not in header.values:
        raise Unavailable("carries no vocabulary", path=source.path, hint="Choose a tokenizer file.")
    if model not in _DEFAULTS:
        known = ", ".join(_DEFAULTS)
        raise Unavailable(f"has a vocabulary of kind {model[:40]!r}, known are {known}", path=source.path)
    pieces = tuple(str(item) for item in _items(source, header, "tokens", ("string",)))
    kinds = tuple(int(item) for item in _items(source, header, "token_type", ("int32", "uint32"), len(pieces)))
    scores = tuple(float(item) for item in _items(source, header, "scores", ("float32", "float64"), len(pieces)))
    charsmap = bytes(int(i) & 255 for i in _items(source, header, "precompiled_charsmap", ("uint8", "int8")))
    pre, name = header.values.get(_PREFIX + "pre", ""), header.values.get("general.name", "")
    findings: list[Finding] = []
    return Vocabulary(
        model=model,
        pre=pre if isinstance(pre, str) else "",
        pieces=pieces,
        kinds=kinds or (NORMAL,) * len(pieces),
        scores=scores or (0.0,) * len(pieces),
        merges=tuple(str(item) for item in _items(source, header, "merges", ("string",))),
        specials=_specials(header, _DEFAULTS[model], len(pieces), findings),
        charsmap=charsmap,
        flags={k.removeprefix(_PREFIX): v for k, v in header.values.items() if isinstance(v, bool)},
        name=str(name).lower() if isinstance(name, str) else "",
        findings=(*findings, *_repeated(pieces)),
    )


def _items(
    source: Source, header: Header, key: str, types: tuple[str, ...], length: int | None = None
) -> tuple[Scalar, ...]:
    array = header.values.get(_PREFIX + key)
    if array is None:
        return ()
    field = _PREFIX + key
    if not isinstance(array, ArrayValue) or array.type_name not in types:
        found = array.type_name if isinstance(array, ArrayValue) else type(array).__name__
        raise BrokenFile("has the wrong type", path=source.path, field=field, expected=" or ".join(types), found=found)
    check(f"the length of {field}", array.count, VOCABULARY, path=source.path, byte=array.start)
    if length is not None and array.count != length:
        raise BrokenFile("has the wrong length", path=source.path, field=field, expected=length, found=array.count)
    return array.items(source, 0, array.count)


def _specials(header: Header, default: dict[str, int], size: int, findings: list[Finding]) -> dict[str, int]:
    found = {role: token for role, token in default.items() if token < size}
    for role, key in _ROLES.items():
        token = header.values.get(_PREFIX + key)
        if type(token) is not int:
            continue
        if 0 <= token < size:
            found[role] = token
        else:
            text = f"{_PREFIX}{key} is {token}, the vocabulary has {size} pieces; it is not used."
            findings.append(Finding("tokenizer.special", "error", text))
    return found


def _repeated(pieces: tuple[str, ...]) -> list[Finding]:
    count = len(pieces) - len(set(pieces))
    text = f"{count} pieces of the vocabulary are there more than once; of equal ones the last is used."
    return [Finding("tokenizer.duplicate", "warning", text)] if count else []
