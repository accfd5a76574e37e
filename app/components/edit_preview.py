"""What an edit would do, before it is committed: lines before and after, findings, size."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import error_box
from app.components.findings import findings_table
from app.plain_text import shorten
from app.services import edits
from app.services.edits import Tried

_ROW: Final = 30
_LINE: Final = 400


def edit_preview(artifact: str, tried: Tried, key: str) -> None:
    """Draw the preview with its Commit."""
    found = tried.changes
    words = format_text.plural(len(found.items) + found.left_out, "line")
    sizes = f"{format_text.size(found.bytes_before)} → {format_text.size(found.bytes_after)}"
    st.markdown(f"### Preview :gray[{words} changed, file {sizes}]", anchors=False)
    if found.items:
        frame = pd.DataFrame(
            {
                "what": [change.what for change in found.items],
                "before": [shorten(change.before, _LINE) for change in found.items],
                "after": [shorten(change.after, _LINE) for change in found.items],
            }
        )
        st.dataframe(
            frame, key=f"{key}-changes", hide_index=True, row_height=_ROW,
            height=_ROW * (min(len(frame), 8) + 1) + 3,
            column_config={
                "what": st.column_config.TextColumn("What", width=80),
                "before": st.column_config.TextColumn("Before", width="large"),
                "after": st.column_config.TextColumn("After", width="large"),
            },
        )  # fmt: skip
        if found.left_out:
            st.caption(f"{found.left_out:,} more lines changed.")
    else:
        st.caption("Nothing that can be listed changes.")
    if tried.findings:
        findings_table(tried.findings, key=f"{key}-findings", rows=4)
    else:
        st.markdown(":green[:material/check_circle:] Names, schemas and types fit together.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button(
            "Commit", key=f"{key}-commit", type="primary", icon=":material/check:", disabled=not tried.ready,
            help="Makes a revision; the opened file stays as it is.",
        ):  # fmt: skip
            with error_box.guard():
                made = edits.commit(session.actor(), artifact, tried.edit)
                st.session_state.pop("edit.tried", None)
                session.go("edit", model=made)
        if st.button("Drop", key=f"{key}-drop", type="tertiary"):
            st.session_state.pop("edit.tried", None)
            st.rerun()
        if not tried.ready:
            st.caption("It would break the model and cannot be committed.")
