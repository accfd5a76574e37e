"""The values of a run from input to output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st

from app import session, theme
from app.components import charts
from app.services import tracing

HEIGHT: Final = 210
LOW: Final = 130
"""Height where a value is shown below."""

MASKS: Final = 1e30
"""Magnitudes from here on are left out of the chart: masks write them for minus infinity."""

POINTS: Final = 3000
"""Values drawn along depth; longer runs are thinned out evenly."""

_ALT: Final = {"magnitude": "Magnitude", "spread": "Spread"}
_QUANTILES: Final = {"0.05": "q050", "0.25": "q250", "0.5": "q500", "0.75": "q750", "0.95": "q950"}


def depth_view(
    trace: str, shown: str, selected: str, height: int = HEIGHT, *, on_pick: Callable[[str, int], None]
) -> None:
    """Draw one of the charts; a click on a point calls ``on_pick`` with the value's id and step."""
    rows: Any = tracing.depth(session.actor(), trace)
    rows = rows[rows["min"].notna() & (rows["dtype"] != "bool")]
    if len(rows) > POINTS:
        rows = rows.iloc[np.linspace(0, len(rows) - 1, POINTS).astype(int)]
    if rows.empty:
        st.caption("No value of this run has statistics.")
        return
    places = rows["row"][rows["id"] == selected]
    marked = int(places.iloc[0]) if len(places) else None
    order, names = rows["row"].tolist(), rows["name"].tolist()
    colours = theme.palette()
    if shown == "magnitude":
        rms = rows["l2"] / np.sqrt((rows["count"] - rows["nan"] - rows["inf"]).clip(lower=1))
        usual = rows["absmax"] < MASKS
        figure = charts.magnitude(
            order, names, _plain(rms.where(usual)), _plain(rows["absmax"].where(usual)), colours, marked=marked
        )
    else:
        columns = {key: _plain(rows[name]) for key, name in _QUANTILES.items()}
        figure = charts.spread(order, names, columns, colours, marked=marked)
    key = f"depth-{shown}-{trace}"
    known = {row: (str(value), int(step)) for row, value, step in zip(order, rows["id"], rows["step"], strict=True)}

    def clicked() -> None:
        points = st.session_state[key].selection.points
        hit = known.get(int(points[0]["x"])) if points else None
        if hit is not None:
            on_pick(*hit)

    if height == LOW:
        figure.update_xaxes(title=None)
    theme.draw(
        figure, height=height, key=key, alt=f"{_ALT[shown]} of the values along the run",
        legend=True, on_select=clicked, selection_mode="points",
    )  # fmt: skip


def _plain(column: Any) -> list[float | None]:
    return [None if pd.isna(value) else float(value) for value in column]
