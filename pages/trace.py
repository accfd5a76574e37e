"""Trace: run it, under limits and with consent."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from app import session
from app.components import activation_findings, consent, empty, error_box, runs
from app.components.trace_dataset import dataset_section
from app.components.trace_history import past_runs
from app.components.trace_steps import inputs_step, limits_step, live, running, step
from app.plain_text import plain, shorten
from app.services import models, tracing
from core.store.traces import TraceRecord

ADVICE: Final = {
    "memory": "Raise the memory limit, or choose smaller sizes on the Inputs page.",
    "timeout": "Raise the time limit, or choose smaller sizes on the Inputs page.",
    "failed": "Other inputs often help: check their sizes and ranges on the Inputs page.",
    "cancelled": "What was captured before is kept.",
    "partial": "Values that are missing say why in the table.",
}
_ROW: Final = 32
_FINDINGS: Final = 3


def draw() -> None:
    """Draw the page."""
    artifact, model = session.current_model()
    capability = model.capability("trace")
    if model.main_graph is None or capability.availability == "unavailable":
        empty.empty(":material/play_circle:", "This model cannot be run here", plain(capability.reason, 300))
        return
    ready = inputs_step(artifact)
    limits, latency, engine = limits_step()
    step(3, "Approve and run")
    job = running(artifact)
    if job is not None:
        live(job)
    else:
        status = models.status(session.actor(), artifact)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            asked = st.button(
                "Approve & run", key="trace-run", type="primary", icon=":material/play_arrow:", disabled=not ready
            )
            st.caption(
                "Next you see exactly what is approved: the file, its inputs and its limits."
                if status.digest
                else "The file is still being hashed; the approval is bound to its identity on disk until then."
            )
        if asked:
            with error_box.guard():
                consent.ask(artifact, limits, latency=latency, engine=engine)
        consent.pending(artifact, limits)
    _results(artifact)
    dataset_section(artifact, limits)


def _results(artifact: str) -> None:
    history = tracing.history(session.actor(), artifact)
    if not history:
        return
    wanted = session.view().trace
    chosen = next((record for record in history if record.id == wanted), history[0])
    _outcome(chosen)
    if len(history) > 1:
        past_runs(history, chosen)


def _outcome(record: TraceRecord) -> None:
    draw_as = {"complete": st.success, "partial": st.warning, "cancelled": st.info}.get(record.status, st.error)
    advice = ADVICE.get(record.status, "")
    draw_as(f"{runs.sentence(record)} {advice}", icon=runs.ICONS.get(record.status))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if record.values and st.button("See the activations", key="trace-see", icon=":material/stacked_line_chart:"):
            session.go("activations", trace=record.id, value="", step="")
        if record.values and st.button("See them in the graph", key="trace-graph", icon=":material/account_tree:"):
            session.go("graph", trace=record.id)
        with st.popover("What held", type="tertiary", icon=":material/shield:"):
            st.caption("Which limits were enforced, and how")
            rows = [(shorten(name, 40), shorten(how, 300)) for name, how in record.held.items()]
            st.dataframe(
                pd.DataFrame(rows, columns=["limit", "how"]),
                hide_index=True,
                key="trace-held",
                width=560,
                row_height=30,
            )
    shown = activation_findings.ordered(record.findings)
    for finding in shown[:_FINDINGS]:
        st.caption(plain(finding.message, 300))
    if len(shown) > _FINDINGS:
        st.caption(f"{len(shown) - _FINDINGS} more findings are on the Activations page.")


draw()
