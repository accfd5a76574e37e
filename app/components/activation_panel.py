"""The selected value of the Activations page: its views, its iterations, and what it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from app import format_text, session
from app.components import activation_compare, activation_watch
from app.components.activation_views import activation
from app.plain_text import mono
from app.services import activations, tracing
from core.errors import NotFound
from core.store.traces import TraceRecord
from core.trace.types import TracedValue

HEIGHT: Final = 320


def panel(artifact: str, record: TraceRecord, history: Sequence[TraceRecord]) -> None:
    """Draw the value in the address."""
    view = session.view()
    try:
        value = tracing.described(session.actor(), record.id, view.value, int(view.step or 0))
    except NotFound:
        st.caption("This run has no such value. Click a row to see one.")
        return
    key = f"value-{value.id}-{value.step}"
    with st.container(border=True, key="activation", gap="xsmall"):
        beside = bool(view.filter("beside")) and value.stored
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{mono(value.name, 48)}**", width="content")
            st.space("stretch")
            if value.stored:
                _compare(beside)
            activation_watch.pin(value.id, value.step)
            _close()
        _iterations(record.id, value)
        if beside:
            activation_compare.beside(artifact, record, value, history)
        else:
            activation(artifact, record, value, key, height=HEIGHT)
        _to_graph(record, value)


def _compare(beside: bool) -> None:
    st.button(
        "Views" if beside else "Compare", key="activation-beside", icon=":material/compare:", type="tertiary",
        on_click=_beside, args=(beside,),
        help="Back to its views" if beside else "Beside the same of another run, or another layer",
    )  # fmt: skip


def _beside(beside: bool) -> None:
    session.set_filters(beside=None if beside else "yes")


def _close() -> None:
    st.button(
        "", key="activation-close", icon=":material/close:", type="tertiary", help="Back to the whole table",
        on_click=_unselect,
    )  # fmt: skip


def _iterations(trace: str, value: TracedValue) -> None:
    """A slider where the value was made more than once, e.g. in a loop."""
    known = activations.steps(session.actor(), trace, value.id)
    if len(known) < 2:
        return
    key = f"iteration-{value.id}-{value.step}"
    st.select_slider(
        "Iteration", known, value.step if value.step in known else known[0], key=key,
        on_change=_iterate, args=(key,),
    )  # fmt: skip


def _unselect() -> None:
    session.set_view(value="", step="")


def _iterate(key: str) -> None:
    session.set_view(step=str(st.session_state[key]))


def _to_graph(record: TraceRecord, value: TracedValue) -> None:
    if value.node:
        if st.button(
            "Show its operator in the graph", key=f"value-node-{value.id}", icon=":material/account_tree:",
            type="tertiary",
        ):  # fmt: skip
            session.go("graph", selection=value.node, inside="", trace=record.id)
    else:
        st.caption(f"A model input of {format_text.shape(value.shape)}.")
