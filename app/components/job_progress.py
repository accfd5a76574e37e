"""Progress of one job with a Stop; refreshes itself until the job ends, then runs the page once."""

from __future__ import annotations

from typing import Final

import streamlit as st

from app import session
from app.components.jobs_panel import progress_text
from app.plain_text import plain
from app.services import jobs

EVERY: Final = 0.6


def job_progress(job: str, *, width: int = 300) -> None:
    """Draw the progress of an active job."""
    st.fragment(_progress, run_every=EVERY)(job, width)


def _progress(job: str, width: int) -> None:
    now = jobs.get(session.actor(), job)
    if not now.active:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        st.progress(now.share or 0.0, text=plain(progress_text(now), 80), width=width)
        st.button("Stop", key=f"job-stop-{job}", icon=":material/stop_circle:", on_click=_stop, args=(job,))


def _stop(job: str) -> None:
    jobs.cancel(session.actor(), job)
