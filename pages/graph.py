"""Graph: how is it built."""

from __future__ import annotations

from functools import partial
from typing import Final

import streamlit as st

from app import session, theme
from app.components import empty, graph_canvas
from app.components.find_node import find, holder, way_to
from app.components.node_panel import node_panel
from app.plain_text import plain, shorten
from app.services import models
from core.errors import NotFound
from core.ir import Model
from core.structure.place import node_numbers
from core.structure.regions import LEVELS, Level
from core.structure.view import LIMIT, GraphView, graph_view

_TURN: Final = "graph.find"
_SMALL: Final = 130
"""Operators that are drawn one by one at first sight."""


@st.fragment
def draw() -> None:
    """Draw the page."""
    artifact, model = session.current_model()
    graph = model.main_graph
    if graph is None and not model.tensors:
        empty.empty(":material/account_tree:", "This file has no graph", "Overview says what is in it.")
        return
    level = _level(model)
    selected = session.view().selection
    place = _place(artifact, level, selected)
    view = _view(artifact, level, place)
    _head(artifact, model, view)
    left, right = st.columns([3, 1], gap="small")
    with left:
        graph_canvas.graph_canvas(
            view,
            selected=holder(view, selected) or selected,
            colours=theme.palette(),
            key="graph-canvas",
            on_select=partial(_select, place),
        )
    with right, st.container(height=graph_canvas.LEAST_HEIGHT + 64, border=True, key="inspector"):
        node_panel(artifact, model, view, selected, select=partial(_jump, artifact), enter=_enter)


def _level(model: Model) -> Level:
    chosen = session.view().level
    known: Level | None = next((level for level in LEVELS if level == chosen), None)
    if known is not None:
        return known
    graph = model.main_graph
    return "operator" if graph is not None and graph.node_count <= _SMALL else "layer"


def _place(artifact: str, level: Level, selected: str) -> str:
    """Where to stand: as the address says, else where the selected operator is drawn."""
    inside = session.view().inside
    if not inside and node_numbers(selected) is not None:
        return models.derived(session.actor(), artifact, ("way", level, selected), lambda m: way_to(m, selected, level))
    return inside


def _view(artifact: str, level: Level, inside: str) -> GraphView:
    def make(model: Model) -> GraphView:
        return graph_view(model, level=level, inside=inside or None, limit=LIMIT)

    try:
        return models.derived(session.actor(), artifact, ("graph view", level, inside), make)
    except NotFound:
        if not inside:
            raise
        session.set_view(inside="")  # an address of another version of this file
        return _view(artifact, level, "")


def _head(artifact: str, model: Model, view: GraphView) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="xxsmall", key="graph-head"):
        for place, crumb in enumerate(view.breadcrumbs):
            last = place == len(view.breadcrumbs) - 1
            label = plain(crumb.label, 28)
            if place:
                st.markdown(":gray[/]", width="content")
            if last:
                st.markdown(f"**{label}**", width="content")
            else:
                target = "" if place == 0 else crumb.id
                st.button(label, key=f"crumb-{crumb.id}", type="tertiary", on_click=_enter, args=(target,))
        st.space("stretch")
        _find(artifact, model)
        st.segmented_control(
            "Level",
            LEVELS,
            default=view.level,
            required=True,
            key="graph-level",
            label_visibility="collapsed",
            on_change=_change_level,
        )


def _find(artifact: str, model: Model) -> None:
    turn = st.session_state.get(_TURN, 0)  # a jump closes the list: the next one is a new one
    with st.popover("Find", icon=":material/search:", key=f"graph-find-{turn}"):
        text = st.text_input("Operator", placeholder="name or type", key=f"graph-find-text-{turn}", live=True)
        hits = find(model, text or "")
        if text and not hits:
            st.caption("No operator has this in its name or type.")
        for hit in hits[:12]:
            label = f"{plain(hit.op_type, 24)} :gray[{plain(shorten(hit.name, 44))}]"
            st.button(label, key=f"hit-{hit.id}", type="tertiary", on_click=_jump, args=(artifact, hit.id))
        if len(hits) > 12:
            st.caption("There are more: type more of the name.")


def _change_level() -> None:
    session.set_view(level=st.session_state["graph-level"], inside="")


def _select(place: str, item: str) -> None:
    session.set_view(selection=item, inside=place)


def _jump(artifact: str, node: str) -> None:
    """Select an operator and go where it is drawn."""
    model = models.get(session.actor(), artifact)
    st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
    session.set_view(selection=node, inside=way_to(model, node, _level(model), session.view().inside))


def _enter(place: str) -> None:
    session.set_view(inside=place, selection="")


draw()
