"""The table of all values of a run, a page at a time from the database, and its CSV."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import paged_table
from app.components.paged_table import NUMERIC, PAGE, ROW, spark, tail
from app.services import tracing

_ROWS: Final = 12
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
    _filters(trace, asked, found.total, csv_too=not narrow)
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
        on_select=lambda: paged_table.picked(key, lambda row: on_pick(str(ids[row]), int(steps[row]))),
        selection_mode="single-row",
        column_order=_NARROW if narrow else None,
        column_config=columns(narrow),
    )
    paged_table.pager(f"values-page-{mark}", found, found.total)


def as_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows as people read them; a status for what is not an ordinary number."""
    return pd.DataFrame(
        {
            "name": [tail(name) for name in rows["name"]],
            "shape": [format_text.shape(list(shape)) for shape in rows["shape"]],
            "dtype": rows["dtype"],
            "histogram": spark(rows["histogram"]),
            **{name: rows[name] for name in NUMERIC},
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
        **{name: config.NumberColumn(name.capitalize(), format="%.4g", width=75) for name in NUMERIC},
        "zeros": config.NumberColumn("Zeros", format="%.1f %%", width=75),
        "status": config.TextColumn("Status", width=95),
    }


def _filters(trace: str, asked: dict[str, Any], total: int, *, csv_too: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        paged_table.name_filter("values", asked["text"])
        paged_table.order("values", SORTS, asked["sort"], asked["descending"])
        if csv_too:
            paged_table.csv_button("values", "activations.csv", lambda: csv(trace, asked), total, "value")


def csv(trace: str, asked: dict[str, Any]) -> str:
    """The whole filtered list as CSV."""
    actor = session.actor()
    return paged_table.csv_of(
        lambda start: tracing.values(actor, trace, **asked, start=start, limit=10_000), ("name", "reason")
    )
