"""The revisions of a model as a chain: where one is, back and forward, other branches, the script."""

from __future__ import annotations

import json
from typing import Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import error_box
from app.components.paged_table import picked
from app.plain_text import mono, plain, shorten
from app.services import edits
from app.services.edits import EditState
from core.edits.kinds import to_json
from core.edits.menu import TITLES
from core.edits.revisions import Revision

_ROW: Final = 30


def edit_history(artifact: str, state: EditState | None) -> None:
    """Draw the history of the open model."""
    count = len(state.chain) if state else 0
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"### History :gray[{format_text.plural(count, 'edit')}]", anchors=False, width="stretch")
        undo = st.button("Undo", key="edit-undo", icon=":material/undo:", disabled=not (state and state.can_undo))
        redo = st.button("Redo", key="edit-redo", icon=":material/redo:", disabled=not (state and state.can_redo))
    if undo or redo:
        with error_box.guard():
            session.go("edit", model=(edits.undo if undo else edits.redo)(session.actor(), artifact))
    if state is None:
        st.caption("No edits yet. Every committed edit is kept here and can be undone; the file itself never changes.")
        return
    rows: list[tuple[str, str, Revision | None]] = [("", f"{state.name} as opened", None)]
    rows += [(item.id, line(item), item) for item in state.chain]
    _table(artifact, state, rows, "edit-chain")
    if state.branches:
        st.caption(f"{format_text.plural(len(state.branches), 'revision')} on other branches or undone")
        _table(artifact, state, [(item.id, line(item), item) for item in state.branches], "edit-branches")
    with st.popover("Edit script", icon=":material/code:"):
        st.caption("`modelglass edit FILE SCRIPT.json -o OUT` replays it.")
        st.code(edits.script(session.actor(), artifact), language="json", height=260)


def line(revision: Revision) -> str:
    """A revision in words."""
    entry = to_json(revision.edit)
    kind = str(entry.pop("edit"))
    facts = ", ".join(f"{key} {_shown(value)}" for key, value in entry.items())
    title = f"{revision.name}: " if revision.name else ""
    return shorten(f"{title}{TITLES[kind]}: {facts}", 200)


def _table(artifact: str, state: EditState, rows: list[tuple[str, str, Revision | None]], key: str) -> None:
    frame = pd.DataFrame(
        {
            "state": ["● shown" if ident == state.revision or (not ident and not state.chain) else
                      "saved" if ident and ident == state.saved else "" for ident, _, _ in rows],
            "edit": [text for _, text, _ in rows],
            "id": [ident[:10] for ident, _, _ in rows],
        }
    )  # fmt: skip
    full = f"{key}-{state.revision[:12]}"
    st.dataframe(
        frame, key=full, hide_index=True, row_height=_ROW, height=_ROW * (min(len(rows), 7) + 1) + 3,
        selection_mode="single-row", on_select=lambda: picked(full, lambda row: _ask(rows[row][0] or "root")),
        column_config={
            "state": st.column_config.TextColumn("", width=70),
            "edit": st.column_config.TextColumn("Edit", width="large"),
            "id": st.column_config.TextColumn("Revision", width=95),
        },
    )  # fmt: skip
    wanted = st.session_state.pop("edit.go", "")
    if wanted:
        target = wanted if wanted != "root" else None
        with error_box.guard():
            root = state.root if target is None else edits.show(session.actor(), artifact, target)
            session.go("edit", model=root)


def _ask(revision: str) -> None:
    st.session_state["edit.go"] = revision


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"“{text[:60]}”" if isinstance(value, str) else text[:60]


def ahead_note(artifact: str, state: EditState | None) -> None:
    """Say that an unsaved revision of this file exists, such as after a crash, and lead to it."""
    if state is None or not state.ahead:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
        st.markdown(
            f":material/history: Unsaved edits of {plain(state.name, 80)} were kept "
            f"(revision {mono(state.ahead[:10])}).", width="stretch",
        )  # fmt: skip
        if st.button("Continue with them", key="edit-continue", type="primary"):
            session.go("edit", model=edits.show(session.actor(), artifact, state.ahead))
