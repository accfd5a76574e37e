"""File text made safe for widgets that read Markdown.

A name in a model file may look like a link, a formula, an icon or a tag. ``st.text``, ``st.code``
and table cells show it as it is; labels, captions, tabs, badges and tooltips go through here.
"""

from __future__ import annotations

import unicodedata
from typing import Final

LIMIT: Final = 120
_BREAK: Final = "\u2060"
"""WORD JOINER, invisible. Streamlit replaces ``:material/name:``, ``->`` and ``--`` and makes links of
addresses in the finished text, where backslashes are gone; the joiner keeps it from recognising them.
"""

_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_JOINED: Final = frozenset(":-<>=~@")


def shorten(text: str, limit: int = LIMIT) -> str:
    """One visible line: control and direction marks become ``\\ufffd``, the middle of a long text ``…``."""
    if len(text) > limit:
        head = (limit - 1) * 2 // 3
        text = text[:head] + "…" + text[len(text) - (limit - 1 - head) :]
    return "".join(_visible(character) for character in text)


def plain(text: str, limit: int = LIMIT) -> str:
    """``text`` as Markdown that shows exactly ``shorten(text)`` and nothing else."""
    pieces: list[str] = []
    for character in shorten(text, limit):
        if character == "." and pieces[-3:] in (["w"] * 3, ["W"] * 3):
            pieces.append(_BREAK)
        pieces.append(f"\\{character}" if character in _PUNCTUATION else character)
        if character in _JOINED:
            pieces.append(_BREAK)
    return "".join(pieces)


def mono(text: str, limit: int = LIMIT) -> str:
    """``text`` as inline code in Markdown, for names and shapes."""
    shown = shorten(text, limit).replace(":material/", f":{_BREAK}material/")
    longest = run = 0
    for character in shown:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * (longest + 1)
    pad = " " if not shown or shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown or ' '}{pad}{fence}"


def _visible(character: str) -> str:
    if character in "\t\n\r":
        return " "
    # Cc control, Cf direction overrides and joiners, Cs lone surrogates, Zl and Zp line separators
    return "\ufffd" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") else character
