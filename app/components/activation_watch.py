"""Values that a person keeps an eye on: pinned above the table, kept in the address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from app import format_text, session
from app.plain_text import plain
from app.services import tracing
from core.errors import NotFound
from core.statistics.types import spark

MOST: Final = 12
_CARD: Final = 178
_BARS: Final = "▁▂▃▄▅▆▇█"


def watched() -> list[tuple[str, int]]:
    """Value ids and steps in the order in which they were pinned."""
    found: list[tuple[str, int]] = []
    for item in session.view().filter("watch").split(","):
        value, _, step = item.partition(":")
        if value and (not step or step.isdecimal()):
            found.append((value, int(step or 0)))
    return found[:MOST]


def pin(value: str, step: int) -> None:
    """A button that pins a value or lets it go."""
    pinned = (value, step) in watched()
    full = len(watched()) >= MOST and not pinned
    st.button(
        "Unpin" if pinned else "Pin", key=f"pin-{value}-{step}", on_click=_toggle, args=(value, step), disabled=full,
        icon=":material/keep_off:" if pinned else ":material/keep:", type="tertiary",
        help=f"At most {MOST} values are pinned" if full else "Pinned values stay on top of the page",
    )  # fmt: skip


def watch_list(trace: str, on_pick: Callable[[str, int], None]) -> None:
    """Draw the pinned values, each with its range and histogram; a click shows it."""
    pinned = watched()
    if not pinned:
        return
    with st.container(horizontal=True, gap="small", key="watch-list"):
        for value, step in pinned:
            _card(trace, value, step, on_pick)


def _card(trace: str, value: str, step: int, on_pick: Callable[[str, int], None]) -> None:
    with st.container(border=True, width=_CARD, gap=None, key=f"watch-{value.replace('.', '-')}-{step}"):
        try:
            found = tracing.described(session.actor(), trace, value, step)
        except NotFound:
            st.caption(f"{plain(value)}: not in this run")
            st.button("Unpin", key=f"unpin-{value}-{step}", type="tertiary", on_click=_toggle, args=(value, step))
            return
        at = f" [{step}]" if step else ""
        st.button(
            plain(found.name[-40:], 18) + at, key=f"watch-see-{value}-{step}", type="tertiary", on_click=on_pick,
            args=(value, step), width="stretch",
        )  # fmt: skip
        stats = found.stats
        if stats is None or stats.min is None:
            st.caption("no statistics")
            return
        low, high = (format_text.number(end, 3) for end in (stats.min, stats.max))
        counts = spark(stats)
        st.caption(f"{low} to {high}" + (f", :red[{format_text.count(stats.nan)} NaN]" if stats.nan else ""))
        top = max(counts, default=0) or 1
        st.text("".join(_BARS[round(7 * count / top)] for count in counts))


def _toggle(value: str, step: int) -> None:
    pinned = watched()
    kept = [item for item in pinned if item != (value, step)]
    if len(kept) == len(pinned):
        kept.append((value, step))
    session.set_filters(watch=",".join(v + (f":{s}" if s else "") for v, s in kept))
