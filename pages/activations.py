"""Activations: what happened inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from app import format_text, session
from app.components import activation_compare, activation_findings, activation_watch, empty, runs
from app.components.activation_panel import panel
from app.components.activation_top import choose_top, show_top
from app.components.trace_steps import live, running
from app.components.value_table import value_table
from app.services import tracing
from core.store.traces import TraceRecord

Pick = Callable[[str, int], None]


def draw() -> None:
    """Draw the page."""
    artifact, _ = session.current_model()
    job = running(artifact)
    if job is not None:
        live(job)
    record = runs.current_run(artifact)
    if record is None:
        _none_yet()
        return
    history = tracing.history(session.actor(), artifact)
    top = _head(record, history)
    pick = partial(_choose, record.id)
    activation_findings.headline(record.findings)
    activation_watch.watch_list(record.id, pick)
    show_top(top, artifact, record, history, on_pick=pick)
    if not session.view().value:
        value_table(record.id, narrow=False, on_pick=pick)
        st.caption("Click a row, a point or a finding to see a value.")
        return
    left, right = st.columns([6, 6], gap="medium")
    with left:
        value_table(record.id, narrow=True, on_pick=pick)
    with right:
        panel(artifact, record, history)


def _none_yet() -> None:
    empty.empty(
        ":material/stacked_line_chart:",
        "The model was not run yet",
        "A trace captures every value between input and output.",
    )
    with st.container(horizontal=True, horizontal_alignment="center"):
        if st.button("Go to Trace", key="activations-trace", type="primary", icon=":material/play_circle:"):
            session.go("trace")


def _head(record: TraceRecord, history: Sequence[TraceRecord]) -> str:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        top = choose_top(len(record.findings), format_text.plural(len(record.findings), "finding"))
        shown = [r for r in history if r.values]
        if len(shown) > 1:
            names, ids = activation_compare.titles(history), [r.id for r in shown]
            st.selectbox(
                "Run", ids, ids.index(record.id) if record.id in ids else 0, names.__getitem__,
                key=f"activations-run-{record.id}", label_visibility="collapsed", width=230,
                on_change=_change_run, args=(record.id,),
            )  # fmt: skip
        st.caption(f"{runs.ICONS.get(record.status, '')} {runs.sentence(record)}", width="content")
    return top


def _change_run(before: str) -> None:
    session.set_view(trace=st.session_state[f"activations-run-{before}"], step="")


def _choose(trace: str, value: str, step: int) -> None:
    session.set_view(trace=trace, value=value, step=str(step) if step else "")


draw()
