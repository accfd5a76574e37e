"""The rows a query gave: a table to sort and fetch, and a chart."""

from __future__ import annotations

import io
from typing import Any, Final

import pandas as pd
import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
import streamlit as st

from app import format_text
from app.components.paged_table import inert_cell
from app.components.sql_chart import chart
from app.services.tables import frame
from core.store.sql import SqlResult

_arrow: Final[Any] = pa
_ROW: Final = 30
_TALLEST: Final = 16


def result(found: SqlResult, key: str) -> None:
    """Draw the result; ``key`` tells results apart."""
    rows = _shown(found.rows)
    table, picture = st.tabs(["Table", "Chart"], key=f"sql-tabs-{key}", on_change="rerun")
    with table, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        amount = format_text.plural(len(rows), "row")
        cut = " · only the first ones: the query has more" if found.cut else ""
        st.caption(f"{amount} in {format_text.seconds(found.seconds)}{cut}", width="content")
        st.space("stretch")
        _downloads(found, rows, key)
    with table:
        if rows.empty:
            st.caption("No row fits this query.")
        st.dataframe(
            rows, key=f"sql-rows-{key}", hide_index=True, row_height=_ROW,
            height=_ROW * (min(len(rows), _TALLEST) + 1) + 2,
        )  # fmt: skip
    if picture.open:
        with picture:
            chart(rows, key)


def _shown(rows: Any) -> pd.DataFrame:
    """As a data frame whose decimals are numbers and whose columns have names of their own."""
    names = list[str]()
    for name in rows.column_names:
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
    rows = rows.rename_columns(names)
    for place, field in enumerate(rows.schema):
        if _arrow.types.is_decimal(field.type):
            rows = rows.set_column(place, field.name, rows.column(place).cast(_arrow.float64()))
    return frame(rows)


def _downloads(found: SqlResult, rows: pd.DataFrame, key: str) -> None:
    for label, make, ending, mime in (
        ("CSV", lambda: csv(rows), "csv", "text/csv"),
        ("Parquet", lambda: parquet(found.rows), "parquet", "application/vnd.apache.parquet"),
    ):
        st.download_button(
            label, make, file_name=f"query.{ending}", mime=mime, key=f"sql-{ending}-{key}", icon=":material/download:",
            on_click="ignore", disabled=rows.empty,
        )  # fmt: skip


def csv(rows: pd.DataFrame) -> str:
    """The rows as CSV in which no text is a formula."""
    out = rows.copy()
    for name in out.columns:
        if out[name].dtype == object or isinstance(out[name].dtype, pd.StringDtype):
            out[name] = [inert_cell(item) if isinstance(item, str) else item for item in out[name]]
    return out.to_csv(index=False)


def parquet(rows: Any) -> bytes:
    """The rows as a Parquet file, types kept."""
    import pyarrow.parquet as writer  # pyright: ignore[reportMissingTypeStubs]

    out, module = io.BytesIO(), writer
    write: Any = module.write_table  # pyright: ignore[reportUnknownMemberType]
    write(rows, out)
    return out.getvalue()
