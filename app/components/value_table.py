"""The table of all values of a run, a page at a time from the database, and its CSV."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components.tensor_table import inert_cell, picked, tail
from app.services import tracing

PAGE: Final = 100
ROW: Final = 32
_ROWS: Final = 12
CSV_ROWS: Final = 1_000_000
SORTS: Final = {
    "": "Order of execution",
    "absmax": "Largest absolute value",
    "std": "Standard deviation",
    "mean": "Mean",
    "min": "Smallest value",
    "max": "Largest value",
    "zero": "Zeros",
    "nan": "NaN",
    "inf": "Infinite",
    "count": "Elements",
    "name": "Name",
}
_NUMERIC: Final = ("min", "max", "mean", "std")


_NARROW: Final = ("name", "histogram", "min", "max", "mean", "std", "zeros", "status", "shape", "dtype")


def value_table(trace: str, *, narrow: bool, on_pick: Callable[[str, int], None]) -> None:
    """Draw filters, table and paging; a click on a row calls ``on_pick`` with the value's id and step."""
    view = session.view()
    sort, descending = view.filter("values.sort"), view.filter("values.order") == "down"
    asked: dict[str, Any] = {
        "sort": sort if sort in SORTS else "", "descending": descending, "text": view.filter("values.text"),
    }  # fmt: skip
    mark = f"{trace}-{asked['sort']}-{descending}-{abs(hash(asked['text']))}"
    start = (max(1, int(st.session_state.get(f"values-page-{mark}", 1))) - 1) * PAGE
    found = tracing.values(session.actor(), trace, **asked, start=start, limit=PAGE)
    _filters(trace, asked, found.total)
    if not found.total:
        st.caption("No value has this in its name.")
        return
    key = f"values-{mark}-{start}"
    ids, steps = found.rows["id"].tolist(), found.rows["step"].tolist()
    st.dataframe(
        as_shown(found.rows),
        key=key,
        hide_index=True,
        row_height=ROW,
        height=ROW * (min(len(found.rows), _ROWS) + 1) + 2,
        on_select=lambda: picked(key, lambda row: on_pick(str(ids[row]), int(steps[row]))),
        selection_mode="single-row",
        column_order=_NARROW if narrow else None,
        column_config=columns(narrow),
    )
    if found.total > PAGE:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.pagination(-(-found.total // PAGE), key=f"values-page-{mark}")
            st.caption(f"{found.start + 1:,} to {found.start + len(found.rows):,} of {found.total:,}")


def as_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows as people read them; a status for what is not an ordinary number."""
    return pd.DataFrame(
        {
            "name": [tail(name) for name in rows["name"]],
            "shape": [format_text.shape(list(shape)) for shape in rows["shape"]],
            "dtype": rows["dtype"],
            "histogram": [list(counts) if isinstance(counts, list) else None for counts in rows["histogram"]],
            **{name: rows[name] for name in _NUMERIC},
            "zeros": 100 * rows["zero"] / rows["count"].where(rows["count"] > 0),
            "status": [status(row) for row in rows.to_dict("records")],
        }
    )


def status(row: dict[str, Any]) -> str:
    """What is noteworthy about one value, in a word or two."""
    if pd.isna(row["count"]):
        return "no statistics"
    if row["nan"] or row["inf"]:
        return "NaN" if row["nan"] else "infinite"
    if row["count"] == 0:
        return "empty"
    if row["zero"] == row["count"]:
        return "all zero"
    if row["count"] > 1 and row["min"] == row["max"]:
        return "constant"
    return "" if row["stored"] else "not stored"


def columns(narrow: bool = False) -> dict[str, Any]:
    """Column titles and formats."""
    config = st.column_config
    return {
        "name": config.TextColumn("Value", width=190 if narrow else 290),
        "shape": config.TextColumn("Shape", width=120),
        "dtype": config.TextColumn("Type", width=70),
        "histogram": config.BarChartColumn("Histogram", width=110, y_min=0),
        **{name: config.NumberColumn(name.capitalize(), format="%.4g", width=75) for name in _NUMERIC},
        "zeros": config.NumberColumn("Zeros", format="%.1f %%", width=75),
        "status": config.TextColumn("Status", width=95),
    }


def _filters(trace: str, asked: dict[str, Any], total: int) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Name holds", asked["text"], key="values-text", icon=":material/search:", placeholder="part of a name",
            label_visibility="collapsed", on_change=_keep, args=("values__text", "values-text"),
        )  # fmt: skip
        st.selectbox(
            "Sort by", list(SORTS), list(SORTS).index(asked["sort"]), SORTS.__getitem__, key="values-sort",
            label_visibility="collapsed", width=200, on_change=_keep, args=("values__sort", "values-sort"),
        )  # fmt: skip
        st.segmented_control(
            "Order", ["up", "down"], default="down" if asked["descending"] else "up", required=True,
            format_func=lambda way: ":material/arrow_upward:" if way == "up" else ":material/arrow_downward:",
            key="values-order", label_visibility="collapsed", on_change=_keep, args=("values__order", "values-order"),
        )  # fmt: skip
        st.download_button(
            "CSV", lambda: csv(trace, asked), file_name="activations.csv", mime="text/csv", key="values-csv",
            icon=":material/download:", on_click="ignore", disabled=not total,
            help=f"The {format_text.plural(total, 'value')} of this list",
        )  # fmt: skip


def csv(trace: str, asked: dict[str, Any]) -> str:
    """The whole filtered list as CSV, fetched in pages; histograms are left out."""
    out, start = io.StringIO(), 0
    while start < CSV_ROWS:
        found = tracing.values(session.actor(), trace, **asked, start=start, limit=10_000)
        kept = found.rows.drop(columns=["histogram", "edges"], errors="ignore")
        kept["name"] = [inert_cell(name) for name in kept["name"]]
        kept["reason"] = [inert_cell(reason) for reason in kept["reason"]]
        kept.to_csv(out, index=False, header=start == 0)
        start += len(found.rows)
        if found.next is None:
            break
    return out.getvalue()


def _keep(name: str, key: str) -> None:
    session.set_filters(**{name: str(st.session_state[key])})
