"""SQL: my own question."""

from __future__ import annotations

from typing import Final

import streamlit as st

from app import session
from app.components import error_box
from app.components.sql_examples import EXAMPLES, example_buttons
from app.components.sql_result import result
from app.components.sql_schema import schema
from app.services import sql

_TEXT: Final = "sql-text"
_JOB: Final = "sql-job"
_EVERY: Final = 0.25
_LINE: Final = "\u23ce"
"""Stands for a line break in the address, which holds one line."""


def draw() -> None:
    """Draw the page."""
    artifact, _ = session.current_model()
    view = session.view()
    if _TEXT not in st.session_state:
        st.session_state[_TEXT] = view.filter("sql.text").replace(_LINE, "\n") or EXAMPLES[0].text
    everything = view.filter("sql.scope") == "all"
    left, right = st.columns([7, 3], gap="medium")
    with left:
        _query()
    with right:
        _scope_choice(everything)
        schema(sql.tables(session.actor(), artifact, everything=everything))
    job = st.session_state.get(_JOB, "")
    if job and sql.active(session.actor(), job):
        st.fragment(_working, run_every=_EVERY)(job)
    elif job:
        with error_box.guard():
            found = sql.result(session.actor(), job)
            if found is not None:
                result(found, job)
    else:
        st.caption("Run a query, or take one of the examples, and its rows and a chart of them appear here.")


def _query() -> None:
    example_buttons(_use)
    with st.form("sql-form", border=False):
        st.text_area(
            "Query", key=_TEXT, height=190, label_visibility="collapsed", placeholder="SELECT … FROM tensors",
            max_chars=sql.TEXT,
        )  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.form_submit_button("Run", key="sql-run", type="primary", icon=":material/play_arrow:", on_click=_run)
            st.caption("Ctrl+Enter runs it, on copies of the tables at the right: it can change nothing.")


def _use(text: str) -> None:
    st.session_state[_TEXT] = text
    _run()


def _scope_choice(everything: bool) -> None:
    st.segmented_control(
        "Models", ["this", "all"], default="all" if everything else "this", required=True, key="sql-scope",
        format_func={"this": "This model", "all": "All models"}.__getitem__,
        label_visibility="collapsed", width="stretch", on_change=_scope,
    )  # fmt: skip


def _scope() -> None:
    session.set_filters(sql__scope="all" if st.session_state["sql-scope"] == "all" else None)


def _run() -> None:
    text = st.session_state[_TEXT]
    session.set_filters(sql__text=text.strip().replace("\r", "").replace("\n", _LINE))
    artifact, _ = session.current_model()
    everything = session.view().filter("sql.scope") == "all"
    st.session_state[_JOB] = sql.run(session.actor(), artifact, text, everything=everything).id


def _working(job: str) -> None:
    if not sql.active(session.actor(), job):
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(":gray[:material/hourglass_top: The query is at work…]", width="content")
        st.button("Stop", key=f"sql-stop-{job}", icon=":material/stop_circle:", on_click=_stop, args=(job,))


def _stop(job: str) -> None:
    sql.stop(session.actor(), job)


draw()
