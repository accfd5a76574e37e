"""The three steps of a run: inputs, limits, consent; and the run itself while it is at work."""

from __future__ import annotations

import os
import time
from typing import Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import error_box
from app.jobs import Job
from app.plain_text import plain, shorten
from app.services import inputs, jobs, tracing
from core.inputs.recipe import concrete_shape
from core.limits import GIB, MIB
from core.trace.types import RunLimits

EVERY: Final = 0.5
_DEFAULT: Final = RunLimits()
_ENGINES: Final = {
    "auto": "Automatic",
    "onnxruntime": "onnxruntime alone",
    "reference": "Reference evaluator",
    "normalized": "Normalized reference",
}
_LATENCY: Final = "trace-latency"


def step(number: int, title: str, note: str = "") -> None:
    """The heading of a step."""
    rest = f" :gray[{note}]" if note else ""
    st.markdown(f"### :primary[{number}] {title}{rest}", anchors=False)


def inputs_step(artifact: str) -> bool:
    """Show what the model will be given; says whether it is complete."""
    with error_box.guard() as outcome:
        plan = inputs.plan(session.actor(), artifact)
        ready = all(item.recipe is not None or item.slot.optional for item in plan)
        step(1, "Inputs", "ready" if ready else "not ready")
        rows = [
            (
                shorten(item.slot.name, 80),
                item.slot.dtype or "unknown",
                _shape_text(item),
                shorten(item.recipe.describe(), 80) if item.recipe else "as stored in the file",
                "assigned" if item.assigned else "proposed",
            )
            for item in plan
        ]
        if rows:
            st.dataframe(
                pd.DataFrame(rows, columns=["Input", "Type", "Shape", "Recipe", "State"]),
                hide_index=True,
                key="trace-inputs",
                row_height=30,
                height=30 * (min(len(rows), 5) + 1) + 3,
            )
        else:
            st.caption("The model takes no inputs.")
    if st.button("Change the inputs", key="trace-change", icon=":material/edit:", type="tertiary"):
        session.go("inputs")
    return not outcome.failed and ready


def limits_step() -> tuple[RunLimits, bool, str]:
    """Ask for the limits and the engine; gives them and whether latency is timed."""
    step(2, "Limits and engine", "the run is stopped at any limit")
    boxes = st.columns([3, 3, 3, 4, 2], vertical_alignment="bottom")
    cores = os.cpu_count() or 1
    memory = boxes[0].number_input(
        "Memory, GiB", 0.25, 1024.0, _DEFAULT.memory / GIB, 0.25, key="trace-memory", persist_state="session"
    )
    seconds = boxes[1].number_input(
        "Time, seconds", 1.0, 86400.0, _DEFAULT.time, 10.0, format="%g", key="trace-time", persist_state="session"
    )
    threads = boxes[2].number_input(
        "Threads", 1, max(cores, 2), min(_DEFAULT.threads, cores), key="trace-threads", persist_state="session"
    )
    engine = boxes[3].selectbox(
        "Engine", list(_ENGINES), format_func=_ENGINES.__getitem__, key="trace-engine", persist_state="session",
        help="An explicit engine runs everything itself or fails; Automatic says which operators the reference ran.",
    )  # fmt: skip
    with boxes[4], st.popover("More", icon=":material/tune:"):
        store = st.number_input(
                "Stored values, MiB", 0, 1 << 20, _DEFAULT.store // MIB, 64, key="trace-store",
                persist_state="session", help="Statistics of every value are kept in any case.",
            )  # fmt: skip
        capture = st.number_input(
                "Values held at once, MiB", 1, 1 << 20, _DEFAULT.capture // MIB, 64, key="trace-capture",
                persist_state="session", help="Less makes more and smaller slices of the graph.",
            )  # fmt: skip
        latency = st.toggle(
                "Time every operator in a second run", True, key=_LATENCY, persist_state="session"
            )  # fmt: skip
    limits = RunLimits(
        memory=int(memory * GIB),
        time=float(seconds),
        capture=int(capture) * MIB,
        store=int(store) * MIB,
        threads=int(threads),
    )
    return limits, bool(latency), engine


def running(artifact: str) -> Job | None:
    """The trace of this model that waits or runs."""
    found = jobs.listed(session.actor(), artifact)
    return next((job for job in found if job.kind == "trace" and job.active), None)


def live(job: Job) -> None:
    """Progress of a run with a Stop; refreshes itself until the run ends."""
    st.fragment(_live, run_every=EVERY)(job.id)


def _live(job_id: str) -> None:
    job = jobs.get(session.actor(), job_id)
    if not job.active:
        st.rerun()
    with st.container(border=True, key="trace-live"):
        spent = time.time() - job.started_at if job.started_at else 0.0
        done = f"{int(job.done):,} of {int(job.total):,} operators" if job.total else "starting the worker"
        at_work = job.state == "running"
        words = (
            f"{done} · {format_text.seconds(spent)}" if at_work else f"place {job.place} in the queue of this server"
        )
        st.progress(job.share or 0.0, text=f"**{'Running' if at_work else 'Waiting'}:** {words}")
        if job.message:
            st.caption(plain(job.message, 160))
        st.button("Stop", key=f"trace-stop-{job_id}", icon=":material/stop_circle:", on_click=_stop, args=(job_id,))


def _stop(job: str) -> None:
    tracing.stop(session.actor(), job)


def _shape_text(item: inputs.Plan) -> str:
    if item.recipe is None or item.slot.shape is None:
        return format_text.shape(item.slot.shape)
    return format_text.shape(concrete_shape(item.slot, item.recipe.dims))
