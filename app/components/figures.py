"""The row of figures under a page's head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from app.plain_text import plain


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: a value with its unit, what it counts, and a note in small print."""

    label: str
    value: str
    note: str = ""


def figures(items: Sequence[Figure], key: str) -> None:
    """Draw figures side by side; all text is shown as it is."""
    with st.container(key=key):
        for column, item in zip(st.columns(len(items), gap="small"), items, strict=True):
            column.metric(
                plain(item.label),
                plain(item.value, 40),
                delta=plain(item.note, 90) or None,
                delta_color="off",
                delta_arrow="off",
                border=True,
                height="stretch",
            )
