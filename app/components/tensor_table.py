"""The table of stored tensors, a page at a time from the database, and its CSV."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import paged_table
from app.components.paged_table import NUMERIC, PAGE, ROW, spark, tail
from app.services import tensors

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
        on_select=lambda: paged_table.picked(key, lambda row: on_pick(int(indexes[row]))),
        selection_mode="single-row",
        column_config=columns(has_statistics(found.rows)),
    )
    paged_table.pager(paging, found, total)


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
        shown["histogram"] = spark(rows["histogram"])
        for name in NUMERIC:
            shown[name] = rows[name]
        shown["zeros"] = 100 * rows["zero"] / rows["count"]
        shown["odd"] = rows["nan"] + rows["inf"]
    shown["role"] = rows["role"]
    return shown


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
        for name in NUMERIC:
            shown[name] = config.NumberColumn(name.capitalize(), format="%.4g", width=80)
        shown["zeros"] = config.NumberColumn("Zeros", format="%.1f %%", width=75)
        shown["odd"] = config.NumberColumn("NaN, Inf", width=75)
    return shown


def _filters(artifact: str, asked: dict[str, Any], total: int) -> None:
    kinds = list(dict.fromkeys(tensors.facets(session.actor(), artifact)["dtype"]))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        paged_table.name_filter("tensors", asked["text"])
        options = ["", *kinds]
        st.selectbox(
            "Type", options, options.index(asked["dtype"]) if asked["dtype"] in options else 0,
            lambda kind: kind or "All types", key="tensors-dtype", label_visibility="collapsed", width=150,
            on_change=paged_table.keep, args=("tensors__dtype", "tensors-dtype"),
        )  # fmt: skip
        paged_table.order("tensors", SORTS, asked["sort"], asked["descending"])
        paged_table.csv_button("tensors", "tensors.csv", lambda: csv(artifact, asked), total, "tensor")


def csv(artifact: str, asked: dict[str, Any]) -> str:
    """The whole filtered list as CSV."""
    actor = session.actor()
    return paged_table.csv_of(
        lambda start: tensors.page(actor, artifact, **asked, start=start, limit=10_000), ("name",)
    )
