"""The upper half of the Activations page: the run as a whole, one chart or table at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from app import session
from app.components import activation_compare, activation_findings, depth, trace_latency, trace_memory
from core.store.traces import TraceRecord

_TOPS: Final = {
    "magnitude": "Magnitude",
    "spread": "Spread",
    "latency": "Latency",
    "memory": "Memory",
    "findings": "Findings",
    "runs": "Two runs",
}


def choose_top(findings: int, words: str) -> str:
    """Ask what to show of the run as a whole; the choice is kept in the address."""
    wanted = session.view().filter("activations.top")
    names = _TOPS | {"findings": words if findings else "Findings"}
    return st.segmented_control(
        "Of the whole run", list(names), default=wanted if wanted in names else "magnitude", required=True,
        format_func=names.__getitem__, key="activations-top", label_visibility="collapsed", on_change=_keep,
    )  # fmt: skip


def show_top(
    shown: str, artifact: str, record: TraceRecord, history: Sequence[TraceRecord], *,
    on_pick: Callable[[str, int], None],
) -> None:  # fmt: skip
    """Draw it; a click on a point or row calls ``on_pick`` with the value's id and step."""
    if shown == "findings":
        activation_findings.run_findings(record.id, record.findings, depth.HEIGHT, on_pick)
    elif shown == "latency":
        trace_latency.latency(artifact, record, depth.HEIGHT + 30)
    elif shown == "memory":
        trace_memory.timeline(record, depth.HEIGHT)
    elif shown == "runs":
        activation_compare.two_runs(artifact, record, history, depth.HEIGHT, on_pick)
    else:
        height = depth.HEIGHT if not session.view().value else depth.LOW
        depth.depth_view(record.id, shown, session.view().value, height, on_pick=on_pick)


def _keep() -> None:
    session.set_filters(activations__top=st.session_state["activations-top"])
