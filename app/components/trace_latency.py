"""Where the time of a run went: by type, by block, by operator, and against what moved."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import format_text, session, theme
from app.components import charts
from app.components.charts import inert
from app.components.paged_table import tail
from app.plain_text import plain
from app.services import timings
from app.theme import Palette
from core.store.traces import TraceRecord

ROW: Final = 30
_BARS: Final = 12
_BY: Final = {"op_type": "By type", "block": "By block", "roofline": "Roofline"}


def latency(artifact: str, record: TraceRecord, height: int) -> None:
    """Draw totals on the left, every operator on the right; a click on an operator leads to the graph."""
    rows: Any = timings.operators(session.actor(), artifact, record.id)
    if rows.empty:
        st.caption("The operators of this run were not timed.")
        return
    whole = float(rows["latency_us"].sum())
    left, right = st.columns(2, gap="medium")
    with left:
        by = st.segmented_control(
            "Times", list(_BY), default="op_type", required=True, format_func=_BY.__getitem__, key="latency-by",
            label_visibility="collapsed",
        )  # fmt: skip
        if by == "roofline":
            _roofline(rows, record.id, height - 40)
        else:
            _totals(rows, by, record.id, height - 40)
    with right:
        level = record.latency_optimisation or "off"
        st.caption(
            f"{format_text.seconds(whole / 1e6)} in all: medians of repeated runs, optimisation {plain(level, 60)}"
        )
        _operators(rows, whole, record.id, height - 20)


def _totals(rows: Any, by: str, trace: str, height: int) -> None:
    totals = rows.groupby(by)["latency_us"].sum().sort_values(ascending=False).head(_BARS)
    figure = charts.bars(
        [str(name) for name in totals.index], (totals / 1000).tolist(), theme.palette(), axis="milliseconds", unit=" ms"
    )
    theme.draw(figure, height=height, key=f"latency-{by}-{trace}", alt=f"Time {_BY[by].lower()}")


def _roofline(rows: Any, trace: str, height: int) -> None:
    known = rows[rows["achieved"].notna()]
    if known.empty:
        st.caption("No operator of this run has a known number of multiplications.")
        return
    key = f"roofline-{trace}"
    ids = known["id"].tolist()
    event: Any = theme.draw(
        roofline(known, theme.palette()), height=height, key=key, alt="Achieved speed by arithmetic intensity",
        on_select="rerun", selection_mode="points",
    )  # fmt: skip
    st.caption("Lines: the fastest rate and the fastest transfer that any operator of this run reached.")
    points = event.selection.points
    if points and points[0]["curve_number"] == 0:
        session.go("graph", selection=str(ids[int(points[0]["point_index"])]), inside="")


def roofline(known: pd.DataFrame, colours: Palette) -> go.Figure:
    """Operators by FLOP a byte and GFLOP/s on log axes, under the best that this run reached."""
    x, y = known["intensity"].to_numpy(float), known["achieved"].to_numpy(float) / 1e9
    figure = go.Figure(
        go.Scatter(
            x=x, y=y, mode="markers", marker={"color": colours.accent, "size": 7, "opacity": 0.8},
            text=[inert(f"{op} {name}") for op, name in zip(known["op_type"], known["name"], strict=True)],
            customdata=known["latency_us"] / 1000,
            hovertemplate="%{text}<br>%{x:.3g} FLOP/byte, %{y:.3g} GFLOP/s<br>%{customdata:.3f} ms<extra></extra>",
        )
    )  # fmt: skip
    top, slope = float(y.max()), float((y / x).max())
    knee = top / slope
    line: dict[str, Any] = {"color": colours.muted, "width": 1, "dash": "dot"}
    ends = [float(x.min()), knee, max(float(x.max()), knee)]
    figure.add_scatter(
        x=ends, y=[slope * ends[0], top, top], mode="lines", line=line, hoverinfo="skip", showlegend=False
    )
    figure.update_xaxes(title="arithmetic intensity, FLOP a byte", type="log")
    figure.update_yaxes(title="GFLOP/s", type="log")
    return figure


def _operators(rows: Any, whole: float, trace: str, height: int) -> None:
    frame = pd.DataFrame(
        {
            "op": rows["op_type"],
            "name": [tail(name, 40) for name in rows["name"]],
            "time": rows["latency_us"] / 1000,
            "share": 100 * rows["latency_us"] / whole if whole else 0.0,
            "gflops": rows["achieved"] / 1e9,
        }
    )
    event: Any = st.dataframe(
        frame, key=f"latency-table-{trace}", hide_index=True, row_height=ROW, height=height, on_select="rerun",
        selection_mode="single-row",
        column_config={
            "op": st.column_config.TextColumn("Operator", width=100),
            "name": st.column_config.TextColumn("Name", width=130),
            "time": st.column_config.NumberColumn("ms", format="%.3f", width=64),
            "share": st.column_config.ProgressColumn("Share", format="%.1f %%", min_value=0, max_value=100, width=100),
            "gflops": st.column_config.NumberColumn("GFLOP/s", format="%.2f", width=70),
        },
    )  # fmt: skip
    if event.selection.rows:
        session.go("graph", selection=str(rows["id"].iloc[event.selection.rows[0]]), inside="")
