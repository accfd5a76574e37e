"""Bytes of values alive over the course of a run."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from app import format_text, session, theme
from app.services import tracing
from app.theme import Palette
from core.store.traces import TraceRecord
from core.trace.types import MemoryStep


def timeline(record: TraceRecord, height: int) -> None:
    """Draw it with its peak; a click on a point leads to the operator in the graph."""
    if not tracing.kept(session.actor(), record.id):
        st.caption("What this run measured was removed to make room. Run it again to see it.")
        return
    steps = tracing.memory(session.actor(), record.id)
    if not steps:
        st.caption("Not every value of this run was made, so how much was alive at a time is not known.")
        return
    peak = max(steps, key=lambda step: step.bytes)
    key = f"memory-{record.id}"
    figure = alive(steps, peak, theme.palette())
    event = theme.draw(
        figure, height=height - 24, key=key, alt="Bytes of values alive along the run", on_select="rerun",
        selection_mode="points",
    )  # fmt: skip
    st.caption(
        f"At most {format_text.size(peak.bytes)} of values alive at once, after operator {peak.step:,} of "
        f"{len(steps):,}; each value is freed after its last use, stored tensors are not counted."
    )
    points = event.selection.points
    if points:
        session.go("graph", selection=steps[int(points[0]["point_index"])].node, inside="")


def alive(steps: Sequence[MemoryStep], peak: MemoryStep, colours: Palette) -> go.Figure:
    """An area over the operators in order of execution, the peak marked."""
    figure = go.Figure(
        go.Scatter(
            x=[step.step for step in steps], y=[step.bytes / 1e6 for step in steps], mode="lines+markers",
            marker={"size": 4}, line={"color": colours.accent, "width": 1.4, "shape": "hv"}, fill="tozeroy",
            hovertemplate="operator %{x}<br>%{y:.3f} MB alive<extra></extra>",
        )
    )  # fmt: skip
    figure.add_vline(x=peak.step, line={"color": colours.text, "width": 1, "dash": "dot"})
    figure.update_xaxes(title="operators in order of execution")
    figure.update_yaxes(title="MB alive", rangemode="tozero")
    return figure
