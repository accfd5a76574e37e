"""Files of the Hugging Face world, by the ``tokenizers`` library: tokenizer.json, vocab.json, merges.txt, vocab.txt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from core.errors import BrokenFile, UnreadableFile
from core.formats import _json
from core.formats._json import Json
from core.inputs.tokenizers.audit import audit, first_error
from core.inputs.tokenizers.native import Native, Request, ask, by_role
from core.inputs.tokenizers.types import FILE_BYTES, SPECIALS, Info
from core.ir import Finding
from core.limits import MIB, check
from core.source import Source

_USUAL: Final[tuple[tuple[str, str], ...]] = (
    ("[CLS]", "cls"), ("[SEP]", "sep"), ("[PAD]", "pad"), ("[UNK]", "unk"), ("[MASK]", "mask"), ("<pad>", "pad"),
    ("<unk>", "unk"), ("<s>", "bos"), ("</s>", "eos"), ("<mask>", "mask"), ("<|endoftext|>", "eos"),
)  # fmt: skip
"""What these pieces are used for where no file says so."""

_CONFIG_BYTES: Final = 16 * MIB


def open_json(path: str) -> Native:
    """A tokenizer.json; reads it, and files that lie beside it.

    Raises:
        BrokenFile: if it is no JSON, or the library cannot use it.
        LimitExceeded: if it is larger than ``FILE_BYTES``, or an id is beyond its bound.
    """
    data = _object(path, "tokenizer.json", FILE_BYTES)
    findings = audit(data, path)
    names = roles(path)
    request = Request("json", path, roles=_pieces(names))
    try:
        answer = ask(request)
    except BrokenFile as error:
        raise BrokenFile(error.message, path=path, hint=first_error(findings) or None) from None
    exact = not any(finding.severity == "error" for finding in findings)
    words = "The model's own tokenizer.json, run by the tokenizers library."
    if not exact:
        words = "The model's own tokenizer.json, but it contradicts itself, so ids may differ."
    found = by_role(answer["roles"], names)
    info = Info("json", path, answer["size"], found, exact, words, _length(data), tuple(findings))
    return Native(request, info)


def open_merges(path: str) -> Native:
    """vocab.json with merges.txt (or encoder.json with vocab.bpe) beside it: byte-level BPE as in GPT-2; reads both.

    Raises:
        UnreadableFile: if the other of the two files is missing.
        BrokenFile: if they are of another kind, or the library cannot use them.
    """
    vocabulary, merges = _pair(path)
    ids = _object(vocabulary, "vocab.json", FILE_BYTES)
    if any(piece.endswith("</w>") for piece in list(ids)[:100_000]):
        raise BrokenFile("marks ends of words (CLIP's kind), which needs a tokenizer.json", path=vocabulary)
    names = roles(vocabulary)
    request = Request("merges", vocabulary, merges, controls=_pieces(names), roles=_pieces(names))
    answer = ask(request)
    words = "Byte-level BPE from the model's own vocabulary and merges, cut as GPT-2 cuts; no template is added."
    findings = tuple(audit({"model": {"type": "BPE", "vocab": ids}}, vocabulary))
    exact = not first_error(findings)
    return Native(request, Info("merges", vocabulary, answer["size"], by_role(answer["roles"], names), exact, words,
                                findings=findings))  # fmt: skip


def open_wordpiece(path: str) -> Native:
    """vocab.txt, one piece a line: WordPiece as in BERT; reads it and the configuration beside it.

    Case is folded as tokenizer_config.json says, else where no piece has a capital letter.

    Raises:
        BrokenFile: if it has no [UNK], or the library cannot use it.
    """
    source = Source(path)
    check("the size of the vocabulary", source.size, FILE_BYTES, path=path)
    pieces = source.read(0, min(source.size, _CONFIG_BYTES)).decode("utf-8", "replace").splitlines()
    source.close()
    if "[UNK]" not in pieces:
        raise BrokenFile("has no piece [UNK], so it is no WordPiece vocabulary", path=path)
    said = _beside(path, "tokenizer_config.json").get("do_lower_case")
    lowercase = said if isinstance(said, bool) else not any(p != p.lower() for p in pieces if not p.startswith("["))
    names = roles(path)
    request = Request("wordpiece", path, "", lowercase, _pieces(names), _pieces(names))
    answer = ask(request)
    why = "as its configuration says" if isinstance(said, bool) else "judged by its pieces"
    case = "case is folded" if lowercase else "case is kept"
    words = f"WordPiece from the model's own vocabulary, words as in BERT; {case}, {why}."
    count = len(pieces) - len(set(pieces))
    findings = (Finding("tokenizer.duplicate", "warning", f"{count} lines are there more than once."),) if count else ()
    found = by_role(answer["roles"], names)
    return Native(request, Info("wordpiece", path, answer["size"], found, isinstance(said, bool), words,
                                findings=findings))  # fmt: skip


def roles(path: str) -> list[tuple[str, str]]:
    """Roles and pieces: what the configuration files beside a tokenizer file say, then the usual names."""
    found: list[tuple[str, str]] = []
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        for role in SPECIALS:
            piece = _beside(path, name).get(f"{role}_token")
            piece = piece.get("content") if isinstance(piece, dict) else piece
            if isinstance(piece, str):
                found.append((role, _json.text(piece)))
    return found + [(role, piece) for piece, role in _USUAL]


def _pieces(names: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(piece for _, piece in names))


def _beside(path: str, name: str) -> Mapping[str, Json]:
    place = Path(path).with_name(name)
    return _object(str(place), name, _CONFIG_BYTES) if place.is_file() else {}


def _object(path: str, what: str, bound: int) -> dict[str, Json]:
    source = Source(path)
    try:
        check(f"the size of {what}", source.size, bound, path=path)
        return _json.parse_object(b"".join(source.blocks(0, source.size)), path=path, what=what)
    finally:
        source.close()


def _length(data: Mapping[str, Json]) -> int:
    truncation = data.get("truncation")
    length = truncation.get("max_length") if isinstance(truncation, dict) else 0
    return length if type(length) is int and 0 < length < 1 << 31 else 0


def _pair(path: str) -> tuple[str, str]:
    """The vocabulary and the merges, whichever of them ``path`` is."""
    place = Path(path)
    for vocabulary, merges in (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")):
        if place.name in (vocabulary, merges):
            found = place.with_name(vocabulary), place.with_name(merges)
            for other in found:
                if not other.is_file():
                    raise UnreadableFile(f"needs {other.name} beside it", path=path)
            return str(found[0]), str(found[1])
    raise UnreadableFile("is called neither vocab.json nor merges.txt", path=path)
