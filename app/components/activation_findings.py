"""What a run says about the model, worst first, each line leading to its value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pandas as pd
import streamlit as st

from app import format_text
from app.components.paged_table import picked
from app.plain_text import plain, shorten
from core.ir import Finding
from core.trace.answers.reading import place

ROW: Final = 30
_RANK: Final = {"error": 0, "warning": 1, "info": 2}
_SIGN: Final = {"error": "⛔ error", "warning": "⚠ warning", "info": "ⓘ info"}
_KINDS: Final = {
    "run.first_nan": "first NaN",
    "run.first_inf": "first infinity",
    "run.mask": "mask",
    "run.fp16_overflow": "fp16 overflow",
    "run.int8_range": "int8 range",
    "run.dead": "dead units",
    "run.saturated": "saturated units",
    "run.constant": "constant",
    "run.attention": "attention",
    "run.attention_sink": "attention sink",
    "run.collapse": "collapsed spread",
    "run.explosion": "explosion",
}


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """The worst first, in order of execution among equals."""
    return sorted(findings, key=lambda finding: _RANK[finding.severity])


def headline(findings: Sequence[Finding]) -> None:
    """The worst finding in a line, where it is more than a note."""
    worst = ordered(findings)[:1]
    if worst and worst[0].severity != "info":
        colour = "red" if worst[0].severity == "error" else "orange"
        st.markdown(f":{colour}[:material/report:] {plain(worst[0].message, 300)}")


def run_findings(trace: str, findings: Sequence[Finding], height: int, on_pick: Callable[[str, int], None]) -> None:
    """Draw all of them; a click on one that is about a value calls ``on_pick`` with its id and step."""
    if not findings:
        st.markdown(":green[:material/check_circle:] Nothing stood out: every number is finite and in a usual range.")
        return
    shown = ordered(findings)
    key = f"run-findings-{trace}"

    def use(row: int) -> None:
        value, step = place(shown[row])
        if value:
            on_pick(value, step)

    st.dataframe(
        pd.DataFrame(
            {
                "severity": [_SIGN[finding.severity] for finding in shown],
                "kind": [_KINDS.get(finding.code, finding.code.removeprefix("run.")) for finding in shown],
                "finding": [shorten(finding.message, 500) for finding in shown],
            }
        ),
        key=key, hide_index=True, row_height=ROW, height=min(height, ROW * (len(shown) + 1) + 6),
        on_select=lambda: picked(key, use), selection_mode="single-row",
        column_config={
            "severity": st.column_config.TextColumn("Severity", width=90),
            "kind": st.column_config.TextColumn("Kind", width=120),
            "finding": st.column_config.TextColumn("Finding", width=740),
        },
    )  # fmt: skip
    st.caption(f"{format_text.plural(len(shown), 'finding')}. Click one to see its value.")
