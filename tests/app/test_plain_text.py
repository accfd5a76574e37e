"""File text in Markdown; what a browser makes of it is tested in ``tests/browser/test_hostile_names.py``."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as some

from app.plain_text import mono, plain, shorten


@given(some.text())
def test_every_character_that_markdown_reads_is_escaped(text: str) -> None:
    left = re.sub(r"\\[!-/:-@\[-`{-~]", "", plain(text))
    assert not re.search(r"[!-/:-@\[-`{-~]", left)


@given(some.text())
def test_taking_the_escapes_away_gives_the_text_back(text: str) -> None:
    visible = shorten(text).replace("\u2060", "")
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", plain(text)).replace("\u2060", "") == visible


@given(some.text(alphabet="`a ", max_size=20))
def test_code_ends_where_its_text_ends(text: str) -> None:
    code = mono(text)
    fence = re.match("`+", code)
    assert fence is not None
    assert code.endswith(fence.group())
    inner = code[len(fence.group()) : -len(fence.group())]
    assert max((len(run) for run in re.findall("`+", inner)), default=0) < len(fence.group())


def test_a_long_text_keeps_both_ends_in_one_visible_line() -> None:
    shown = shorten("encoder" + "x" * 10_000 + "weight", 40)
    assert len(shown) == 40
    assert shown.startswith("encoder")
    assert shown.endswith("weight")
    assert "…" in shown


def test_what_cannot_be_seen_is_shown_as_such() -> None:
    assert shorten("a\x00b\x1b[31m\u202egnp.exe\u200d\ud800") == "a\ufffdb\ufffd[31m\ufffdgnp.exe\ufffd\ufffd"
    assert shorten("one\ntwo\tthree") == "one two three"
