"""Earlier runs of a model, each with how it ended."""

from __future__ import annotations

import time
from typing import Any, Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import runs
from app.components.paged_table import picked
from app.plain_text import shorten
from app.services import tracing
from core.store.traces import TraceRecord

_ROW: Final = 32


def past_runs(history: list[TraceRecord], chosen: TraceRecord) -> None:
    """Draw all of them with how they ended; a click shows one."""
    st.markdown("### Earlier runs", anchors=False)
    now = time.time()
    frame = pd.DataFrame([_row(record, now, record.id == chosen.id) for record in history])
    key = f"trace-history-{len(history)}"
    st.dataframe(
        frame,
        key=key,
        hide_index=True,
        row_height=_ROW,
        height=_ROW * (min(len(frame), 6) + 1) + 2,
        on_select=lambda: picked(key, lambda row: _show(history[row].id)),
        selection_mode="single-row",
    )
    st.button(
        "Remove this run", key=f"trace-forget-{chosen.id}", icon=":material/delete:", type="tertiary",
        on_click=_forget, args=(chosen.id,),
    )  # fmt: skip


def _show(trace: str) -> None:
    session.set_view(trace=trace, value="", step="")


def _forget(trace: str) -> None:
    tracing.forget(session.actor(), trace)
    session.set_view(trace="")


def _row(record: TraceRecord, now: float, shown: bool) -> dict[str, Any]:
    return {
        "": "●" if shown else "",
        "When": format_text.ago(record.created_at, now),
        "Ended": runs.WORDS.get(record.status, record.status),
        "Values": record.values,
        "Time": format_text.seconds(record.elapsed_s),
        "Peak memory": format_text.size(record.peak_rss_bytes),
        "Inputs": ", ".join(shorten(f"{item.name}: {item.source}", 60) for item in record.inputs[:4]),
        "Engine": shorten(record.engine, 40),
        "Device": record.provider,
    }
