"""Home: what can I open, what did I open last."""

from __future__ import annotations

import time
from typing import Any, Final

import pandas as pd
import streamlit as st

from app import format_text, session, theme
from app.components import error_box
from app.components.model_bar import format_title
from app.plain_text import shorten
from app.services import opening
from core.formats.table import FORMATS

_ROW: Final = 34
_TRIED: Final = "home.tried"
_VERDICTS: Final = {"ok": "✓ reads cleanly", "info": "ⓘ notes", "warning": "⚠ warnings", "error": "⛔ errors"}


def draw() -> None:
    """Draw the page."""
    _enlarge_drop_target()
    wide, narrow = st.columns([3, 2], gap="medium")
    with wide:
        _from_disk()
    with narrow:
        _sample()
    _recent()


def _enlarge_drop_target() -> None:
    """A target that a file is easily dropped on; Streamlit has no setting for its height."""
    st.html(
        '<style>[data-testid="stFileUploaderDropzone"] { min-height: 6.5rem; display: flex; align-items: center;'
        f" justify-content: center; border: 1px dashed {theme.palette().muted}; }}</style>"
    )


def _from_disk() -> None:
    with st.container(border=True, height="stretch"):
        st.markdown("## Open a model", anchors=False)
        formats = ", ".join(entry.title for entry in FORMATS)
        files = st.file_uploader(
            "Drop a model file here, together with its data files if it has some",
            accept_multiple_files=True,
            key="home-upload",
        )
        with st.form("home-path", border=False):
            row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
            path = row.text_input(
                "or a path on this machine", placeholder="/models/resnet50.onnx", key="home-path-text"
            )
            asked = row.form_submit_button("Open", type="primary", icon=":material/folder_open:")
        st.caption(f"Reads {formats}. Files are read where they lie: never run, never changed, never sent anywhere.")
        fresh = _not_tried(files)
        if fresh:
            with error_box.guard(), st.spinner("Reading the file…"):
                session.open_model(opening.open_uploads(session.actor(), [(file.name, file) for file in fresh]))
        elif asked:
            with error_box.guard(), st.spinner("Reading the file…"):
                session.open_model(opening.open_path(session.actor(), path.strip()))


def _sample() -> None:
    with st.container(border=True, height="stretch"):
        st.markdown("## Look around first", anchors=False)
        st.markdown(
            "A small model of our own: a convolutional stem and a few attention blocks, "
            "enough to walk its graph, run it and read its activations."
        )
        if st.button("Open the sample", key="home-sample", icon=":material/science:"):
            with error_box.guard():
                session.open_model(opening.open_sample(session.actor()))
        st.caption("The same answers in a terminal, and from a conversion script:")
        st.code('modelglass info model.onnx\n\nimport modelglass\nmodelglass.show("model.onnx")', language=None)


def _recent() -> None:
    rows = opening.recent(session.actor())
    st.markdown("## Recent", anchors=False)
    if not rows:
        st.caption("Files that you open are listed here.")
        return
    now = time.time()
    frame = pd.DataFrame([_row(row, now) for row in rows])
    event: Any = st.dataframe(
        frame,
        key="home-recent",
        hide_index=True,
        height="auto",
        row_height=_ROW,
        on_select="rerun",
        selection_mode="single-cell",
        column_config={
            "name": st.column_config.TextColumn("File", width=220),
            "format": st.column_config.TextColumn("Format", width=110),
            "size": st.column_config.TextColumn("Size", width=90, alignment="right"),
            "verdict": st.column_config.TextColumn("Verdict", width=130),
            "opened": st.column_config.TextColumn("Opened", width=120),
            "path": st.column_config.TextColumn("Where", width=420),
        },
    )
    chosen = event.selection.cells
    if chosen:
        with error_box.guard(), st.spinner("Reading the file…"):
            session.open_model(opening.reopen(session.actor(), rows[chosen[0][0]].artifact.id))


def _row(row: opening.Recent, now: float) -> dict[str, str]:
    artifact = row.artifact
    return {
        "name": shorten(artifact.name),
        "format": format_title(artifact.format),
        "size": format_text.size(artifact.size_bytes),
        "verdict": _VERDICTS.get(artifact.verdict, "") if row.here else "file is gone",
        "opened": "open now" if row.open else format_text.ago(artifact.opened_at, now),
        "path": "uploaded" if artifact.uploaded else shorten(artifact.path, 300),
    }


def _not_tried(files: list[Any]) -> list[Any]:
    """Files that arrived just now: one that could not be opened stays in the box and is not tried again."""
    tried = st.session_state.get(_TRIED, set())
    st.session_state[_TRIED] = {file.file_id for file in files}
    return [file for file in files if file.file_id not in tried]


draw()
