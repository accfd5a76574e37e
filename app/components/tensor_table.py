"""The table of stored tensors, a page at a time from the database, and its CSV."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.plain_text import shorten
from app.services import tensors

PAGE: Final = 100
ROW: Final = 32
CSV_ROWS: Final = 1_000_000
SORTS: Final = {
    "": "File order",
    "bytes": "Bytes",
    "elements": "Elements",
    "name": "Name",
    "dtype": "Type",
    "rank": "Rank",
    "absmax": "Largest absolute value",
    "std": "Standard deviation",
    "mean": "Mean",
    "min": "Smallest value",
    "max": "Largest value",
    "zero": "Zeros",
    "nan": "NaN",
    "inf": "Infinite",
}
_NUMERIC: Final = ("min", "max", "mean", "std")


def tensor_table(artifact: str, *, rows_shown: int, on_pick: Callable[[int], None]) -> None:
    """Draw filters, table and paging; a click on a row calls ``on_pick`` with the tensor's index."""
    view = session.view()
    text, dtype = view.filter("tensors.text"), view.filter("tensors.dtype")
    sort, descending = view.filter("tensors.sort"), view.filter("tensors.order") == "down"
    sort = sort if sort in SORTS else ""
    asked: dict[str, Any] = {"sort": sort, "descending": descending, "text": text, "dtype": dtype}
    total = tensors.count(session.actor(), artifact, text=text, dtype=dtype)
    _filters(artifact, asked, total)
    if not total:
        st.caption("No tensor fits these filters.")
        return
    pages = -(-total // PAGE)
    paging = f"tensors-page-{sort}-{descending}-{dtype}-{abs(hash(text))}"
    number = min(int(st.session_state.get(paging, 1)), pages)
    found = tensors.page(session.actor(), artifact, **asked, start=(number - 1) * PAGE, limit=PAGE)
    key = f"tensors-{sort}-{descending}-{dtype}-{abs(hash(text))}-{number}"
    indexes = found.rows["idx"].tolist()
    st.dataframe(
        as_shown(found.rows),
        key=key,
        hide_index=True,
        row_height=ROW,
        height=ROW * (min(len(found.rows), rows_shown) + 1) + 2,
        on_select=lambda: picked(key, lambda row: on_pick(int(indexes[row]))),
        selection_mode="single-row",
        column_config=columns(has_statistics(found.rows)),
    )
    if pages > 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.pagination(pages, key=paging)
            last = found.start + len(found.rows)
            st.caption(f"{found.start + 1:,} to {last:,} of {total:,}")


def picked(key: str, use: Callable[[int], None]) -> None:
    """Within a selection callback: hand on the place of the row that was clicked, if one was."""
    rows = st.session_state[key].selection.rows
    if rows:
        use(rows[0])


def as_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with shapes and sizes as people read them."""
    shown = pd.DataFrame(
        {
            "name": [tail(name) for name in rows["name"]],
            "dtype": rows["dtype"],
            "shape": [format_text.shape(list(shape)) for shape in rows["shape"]],
            "size": [format_text.size(int(n)) for n in rows["bytes"]],
        }
    )
    if has_statistics(rows):
        shown["histogram"] = [list(counts) if isinstance(counts, list) else None for counts in rows["histogram"]]
        for name in _NUMERIC:
            shown[name] = rows[name]
        shown["zeros"] = 100 * rows["zero"] / rows["count"]
        shown["odd"] = rows["nan"] + rows["inf"]
    shown["role"] = rows["role"]
    return shown


def tail(name: str, most: int = 40) -> str:
    """A long name by its end, which is what tells names apart; the CSV has the whole of it."""
    shown = shorten(name, 2000)
    return shown if len(shown) <= most else "…" + shown[-(most - 1) :]


def has_statistics(rows: pd.DataFrame) -> bool:
    """Whether the statistics of any row were taken."""
    return any(value is not None for value in rows["histogram"])


def columns(measured: bool) -> dict[str, Any]:
    """Column titles and formats; statistics only where some were taken."""
    config = st.column_config
    shown: dict[str, Any] = {
        "name": config.TextColumn("Tensor", width=260 if measured else "large"),
        "dtype": config.TextColumn("Type", width=80),
        "shape": config.TextColumn("Shape", width=130),
        "size": config.TextColumn("Size", width=80, alignment="right"),
        "role": config.TextColumn("Role", width=90),
    }
    if measured:
        shown["histogram"] = config.BarChartColumn("Histogram", width=110, y_min=0)
        for name in _NUMERIC:
            shown[name] = config.NumberColumn(name.capitalize(), format="%.4g", width=80)
        shown["zeros"] = config.NumberColumn("Zeros", format="%.1f %%", width=75)
        shown["odd"] = config.NumberColumn("NaN, Inf", width=75)
    return shown


def _filters(artifact: str, asked: dict[str, Any], total: int) -> None:
    kinds = list(dict.fromkeys(tensors.facets(session.actor(), artifact)["dtype"]))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Name holds", asked["text"], key="tensors-text", icon=":material/search:", placeholder="part of a name",
            label_visibility="collapsed", on_change=_keep, args=("tensors__text", "tensors-text"),
        )  # fmt: skip
        options = ["", *kinds]
        st.selectbox(
            "Type", options, options.index(asked["dtype"]) if asked["dtype"] in options else 0,
            lambda kind: kind or "All types", key="tensors-dtype", label_visibility="collapsed", width=150,
            on_change=_keep, args=("tensors__dtype", "tensors-dtype"),
        )  # fmt: skip
        st.selectbox(
            "Sort by", list(SORTS), list(SORTS).index(asked["sort"]), SORTS.__getitem__, key="tensors-sort",
            label_visibility="collapsed", width=200, on_change=_keep, args=("tensors__sort", "tensors-sort"),
        )  # fmt: skip
        st.segmented_control(
            "Order", ["up", "down"], default="down" if asked["descending"] else "up", required=True,
            format_func=lambda way: ":material/arrow_upward:" if way == "up" else ":material/arrow_downward:",
            key="tensors-order", label_visibility="collapsed", on_change=_keep,
            args=("tensors__order", "tensors-order"),
        )  # fmt: skip
        st.download_button(
            "CSV", lambda: csv(artifact, asked), file_name="tensors.csv", mime="text/csv", key="tensors-csv",
            icon=":material/download:", on_click="ignore", disabled=not total,
            help=f"The {format_text.plural(total, 'tensor')} of this list",
        )  # fmt: skip


def csv(artifact: str, asked: dict[str, Any]) -> str:
    """The whole filtered list as CSV, fetched in pages; histograms are left out."""
    out = io.StringIO()
    for place, rows in enumerate(_pages(artifact, asked)):
        kept = rows.drop(columns=["histogram", "edges"], errors="ignore")
        kept["name"] = [inert_cell(name) for name in kept["name"]]
        kept.to_csv(out, index=False, header=place == 0)
    return out.getvalue()


def inert_cell(text: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _pages(artifact: str, asked: dict[str, Any]) -> Iterator[pd.DataFrame]:
    actor, start = session.actor(), 0
    while start < CSV_ROWS:
        found = tensors.page(actor, artifact, **asked, start=start, limit=10_000)
        yield found.rows
        start += len(found.rows)
        if found.next is None:
            return


def _keep(name: str, key: str) -> None:
    session.set_filters(**{name: str(st.session_state[key])})
