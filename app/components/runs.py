"""Which run the pages talk about, and one activation of it."""

from __future__ import annotations

from typing import Final

import numpy as np
import streamlit as st

from app import format_text, session
from app.components import array_view
from app.plain_text import mono, plain
from app.services import tracing
from core.store.traces import TraceRecord
from core.trace.types import TracedValue

WORDS: Final = {
    "complete": "complete",
    "partial": "partial",
    "failed": "failed",
    "cancelled": "stopped",
    "timeout": "out of time",
    "memory": "out of memory",
}
ICONS: Final = {
    "complete": ":material/check_circle:",
    "partial": ":material/incomplete_circle:",
    "failed": ":material/error:",
    "cancelled": ":material/stop_circle:",
    "timeout": ":material/timer_off:",
    "memory": ":material/memory_alt:",
}


def current_run(artifact: str) -> TraceRecord | None:
    """The run in the address if it is one of this model, else the newest that left values."""
    history = tracing.history(session.actor(), artifact)
    wanted = session.view().trace
    chosen = next((record for record in history if record.id == wanted), None)
    return chosen or next((record for record in history if record.values), None)


def sentence(record: TraceRecord) -> str:
    """How a run ended, in one sentence of Markdown."""
    spent = f"{format_text.seconds(record.elapsed_s)}, {format_text.size(record.peak_rss_bytes)} at most"
    if record.status == "complete":
        return f"Complete: {format_text.plural(record.values, 'value')} in {spent}."
    kept = f" {format_text.plural(record.values, 'value')} were kept." if record.values else ""
    reason = plain(record.reason, 600)
    return f"{WORDS.get(record.status, record.status).capitalize()} after {spent}: {reason}{_stop(reason)}{kept}"


def activation(record: TraceRecord, value: TracedValue, key: str, *, height: int = 320) -> None:
    """Facts and pictures of one value of a run."""
    st.caption(
        f"{mono(value.dtype)} {plain(format_text.shape(value.shape))}" + (f", step {value.step}" if value.step else "")
    )
    if value.stats is None:
        st.caption(plain(value.reason, 400) or "It has no statistics.")
    else:
        array_view.facts(value.stats)
    views = ["Picture", "Histogram"] if value.stored else ["Histogram"]
    row = st.container(horizontal=True, vertical_alignment="center", gap="small")
    shown = row.segmented_control(
        "View", views, default=views[0], required=True, key=f"{key}-view", label_visibility="collapsed"
    )
    if shown == "Histogram":
        if value.stats is not None:
            array_view.histogram(value.stats, key, height=height)
        if not value.stored:
            st.caption(_not_stored(value))
        return
    if not tracing.kept(session.actor(), record.id):
        st.caption("The stored values of this run were removed to make room. Run it again to see them.")
        return

    def fetch(index: array_view.Index) -> np.ndarray:
        return np.asarray(tracing.value(session.actor(), record.id, value.id, value.step))[index]

    array_view.picture(fetch, value.shape, key, height=height, controls=row)


def _not_stored(value: TracedValue) -> str:
    reason = plain(value.reason, 400) or "Beyond the store limit of the run."
    return f"Only its statistics were kept. {reason}{_stop(reason)}"


def _stop(text: str) -> str:
    return "" if text.endswith((".", "\\.")) else "."
