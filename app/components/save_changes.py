"""Save changes…: a new file out of the revision that is shown, checked and compared."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import streamlit as st

from app import format_text, session
from app.components import error_box
from app.jobs import Job
from app.plain_text import mono, plain
from app.services import edits, jobs, opening

_JOB: Final = "edit.save-job"
_TICK: Final = 0.2


def save_button(artifact: str) -> None:
    """A button that is there while the shown revision was not saved."""
    state = edits.state(session.actor(), artifact)
    if state is None or not state.dirty:
        return
    if st.button("Save changes…", key="save-changes", type="primary", icon=":material/save:"):
        st.session_state.pop(_JOB, None)
        _dialog(artifact, state.root)


def close_button(artifact: str) -> None:
    """Close the model; asks first where edits were not saved."""
    if st.button("Close", key="close-model", type="tertiary", icon=":material/close:", help="Close this model"):
        state = edits.state(session.actor(), artifact)
        if state is not None and state.dirty:
            _ask(artifact)
        else:
            _close(artifact)


@st.dialog("Close without saving?", icon=":material/help:")
def _ask(artifact: str) -> None:
    st.markdown("The edits were not saved to a file. They stay in the history of this file and can be continued later.")
    with st.container(horizontal=True, gap="small"):
        if st.button("Close anyway", key="close-anyway", type="primary"):
            _close(artifact)
        if st.button("Stay", key="close-stay", type="tertiary"):
            st.rerun()


def _close(artifact: str) -> None:
    opening.close(session.actor(), artifact)
    session.leave_model()


@st.dialog("Save changes", width="large", icon=":material/save:")
def _dialog(artifact: str, root: str) -> None:
    job_id = st.session_state.get(_JOB)
    if job_id is not None:
        _progress(job_id)
        return
    recorded = edits.suggested(session.actor(), artifact)
    path = st.text_input("New file", recorded, key="save-path", help="The opened file is never changed.")
    left, right = st.columns(2)
    external = left.checkbox("Tensors in a file beside it", key="save-external")
    overwrite = left.checkbox("Replace the file if it exists", key="save-overwrite")
    compare = right.checkbox("Run it before and after, and compare", True, key="save-compare")
    if st.button("Save", key="save-go", type="primary", icon=":material/save:"):
        with error_box.guard() as outcome:
            job = edits.save(session.actor(), artifact, path, external=external, overwrite=overwrite, compare=compare)
        if not outcome.failed:
            st.session_state[_JOB] = job.id
            st.rerun(scope="fragment")


def _wait(job: Job) -> None:
    """Draw how far it is until it has ended; a click on Stop interrupts and comes back here."""
    bar = st.progress(0.0, text="Saving…")
    st.button("Stop", key=f"save-stop-{job.id}", icon=":material/stop_circle:", on_click=_stop, args=(job.id,))
    while job.active:
        bar.progress(job.share or 0.0, text=plain(job.message or "Saving…", 100).capitalize())
        time.sleep(_TICK)
        job = jobs.get(session.actor(), job.id)
    st.rerun(scope="fragment")


def _stop(job: str) -> None:
    jobs.cancel(session.actor(), job)


def _progress(job_id: str) -> None:
    job = jobs.get(session.actor(), job_id)
    if job.active:
        _wait(job)
    if job.state != "done":
        st.error(plain(job.error or "was stopped; nothing was written", 600), icon=":material/error:")
        if st.button("Back", key="save-back"):
            st.session_state.pop(_JOB, None)
            st.rerun(scope="fragment")
        return
    report: dict[str, Any] = job.result  # pyright: ignore[reportAssignmentType]
    for item in report["files"]:
        st.markdown(
            f":green[:material/check_circle:] {mono(str(Path(report['folder']) / item['file']))} "
            f"{format_text.size(item['bytes'])}, SHA-256 {mono(item['sha256'][:16])}"
        )
    st.markdown(
        f"{format_text.size(report['bytes_reused'])} copied as they were, {format_text.size(report['bytes_encoded'])} "
        f"written anew. ONNX checker: {plain(report['onnx_checker'], 300)}."
    )
    proof = report.get("comparison")
    if proof:
        worst = max((output["max_abs"] for output in proof["outputs"]), default=0.0)
        more = f" ({plain(proof['reason'], 300)})" if proof["reason"] else f", largest difference {worst:.3g}"
        st.markdown(f"Before and after: **{proof['verdict']}**{more}.")
    if st.button("Close", key="save-close"):
        st.session_state.pop(_JOB, None)
        st.rerun()
