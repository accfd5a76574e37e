"""Findings as a table, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import pandas as pd
import streamlit as st

from app.format_text import plural
from app.plain_text import shorten
from core.ir import Finding, Severity

_ORDER: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "info": 2}
_SIGN: Final[dict[Severity, str]] = {"error": "⛔ error", "warning": "⚠ warning", "info": "ⓘ info"}
_ROW: Final = 30
_SHOWN: Final = 1000


def findings_table(findings: Sequence[Finding], key: str, rows: int = 6) -> None:
    """Draw at most ``rows`` lines high; the table scrolls beyond that."""
    if not findings:
        st.markdown(":green[:material/check_circle:] Nothing to report: the file reads cleanly.")
        return
    worst_first = sorted(findings, key=lambda finding: _ORDER[finding.severity])
    frame = pd.DataFrame(
        {
            "severity": [_SIGN[finding.severity] for finding in worst_first[:_SHOWN]],
            "finding": [shorten(finding.message, 400) for finding in worst_first[:_SHOWN]],
            "at": [shorten(finding.at or "", 200) for finding in worst_first[:_SHOWN]],
            "code": [finding.code for finding in worst_first[:_SHOWN]],
        }
    )
    st.dataframe(
        frame,
        key=key,
        hide_index=True,
        height="auto" if len(frame) <= rows else _ROW * (rows + 1) + 16,
        row_height=_ROW,
        column_config={
            "severity": st.column_config.TextColumn("Severity", width="small"),
            "finding": st.column_config.TextColumn("Finding", width="large"),
            "at": st.column_config.TextColumn("Where", width="medium"),
            "code": st.column_config.TextColumn("Code", width="small"),
        },
    )
    if len(findings) > _SHOWN:
        st.caption(f"The first {_SHOWN} of {len(findings)} findings.")


def verdict(findings: Sequence[Finding]) -> tuple[str, Severity | None]:
    """The findings in a few words, and the worst severity among them."""
    counts = Counter(finding.severity for finding in findings)
    for severity in _ORDER:
        if counts[severity]:
            return plural(counts[severity], "note" if severity == "info" else severity), severity
    return "no findings", None
