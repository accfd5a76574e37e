"""Every kind of tokenizer file, with the names it goes by and how its first bytes look."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of tokenizer file.

    Attributes:
        module, function: what opens a path, e.g. ``core.inputs.tokenizers.gguf`` and ``open_gguf``.
        name: pattern of file names, for files lying beside a model.
        start: pattern of the first bytes.
    """

    key: str
    title: str
    module: str
    function: str
    name: re.Pattern[str]
    start: re.Pattern[bytes]


def _kind(key: str, title: str, module: str, function: str, name: str, start: bytes) -> Kind:
    place = f"core.inputs.tokenizers.{module}"
    return Kind(key, title, place, function, re.compile(name), re.compile(start, re.DOTALL))


KINDS: Final[tuple[Kind, ...]] = (
    _kind("gguf", "GGUF's own vocabulary", "gguf", "open_gguf", r".*\.gguf", rb"GGUF"),
    _kind("merges", "vocab.json and merges.txt", "hugging", "open_merges",
          r"vocab\.json|merges\.txt|encoder\.json|vocab\.bpe", rb""),
    _kind("json", "tokenizer.json", "hugging", "open_json", r"(.*[._-])?tokenizer(_config)?\.json", rb"\s*\{"),
    _kind("wordpiece", "vocab.txt", "hugging", "open_wordpiece", r"(.*[._-])?vocab\.txt", rb""),
    _kind("tiktoken", "tiktoken ranks", "tiktoken", "open_tiktoken", r".*\.tiktoken|tokenizer\.model",
          rb"[A-Za-z0-9+/]+=* \d+\r?\n"),
    _kind("sentencepiece", "SentencePiece model", "sentence", "open_sentencepiece", r".*\.model", rb"\x0a"),
)  # fmt: skip
"""In the order in which a file is tried."""

BESIDE: Final = (
    "tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "encoder.json", "vocab.txt",
    "sentencepiece.bpe.model",
)  # fmt: skip
"""Files looked for beside a model, the most faithful first."""
