"""Consent to a run: what exactly is approved, and the button that does it."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import error_box
from app.plain_text import mono, shorten
from app.services import models, tracing
from app.services.tracing import Prepared
from core.trace.types import RunLimits, TraceRequest

_HELD: Final = "trace.prepared"


def ask(artifact: str, limits: RunLimits, *, latency: bool, engine: str = "auto") -> None:
    """Prepare a run that waits for consent; ``pending`` then asks for it."""
    _drop()
    with st.spinner("Making the inputs…"):
        st.session_state[_HELD] = tracing.prepare(
            session.actor(), artifact, limits, latency=latency, engine=engine, keep=_selected()
        )


def _selected() -> tuple[str, ...]:
    """What the person has chosen or pinned, which is kept first."""
    view = session.view()
    pinned = [item.partition(":")[0] for item in view.filter("watch").split(",")]
    return tuple(dict.fromkeys(item for item in (view.value, view.selection, *pinned) if item))


def pending(artifact: str, limits: RunLimits) -> None:
    """Open the dialog about the run that waits; one of another model or under other limits is dropped."""
    prepared: Prepared | None = st.session_state.get(_HELD)
    if prepared is None:
        return
    same = models.status(session.actor(), artifact).quick == prepared.artifact
    if same and prepared.request.limits == limits:
        _dialog(prepared)
    else:
        _drop()


def _drop() -> None:
    prepared = st.session_state.pop(_HELD, None)
    if prepared is not None:
        tracing.discard(session.actor(), prepared)


@st.dialog("Approve this run", width="large", icon=":material/verified_user:", on_dismiss=_drop)
def _dialog(prepared: Prepared) -> None:
    request = prepared.request
    st.markdown(
        "The model will be executed by a separate process under these limits. "
        "Your approval holds for exactly this: another model file, other inputs or other limits need a new one."
    )
    st.dataframe(
        pd.DataFrame(approved(request), columns=["What", "Value"]),
        hide_index=True,
        key="consent-table",
        row_height=30,
        column_config={"What": st.column_config.TextColumn(width=150)},
    )
    st.caption(f"Fingerprint {mono(request.fingerprint()[:16])}")
    with st.container(horizontal=True, gap="small"):
        if st.button("Approve & run", key="consent-yes", type="primary", icon=":material/play_arrow:"):
            with error_box.guard() as outcome:
                job = tracing.start(session.actor(), prepared, tracing.approve(session.actor(), prepared))
            if not outcome.failed:
                st.session_state.pop(_HELD, None)
                session.set_view(trace=job.subject, value="", step="")
                st.rerun()
        if st.button("Not now", key="consent-no", type="tertiary"):
            _drop()
            st.rerun()


def approved(request: TraceRequest) -> list[tuple[str, str]]:
    """What an approval is bound to, line by line; text of the file is cut to one line."""
    limits = request.limits
    rows = [
        ("Model", shorten(request.model_path, 300)),
        ("SHA-256", request.model_digest),
    ]
    for item in request.inputs:
        shape = format_text.shape(item.shape)
        rows.append((f"Input {shorten(item.name, 60)}", f"{item.dtype} {shape}, {shorten(item.source, 120)}"))
    rows += [
        ("Memory", format_text.size(limits.memory)),
        ("Time", format_text.seconds(limits.time)),
        ("Capture", f"{format_text.size(limits.capture)} of values at once"),
        ("Stored values", format_text.size(limits.store)),
        ("Threads", str(limits.threads)),
        ("Device", limits.provider),
        ("Engine", request.engine),
        ("Latency", "timed in a second run" if request.latency else "not timed"),
    ]
    return rows
