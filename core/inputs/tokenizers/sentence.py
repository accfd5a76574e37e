"""SentencePiece ``.model`` files, by the library of the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Final, cast

from core.errors import ModelError
from core.formats import _json
from core.inputs.tokenizers.native import Native, Request, ask
from core.inputs.tokenizers.types import FILE_BYTES, Info, Token
from core.limits import MIB, check
from core.source import Source

_FRAMES: Final[dict[str, tuple[bool, bool]]] = {
    "LlamaTokenizer": (True, False), "GemmaTokenizer": (True, False), "T5Tokenizer": (False, True),
    "MT5Tokenizer": (False, True), "PegasusTokenizer": (False, True), "MarianTokenizer": (False, True),
}  # fmt: skip
"""Whether BOS and EOS are added, by ``tokenizer_class`` (transformers)."""

_SHIFTED: Final = "sentencepiece.bpe.model"
"""Under this name XLM-R, mBART and their kin keep a file whose ids are not those of the model."""


def open_sentencepiece(path: str) -> Native:
    """A SentencePiece model; reads it and tokenizer_config.json beside it.

    Raises:
        BrokenFile: if the library cannot use it.
        LimitExceeded: if it is larger than ``FILE_BYTES``.
    """
    source = Source(path)
    check("the size of the SentencePiece model", source.size, FILE_BYTES, path=path)
    source.close()
    request = Request("sentencepiece", path)
    answer = ask(request)
    specials = {role: token for role, token in answer["roles"].items() if token >= 0}
    pieces = cast("dict[str, str]", dict(answer).get("pieces", {}))
    frame, told = _frame(path)
    exact, words = told, "The model's own SentencePiece file, run by its library"
    if Path(path).name == _SHIFTED:
        exact, words = False, words + "; models that keep it under this name count ids one higher"
    words += "; BOS and EOS as its configuration says." if told else "; whether BOS and EOS belong around is not said."

    def around(role: str, wanted: bool) -> tuple[Token, ...]:
        return (Token(specials[role], pieces[role], 0, 0, True),) if wanted and role in pieces else ()

    info = Info("sentencepiece", path, answer["size"], specials, exact, words)
    return Native(request, info, around("bos", frame[0]), around("eos", frame[1]))


def _frame(path: str) -> tuple[tuple[bool, bool], bool]:
    """Whether BOS and EOS are added, and whether a file said so."""
    place = Path(path).with_name("tokenizer_config.json")
    if not place.is_file():
        return (False, False), False
    try:
        source = Source(place)
        config = _json.parse_object(source.read(0, min(source.size, 16 * MIB)), path=str(place), what=place.name)
    except ModelError:
        return (False, False), False
    usual = _FRAMES.get(str(config.get("tokenizer_class")))
    bos, eos = config.get("add_bos_token"), config.get("add_eos_token")
    if usual is None and not isinstance(bos, bool) and not isinstance(eos, bool):
        return (False, False), False
    first, last = usual or (False, False)
    return (bos if isinstance(bos, bool) else first, eos if isinstance(eos, bool) else last), True
