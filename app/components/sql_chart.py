"""A quick chart of a table: what stands along the axis, and which numbers."""

from __future__ import annotations

from typing import Final, cast

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import theme
from app.components.charts import inert

POINTS: Final = 5000
"""Rows that are drawn, the first ones."""

BARS: Final = 200
KINDS: Final = {"bar": "Bars", "line": "Line", "scatter": "Points", "histogram": "Histogram"}
_HEIGHT: Final = 420


def chart(rows: pd.DataFrame, key: str) -> None:
    """Draw the choices and the chart they make; a sentence where there is nothing to draw."""
    numbers = numeric(rows)
    if rows.empty or not numbers:
        st.caption("A chart needs at least one column of numbers.")
        return
    columns = [str(name) for name in rows.columns if not _nested(_column(rows, str(name)))]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        kind = st.segmented_control(
            "Chart", list(KINDS), format_func=KINDS.__getitem__, default=first_kind(rows), required=True,
            key=f"sql-kind-{key}",
        )  # fmt: skip
        if kind == "histogram":
            along = ""
        else:
            along = st.selectbox("Along", columns, columns.index(first_along(rows)), key=f"sql-along-{key}", width=220)
        usual = next((name for name in numbers if name != along), numbers[0])
        shown = st.multiselect("Numbers", numbers, [usual], key=f"sql-numbers-{key}", max_selections=6, width=360)
        log = st.toggle("Log", key=f"sql-log-{key}")
    if not shown:
        st.caption("Choose at least one column of numbers.")
        return
    most = BARS if kind == "bar" else POINTS
    if len(rows) > most and kind != "histogram":
        st.caption(f"The first {most:,} of {len(rows):,} rows are drawn.")
        rows = rows.head(most)
    figure = draw(rows, kind, along, shown, log=log)
    theme.draw(
        figure, height=_HEIGHT, key=f"sql-chart-{key}", legend=len(shown) > 1,
        alt=f"{KINDS[kind]} of {', '.join(inert(name, 40) for name in shown)}",
    )  # fmt: skip


def numeric(rows: pd.DataFrame) -> list[str]:
    """Names of the columns that hold numbers."""
    return [
        str(n) for n in rows.columns if pd.api.types.is_numeric_dtype(rows[n]) and not _flags(_column(rows, str(n)))
    ]


def first_along(rows: pd.DataFrame) -> str:
    """The first column of texts or dates, else the first one."""
    flat = [str(name) for name in rows.columns if not _nested(_column(rows, str(name)))]
    numbers = set(numeric(rows))
    return next((name for name in flat if name not in numbers), flat[0])


def first_kind(rows: pd.DataFrame) -> str:
    """Bars for names and dates as a line; of numbers alone, points or their histogram."""
    numbers, along = numeric(rows), first_along(rows)
    if along not in numbers:
        return "line" if pd.api.types.is_datetime64_any_dtype(rows[along]) else "bar"
    if len(numbers) < 2:
        return "histogram"
    return "line" if rows[along].is_monotonic_increasing else "scatter"


def draw(rows: pd.DataFrame, kind: str, along: str, shown: list[str], *, log: bool) -> go.Figure:
    """The figure; every text of a row and of a column name is inert."""
    colours, figure = theme.palette(), go.Figure()
    x = None if kind == "histogram" else _axis(_column(rows, along))
    for place, name in enumerate(shown):
        label, colour = inert(name, 40), colours.accent if len(shown) == 1 else colours.categories[place]
        y = rows[name].astype("float64")
        if kind == "histogram":
            figure.add_histogram(x=y, name=label, marker={"color": colour}, nbinsx=60, opacity=0.8)
        elif kind == "bar":
            figure.add_bar(x=x, y=y, name=label, marker={"color": colour, "line": {"width": 0}})
        else:
            mode = "lines+markers" if kind == "line" else "markers"
            figure.add_scatter(x=x, y=y, name=label, mode=mode, line={"color": colour}, marker={"color": colour})
    figure.update_layout(barmode="overlay" if kind == "histogram" else "group", bargap=0.15)
    of_rows = kind == "histogram"
    figure.update_xaxes(title=inert(shown[0] if of_rows and len(shown) == 1 else along, 40))
    figure.update_yaxes(
        title="rows" if of_rows else inert(shown[0], 40) if len(shown) == 1 else "", type="log" if log else "linear"
    )
    return figure


def _column(rows: pd.DataFrame, name: str) -> pd.Series:
    return cast("pd.Series", rows[name])


def _axis(column: pd.Series) -> list[object]:
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column.tolist()
    return [inert(str(item), 48) for item in column]


def _flags(column: pd.Series) -> bool:
    return pd.api.types.is_bool_dtype(column)


def _nested(column: pd.Series) -> bool:
    return column.dtype == object and any(isinstance(item, list | dict) for item in column.head(20))
