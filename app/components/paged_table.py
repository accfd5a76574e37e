"""What the tables over the database share: filters kept in the address, paging, picking a row, CSV."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from app import format_text, session
from app.plain_text import shorten
from app.services.tables import TablePage

PAGE: Final = 100
ROW: Final = 32
CSV_ROWS: Final = 1_000_000
NUMERIC: Final = ("min", "max", "mean", "std")
"""Statistics that have a column of their own."""


def name_filter(table: str, text: str) -> None:
    """A box for part of a name; ``table`` begins the names of its widgets and filters."""
    st.text_input(
        "Name holds", text, key=f"{table}-text", icon=":material/search:", placeholder="part of a name",
        label_visibility="collapsed", on_change=keep, args=(f"{table}__text", f"{table}-text"),
    )  # fmt: skip


def order(table: str, sorts: Mapping[str, str], sort: str, descending: bool) -> None:
    """What to sort by and which way; ``sorts`` are titles by column."""
    st.selectbox(
        "Sort by", list(sorts), list(sorts).index(sort), sorts.__getitem__, key=f"{table}-sort",
        label_visibility="collapsed", width=200, on_change=keep, args=(f"{table}__sort", f"{table}-sort"),
    )  # fmt: skip
    st.segmented_control(
        "Order", ["up", "down"], default="down" if descending else "up", required=True,
        format_func=lambda way: ":material/arrow_upward:" if way == "up" else ":material/arrow_downward:",
        key=f"{table}-order", label_visibility="collapsed", on_change=keep,
        args=(f"{table}__order", f"{table}-order"),
    )  # fmt: skip


def csv_button(table: str, file_name: str, make: Callable[[], str], total: int, noun: str) -> None:
    """A download of the whole filtered list, made when it is asked for."""
    st.download_button(
        "CSV", make, file_name=file_name, mime="text/csv", key=f"{table}-csv", icon=":material/download:",
        on_click="ignore", disabled=not total, help=f"The {format_text.plural(total, noun)} of this list",
    )  # fmt: skip


def csv_of(fetch: Callable[[int], TablePage], texts: tuple[str, ...]) -> str:
    """The whole list as CSV, fetched page by page from a row on; histograms are left out.

    Args:
        texts: columns with text of a file, which must not become formulas.
    """
    out, start = io.StringIO(), 0
    while start < CSV_ROWS:
        found = fetch(start)
        kept = found.rows.drop(columns=["histogram", "edges"], errors="ignore")
        for name in texts:
            kept[name] = [inert_cell(text) for text in kept[name]]
        kept.to_csv(out, index=False, header=start == 0)
        start += len(found.rows)
        if found.next is None:
            break
    return out.getvalue()


def pager(key: str, found: TablePage, total: int) -> None:
    """Page numbers and which rows are shown, where there is more than one page."""
    if total > PAGE:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.pagination(-(-total // PAGE), key=key)
            st.caption(f"{found.start + 1:,} to {found.start + len(found.rows):,} of {total:,}")


def picked(key: str, use: Callable[[int], None]) -> None:
    """Within a selection callback: hand on the place of the row that was clicked, if one was."""
    rows = st.session_state[key].selection.rows
    if rows:
        use(rows[0])


def keep(name: str, key: str) -> None:
    """Within a change callback: put a widget's value into the address."""
    session.set_filters(**{name: str(st.session_state[key])})


def tail(name: str, most: int = 40) -> str:
    """A long name by its end, which is what tells names apart; the CSV has the whole of it."""
    shown = shorten(name, 2000)
    return shown if len(shown) <= most else "…" + shown[-(most - 1) :]


def inert_cell(text: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def spark(histograms: Any) -> list[list[int] | None]:
    """Counts for a sparkline column, ``None`` where there are none."""
    return [list(counts) if isinstance(counts, list) else None for counts in histograms]
