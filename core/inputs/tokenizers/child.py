"""A tokenizer library at work for one request: a program of its own, started by ``native.ask``.

It imports nothing of ours and catches nothing: what goes wrong ends it, and its last line on
stderr says what it was. Text of a tokenizer file reaches native code here and nowhere else.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

MEMORY = 2 << 30
PIECE = 200
"""Characters of a piece that are handed back."""


def _limit(seconds: int) -> None:
    try:
        resource = importlib.import_module("resource")
    except ModuleNotFoundError:  # Windows
        return
    memory = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    for kind, bound in ((memory, MEMORY), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        most = bound if hard < 0 else min(bound, hard)
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):
            continue


def _tokenizer(request: dict[str, Any]) -> Any:
    import tokenizers

    library: Any = tokenizers
    if request["kind"] == "json":
        made = library.Tokenizer.from_file(request["path"])
    elif request["kind"] == "merges":
        made = library.Tokenizer(library.models.BPE.from_file(request["path"], request["merges"]))
        made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = library.decoders.ByteLevel()
    else:
        made = library.Tokenizer(library.models.WordPiece.from_file(request["path"], unk_token="[UNK]"))  # noqa: S106
        made.normalizer = library.normalizers.BertNormalizer(lowercase=request["lowercase"])
        made.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
        made.decoder = library.decoders.WordPiece(prefix="##")
        ids = [(piece, made.token_to_id(piece)) for piece in ("[CLS]", "[SEP]")]
        if all(token is not None for _, token in ids):
            made.post_processor = library.processors.TemplateProcessing(
                single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
            )
    known = [piece for piece in request["controls"] if made.token_to_id(piece) is not None]
    if known:
        made.add_special_tokens(known)
    made.no_padding()
    made.no_truncation()
    return made


def _hugging(request: dict[str, Any]) -> dict[str, object]:
    made = _tokenizer(request)
    made.encode_special_tokens = not request["parse"]
    controls = {token for token, added in made.get_added_tokens_decoder().items() if added.special}
    vocabulary: dict[str, int] = made.get_vocab(with_added_tokens=True)
    rows: list[list[object]] = []
    for text in request["texts"]:
        found = made.encode(text, add_special_tokens=request["special"])
        _few(len(found.ids), request)
        columns = (found.ids, found.tokens, found.offsets, found.special_tokens_mask, found.type_ids)
        rows.append([[t, p[:PIECE], *at, int(s or t in controls), g] for t, p, at, s, g in zip(*columns, strict=True)])
    text = None if request["ids"] is None else made.decode(request["ids"], skip_special_tokens=not request["control"])
    size = max(vocabulary.values(), default=-1) + 1
    roles = {piece: vocabulary[piece] for piece in request["roles"] if piece in vocabulary}
    return {"size": size, "roles": roles, "rows": rows, "text": text}


def _sentence(request: dict[str, Any]) -> dict[str, object]:
    import sentencepiece

    library: Any = sentencepiece
    made = library.SentencePieceProcessor(model_file=request["path"])
    rows: list[list[object]] = []
    for text in request["texts"]:
        found = made.encode(text, return_type="proto").pieces
        _few(len(found), request)
        place = [at for at, letter in enumerate(text) for _ in letter.encode()] + [len(text)]
        rows.append([[p.id, p.piece[:PIECE], place[p.begin], place[p.end], 0, 0] for p in found])
    roles = {"bos": made.bos_id(), "eos": made.eos_id(), "unk": made.unk_id(), "pad": made.pad_id()}
    pieces = {role: made.id_to_piece(token)[:PIECE] for role, token in roles.items() if token >= 0}
    text = None if request["ids"] is None else made.decode(request["ids"])
    return {"size": made.get_piece_size(), "roles": roles, "rows": rows, "text": text, "pieces": pieces}


def _few(count: int, request: dict[str, Any]) -> None:
    if count > request["most"]:
        raise OverflowError(f"makes {count} tokens, allowed are {request['most']}")


def main() -> None:
    """Read one request from stdin and write its answer to stdout."""
    request: dict[str, Any] = json.load(sys.stdin)
    _limit(request["seconds"])
    answer = _sentence(request) if request["kind"] == "sentencepiece" else _hugging(request)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
