"""Running jobs with their progress and a Stop; refreshes itself only while something runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from app import session
from app.format_text import THIN
from app.jobs import Job
from app.plain_text import plain
from app.services import jobs

_EVERY: Final = 0.7
_QUIET: Final = ("hash", "warm-up")
"""Kinds that need no Stop: the bar says how far the hash is, the warm-up is nobody's wish."""


def jobs_panel(active: Sequence[Job]) -> None:
    """Draw the jobs that run now, all models together; nothing where there are none.

    ``active`` as read before the rest of the page: a job that ends while the page is drawn still
    makes it be drawn again.
    """
    st.session_state["jobs-drawn"] = {job.id for job in active}
    if active:
        st.fragment(_panel, run_every=_EVERY)()


def _panel() -> None:
    active = jobs.active(session.actor())
    if st.session_state["jobs-drawn"] - {job.id for job in active}:  # one has ended: show its result
        st.rerun()
    shown = [job for job in active if job.kind not in _QUIET]
    if not shown:
        return
    with st.container(
        key="jobs-panel", horizontal=True, wrap=False, vertical_alignment="center", gap="xsmall", width="content"
    ):
        _line(shown[0])
        if len(shown) > 1:
            with st.popover(f"+{len(shown) - 1}", type="tertiary"):
                for job in shown[1:]:
                    with st.container(horizontal=True, vertical_alignment="center"):
                        _line(job)


def _line(job: Job) -> None:
    """One line of the bar's own height, so that nothing below moves when a job comes and goes."""
    st.markdown(f":gray[{plain(progress_text(job), 40)}]", width="content", wrap=False)
    st.progress(job.share or 0.0, width=110)
    if st.button("Stop", key=f"stop-{job.id}", type="tertiary", icon=":material/stop_circle:"):
        jobs.cancel(session.actor(), job.id)


def progress_text(job: Job) -> str:
    """``trace 43 %``; without a figure where the total is unknown."""
    if job.state == "queued":
        return f"{job.kind} waits" + (f", place {job.place}" if job.place else "")
    return f"{job.kind}…" if job.share is None else f"{job.kind} {100 * job.share:.0f}{THIN}%"
