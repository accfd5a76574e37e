"""Activations: what happened inside."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import format_text, session
from app.components import empty, runs
from app.components.depth import choose_chart, depth_view
from app.components.trace_steps import live, running
from app.components.value_table import value_table
from app.plain_text import mono, plain
from app.services import tracing
from core.errors import NotFound
from core.store.traces import TraceRecord


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
    shown = _head(artifact, record)
    pick = partial(_choose, record.id)
    depth_view(record.id, shown, session.view().value, on_pick=pick)
    if not session.view().value:
        value_table(record.id, narrow=False, on_pick=pick)
        st.caption("Click a row or a point to see a value.")
        return
    left, right = st.columns([8, 5], gap="medium")
    with left:
        value_table(record.id, narrow=True, on_pick=pick)
    with right:
        _value(record)


def _none_yet() -> None:
    empty.empty(
        ":material/stacked_line_chart:",
        "The model was not run yet",
        "A trace captures every value between input and output.",
    )
    with st.container(horizontal=True, horizontal_alignment="center"):
        if st.button("Go to Trace", key="activations-trace", type="primary", icon=":material/play_circle:"):
            session.go("trace")


def _head(artifact: str, record: TraceRecord) -> str:
    history = [r for r in tracing.history(session.actor(), artifact) if r.values]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{runs.ICONS.get(record.status, '')} {runs.sentence(record)}", width="content")
        st.space("stretch")
        if len(history) > 1:
            ids = [r.id for r in history]
            names = {
                r.id: f"Run {len(history) - place}: {', '.join(i.source for i in r.inputs)[:60] or 'no inputs'}"
                for place, r in enumerate(history)
            }
            st.selectbox(
                "Run", ids, ids.index(record.id) if record.id in ids else 0, names.__getitem__,
                key=f"activations-run-{record.id}", label_visibility="collapsed", width=260,
                on_change=_change_run, args=(record.id,),
            )  # fmt: skip
        return choose_chart()


def _change_run(before: str) -> None:
    session.set_view(trace=st.session_state[f"activations-run-{before}"], step="")


def _choose(trace: str, value: str, step: int) -> None:
    session.set_view(trace=trace, value=value, step=str(step) if step else "")


def _value(record: TraceRecord) -> None:
    view = session.view()
    try:
        value = tracing.described(session.actor(), record.id, view.value, int(view.step or 0))
    except NotFound:
        st.caption("This run has no such value. Click a row to see one.")
        return
    with st.container(border=True, key="activation"):
        st.markdown(f"**{mono(value.name, 80)}**")
        runs.activation(record, value, f"value-{value.id}-{value.step}", height=300)
        if value.node and st.button(
            plain("Show its operator in the graph"), key=f"value-node-{value.id}", icon=":material/account_tree:",
            type="tertiary",
        ):  # fmt: skip
            session.go("graph", selection=value.node, inside="", trace=record.id)
        if not value.node:
            st.caption(f"A model input of {format_text.shape(value.shape)}.")


draw()
