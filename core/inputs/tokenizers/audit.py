"""What is wrong with a tokenizer.json, found by reading it, before any library sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from core.formats._json import Json, kind, text
from core.inputs.tokenizers.types import VOCABULARY
from core.ir import Finding
from core.limits import check

_MODELS: Final = ("BPE", "WordPiece", "WordLevel", "Unigram")
_SHOWN: Final = 20


def audit(data: Mapping[str, Json], path: str) -> list[Finding]:
    """Problems of the vocabulary, the merges, the added tokens and the patterns.

    Raises:
        LimitExceeded: if an id or a count is beyond ``VOCABULARY``.
    """
    model = data.get("model")
    if not isinstance(model, dict):
        return [_error("tokenizer.model", f"model is {kind(model)}, expected an object.")]
    found: list[Finding] = []
    named = model.get("type")
    if named is not None and named not in _MODELS:
        found.append(_error("tokenizer.model", f"model type is {_shown(named)}, known are {', '.join(_MODELS)}."))
    pieces = dict(_pieces(model.get("vocab"), found))
    found += _ids(pieces, path)
    found += _merges(model.get("merges"), pieces)
    found += _added(data.get("added_tokens"), pieces, path)
    patterns = sum(1 for part in ("normalizer", "pre_tokenizer", "decoder") for _ in _patterns(data.get(part)))
    if patterns:
        words = f"It brings {patterns} regular expressions of its own; they run in a process with a time limit."
        found.append(Finding("tokenizer.regex", "info", words))
    return found


def _pieces(vocabulary: Json | None, found: list[Finding]) -> Iterator[tuple[str, Json]]:
    """Pieces with their ids; in a unigram model the place is the id."""
    match vocabulary:
        case dict():
            yield from vocabulary.items()
        case list():
            for place, entry in enumerate(vocabulary):
                if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str):
                    yield entry[0], place
                else:
                    found.append(
                        _error("tokenizer.piece", f"Entry {place} of the vocabulary is no piece with a score.")
                    )
                    return
        case _:
            found.append(
                _error("tokenizer.vocabulary", f"vocab is {kind(vocabulary)}, expected an object or an array.")
            )


def _ids(pieces: Mapping[str, Json], path: str) -> Iterator[Finding]:
    seen: dict[int, str] = {}
    shown = 0
    for piece, token in pieces.items():
        if any("\ud800" <= letter <= "\udfff" for letter in piece):
            yield _error("tokenizer.surrogate", f"The piece {_shown(piece)} holds half a surrogate pair.")
        if type(token) is not int or token < 0:
            yield _error("tokenizer.id", f"The id of {_shown(piece)} is {_shown(token)}, expected 0 or more.")
        elif token in seen and shown < _SHOWN:
            yield _error("tokenizer.duplicate", f"{_shown(seen[token])} and {_shown(piece)} both have the id {token}.")
        elif token >= VOCABULARY:
            yield _error("tokenizer.id", f"The id of {_shown(piece)} is {token}, allowed is 0 to {VOCABULARY - 1}.")
        else:
            seen[token] = piece
            continue
        shown += 1
        if shown >= _SHOWN:
            return
    check("the number of pieces", len(pieces), VOCABULARY, path=path)


def _merges(merges: Json | None, pieces: Mapping[str, Json]) -> Iterator[Finding]:
    if not isinstance(merges, list):
        return
    shown = 0
    for place, entry in enumerate(merges):
        pair = entry.split(" ") if isinstance(entry, str) else entry
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(half, str) for half in pair):
            missing = [half for half in pair if half not in pieces]
            if not missing:
                continue
            words = f"Merge {place} joins {_shown(missing[0])}, which is not in the vocabulary."
        else:
            words = f"Merge {place} is {_shown(entry)}, expected two pieces."
        yield _error("tokenizer.merge", words)
        shown += 1
        if shown >= _SHOWN:
            return


def _added(added: Json | None, pieces: Mapping[str, Json], path: str) -> Iterator[Finding]:
    if not isinstance(added, list):
        return
    check("the number of added tokens", len(added), VOCABULARY, path=path)
    for entry in added:
        token = entry.get("id") if isinstance(entry, dict) else None
        content = entry.get("content") if isinstance(entry, dict) else None
        if type(token) is not int or not isinstance(content, str) or not 0 <= token < VOCABULARY:
            yield _error("tokenizer.added", f"An added token is {_shown(content)} with the id {_shown(token)}.")
            return
        if pieces.get(content, token) != token:
            words = (
                f"{_shown(content)} has the id {_shown(pieces[content])} in the vocabulary, {token} among the added."
            )
            yield _error("tokenizer.added", words)
            return


def _patterns(part: Json | None) -> Iterator[str]:
    """Every regular expression inside a part of the pipeline."""
    match part:
        case dict():
            found = part.get("Regex")
            if isinstance(found, str):
                yield found
            for value in part.values():
                yield from _patterns(value)
        case list():
            for value in part:
                yield from _patterns(value)
        case _:
            return


def first_error(findings: Sequence[Finding]) -> str:
    """The message of the first error, empty where there is none."""
    return next((finding.message for finding in findings if finding.severity == "error"), "")


def _shown(value: Json | None) -> str:
    if not isinstance(value, str):
        return str(value)[:60]
    return repr(value[:60]) if text(value) == value else ascii(value[:60])


def _error(code: str, message: str) -> Finding:
    return Finding(code, "error", message)
