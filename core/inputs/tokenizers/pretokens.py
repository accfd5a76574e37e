"""How text is cut before byte-pair encoding, by the name in ``tokenizer.ggml.pre``.

Each name stands for patterns that are applied one after another, each to the pieces that the one
before left; what a pattern does not match stays a piece of its own. They are the patterns of the
models' own tokenizer.json; the names are llama.cpp's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from core.errors import LimitExceeded
from core.inputs.tokenizers.types import Clock

if TYPE_CHECKING:
    import regex


def _ranges(words: str) -> str:
    """The inside of a character class from hexadecimal code points and ranges."""
    return "".join("-".join(rf"\U{int(end, 16):08x}" for end in word.split("-")) for word in words.split())


_ENDING: Final = r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
_BLANK: Final = r"\s+(?!\S)|\s+"
_LEAD: Final = r"[^\r\n\p{L}\p{N}]?"
_WORD: Final = rf"{_LEAD}\p{{L}}+"
_SIGNS: Final = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_LINES: Final = r"\s*[\r\n]+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED: Final = (
    "41-5a 61-7a b5 c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376 377 37b-37d 37f 386 388-38a 38c "
    "38e-3a1 3a3-3f5 3f7-481 48a-52f 531-556 10a0-10c5 13a0-13f5 13f8-13fd 1c90-1cba 1cbd-1cbf 1d00-1d2b "
    "1d6b-1d77 1d79-1d9a 1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 "
    "1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2102 2107 210a-2113 "
    "2115 2119-211d 2124 2126 2128 212a-212d 212f-2134 2139 213c-213f 2145-2149 214e 2183 2184 2c00-2c7b "
    "2c7e-2ce4 2ceb-2cee 2cf2 2cf3 a640-a66d a680-a69b a722-a76f a771-a787 a78b-a78e ab70-abbf fb00-fb06 "
    "fb13-fb17 ff21-ff3a ff41-ff5a 10400-1044f 104b0-104d3 104d8-104fb 10c80-10cb2 10cc0-10cf2 118a0-118df "
    "1e900-1e943"
)
"""Code points of the cased letters that DeepSeek's first tokenizer lists, in hexadecimal."""
_CJK: Final = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_MARKS: Final = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
_HAN_KANA: Final = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"

GPT2: Final = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_BLANK}"
LLAMA3: Final = rf"{_ENDING}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_LINES}|{_BLANK}"
QWEN2: Final = rf"{_ENDING}|{_WORD}|\p{{N}}|{_SIGNS}|{_LINES}|{_BLANK}"
GPT4O: Final = (
    rf"{_LEAD}{_UPPER}*{_LOWER}+(?:{_ENDING})?|{_LEAD}{_UPPER}+{_LOWER}*(?:{_ENDING})?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_LINES}|{_BLANK}"
)
_QWEN35: Final = rf"{_ENDING}|{_LEAD}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_LINES}|{_BLANK}"
_TEKKEN: Final = (
    rf"{_LEAD}{_UPPER}*{_LOWER}+|{_LEAD}{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_LINES}|{_BLANK}"
)
_DEEPSEEK3: Final = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_LINES}|{_BLANK}"
)
_JAIS2: Final = rf"{_ENDING}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_LINES}|" + "|".join(
    rf"\s{{{size}}}(?!\S)" for size in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2")
) + r"|\s"  # fmt: skip
_BLOOM: Final = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"


@dataclass(frozen=True, slots=True)
class Cut:
    """How one family cuts text.

    Attributes:
        patterns: applied in this order.
        whole: a piece that is in the vocabulary is taken whole, before any merge.
        bytes: whether pieces are written with a letter a byte; else as text with U+2581 for spaces.
        bos: whether BOS is added where the file does not say.
    """

    patterns: tuple[str, ...]
    whole: bool = False
    bytes: bool = True
    bos: bool = False


_GPT2: Final = Cut((GPT2,))
_QWEN2: Final = Cut((QWEN2,))
_DIGITS_GPT2: Final = Cut((r"\p{N}", GPT2))
_LLAMA3: Final = Cut((LLAMA3,), whole=True, bos=True)
_GPT4O: Final = Cut((GPT4O,))
_DEEPSEEK3_CUT: Final = Cut((r"\p{N}{1,3}", _HAN_KANA, _DEEPSEEK3))
_GEMMA4: Final = Cut((r"[^\n]+|\n+",), bytes=False)

CUTS: Final[dict[str, Cut]] = {
    **dict.fromkeys(
        ("gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
         "modern-bert", "jina-v1-en", "jina-v2-code", "roberta-bpe", "mpt", "olmo", "jais", "trillion",
         "granite-docling", "exaone4"), _GPT2),
    **dict.fromkeys(("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"),
                    _DIGITS_GPT2),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
                     "jina-v5-nano"), _LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open",
                     "grok-2"), _QWEN2),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), _DEEPSEEK3_CUT),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), _GPT4O),
    **dict.fromkeys(("dbrx", "smaug-bpe", "chatglm-bpe"), Cut((LLAMA3,))),
    **dict.fromkeys(("glm4", "glm5"), Cut((LLAMA3,), whole=True)),
    **dict.fromkeys(("poro-chat", "bloom", "gpt3-finnish"), Cut((_BLOOM,))),
    **dict.fromkeys(("gemma4", "granite-embed-multi-311m", "sarvam-moe"), _GEMMA4),
    "qwen35": Cut((_QWEN35,)),
    "deepseek-llm": Cut((r"[\r\n]", rf"\s?[{_ranges(_CASED)}]+", _MARKS, r"\s+\Z", _CJK, r"\p{N}+")),
    "deepseek-coder": Cut((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}")),
    "falcon": Cut((r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]")),
    "default": Cut((r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    "tekken": Cut((_TEKKEN,), whole=True, bos=True),
    "viking": Cut((_BLOOM, r"\p{N}")),
    "jais-2": Cut((_JAIS2,)),
    "laguna": Cut((r"[^\n]+|\n+", QWEN2)),
    "minicpm5": Cut((r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")), whole=True),
    "seed-coder": Cut((rf"{_ENDING}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_LINES}|{_BLANK}",)),
    **dict.fromkeys(("bailingmoe", "bailingmoe2", "llada-moe"),
                    Cut((rf"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|{_WORD}|\p{{N}}|{_SIGNS}|\s*[\r\n]|{_BLANK}",))),
}  # fmt: skip


def cut(text: str, patterns: tuple[str, ...], clock: Clock) -> list[tuple[int, int]]:
    """The ranges that the patterns leave, in order and without gaps.

    Raises:
        LimitExceeded: if the time is over.
    """
    pieces = [(0, len(text))] if text else []
    for pattern in patterns:
        found: list[tuple[int, int]] = []
        for start, stop in pieces:
            found += _one(_compiled(pattern), text[start:stop], start, clock)
        pieces = found
    return pieces


def _one(pattern: regex.Pattern[str], text: str, base: int, clock: Clock) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = 0
    try:
        for match in pattern.finditer(text, timeout=clock.left):
            start, stop = match.span()
            if start > at:
                found.append((base + at, base + start))
            if stop > start:
                found.append((base + start, base + stop))
            at = stop
    except TimeoutError:
        raise LimitExceeded(f"tokenizing took longer than {clock.seconds:g} s", hint="Use a shorter text.") from None
    if at < len(text):
        found.append((base + at, base + len(text)))
    return found


@cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    import regex

    return regex.compile(pattern)
