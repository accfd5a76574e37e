"""The tables of a query: pick one, see its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd
import streamlit as st

from app import format_text
from app.services.sql import TableInfo

_HEIGHT: Final = 258


def schema(tables: Sequence[TableInfo]) -> None:
    """Draw the schema browser."""
    names = {table.name: table for table in tables}
    chosen = st.selectbox(
        "Table", list(names), key="sql-table", label_visibility="collapsed", index=list(names).index("tensors"),
        format_func=lambda name: f"{name} · {format_text.plural(names[name].rows, 'row')}",
    )  # fmt: skip
    table = names[chosen]
    st.dataframe(
        pd.DataFrame(table.columns, columns=["column", "type"]),
        key=f"sql-schema-{chosen}", hide_index=True, row_height=26, height=_HEIGHT,
        column_config={"type": st.column_config.TextColumn(width="small")},
    )  # fmt: skip
    st.caption(f"A row is {table.about}.")
