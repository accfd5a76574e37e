"""Edit: what can I change here, what would it do, and the way back."""

from __future__ import annotations

from typing import Final

import streamlit as st

from app import session
from app.components import empty, error_box
from app.components.edit_form import edit_form
from app.components.edit_history import ahead_note, edit_history
from app.components.edit_preview import edit_preview
from app.plain_text import mono, plain, shorten
from app.services import edits
from core.edits import menu
from core.edits.menu import Choice
from core.ir import Graph, Model
from core.structure.place import node_numbers

_TRIED: Final = "edit.tried"
_MODEL: Final = "Model"
_SHOWN: Final = 2000
"""Names that a list offers; beyond them a name is typed."""


def draw() -> None:
    """Draw the page."""
    artifact, model = session.current_model()
    capability = model.capability("edit")
    if capability.availability == "unavailable":
        empty.empty(":material/edit_off:", "This model cannot be edited here", plain(capability.reason, 300))
        return
    state = edits.state(session.actor(), artifact)
    ahead_note(artifact, state)
    left, right = st.columns([5, 4], gap="large")
    with left:
        title, choices, key = _thing(model)
        st.markdown(f"### {title}", anchors=False)
        _menu(artifact, choices, key)
    with right:
        edit_history(artifact, state)
    held = st.session_state.get(_TRIED)
    if held is not None and held[0] == artifact:
        edit_preview(artifact, held[1], "edit-preview")


def _thing(model: Model) -> tuple[str, list[Choice], str]:
    """What is edited: the selected operator, a value, or the model."""
    kinds = ("Operator", "Value", "Tensor", _MODEL)
    numbers = node_numbers(session.view().selection)
    default = "Operator" if numbers is not None else _MODEL
    kind = st.segmented_control(
        "What to edit", kinds, default=default, required=True, key="edit-kind", label_visibility="collapsed"
    )
    graph = model.main_graph
    if graph is None or kind == _MODEL:
        return "The model", menu.for_model(model), "model"
    if kind == "Operator":
        return _operator(model, numbers)
    return _value(model, graph, stored=kind == "Tensor")


def _operator(model: Model, numbers: tuple[int, int] | None) -> tuple[str, list[Choice], str]:
    graph_index, place = numbers or (0, 0)
    graph = model.graphs[graph_index]
    c = graph.columns
    if graph.node_count == 0:
        return "This graph has no operators", [], "none"
    listed = range(min(graph.node_count, _SHOWN))
    options = list(listed) if place in listed else [place, *listed]
    chosen = st.selectbox(
        "Operator", options, options.index(place), key=f"edit-node-{session.model_id()[:16]}-{graph_index}-{place}",
        format_func=lambda i: shorten(f"{c.node_names[i] or f'g{graph_index}.n{i}'} · {c.strings[c.op_type[i]]}", 90),
    )  # fmt: skip
    if chosen != place:
        session.go("edit", selection=f"g{graph_index}.n{chosen}")
    node = graph.node(chosen)
    return f"{plain(node.op_type, 60)} {mono(node.name or node.id)}", menu.for_node(model, graph, node), node.id


def _value(model: Model, graph: Graph, *, stored: bool) -> tuple[str, list[Choice], str]:
    tensors, boundary = graph.columns.tensor, [*graph.inputs, *graph.outputs]
    known = set(boundary)
    rest = [i for i in range(graph.value_count) if (tensors[i] >= 0) == stored and i not in known]
    options = [i for i in boundary if (tensors[i] >= 0) == stored] + rest[:_SHOWN]
    options = list(dict.fromkeys(options))
    if not options:
        return "The main graph stores no tensors" if stored else "The graph has no values", [], "none"
    chosen = st.selectbox(
        "Tensor" if stored else "Value",
        options,
        key=f"edit-value-{session.model_id()[:16]}-{stored}",
        format_func=lambda i: shorten(graph.value(i).name, 90),
    )
    value = graph.value(chosen)
    return f"{'Tensor' if stored else 'Value'} {mono(value.name)}", menu.for_value(model, graph, value), value.id


def _menu(artifact: str, choices: list[Choice], key: str) -> None:
    open_ones = [choice for choice in choices if not choice.reason]
    if open_ones:
        picked = st.pills(
            "Edit", range(len(open_ones)), default=0, required=True, format_func=lambda i: open_ones[i].title,
            key=f"edit-menu-{key}",
            wrap=True, label_visibility="collapsed",
        )  # fmt: skip
        with st.container(border=True), error_box.guard():
            edit = edit_form(open_ones[picked], f"edit-{key}")
            if edit is not None:
                st.session_state[_TRIED] = (artifact, edits.attempt(session.actor(), artifact, edit))
    closed = [choice for choice in choices if choice.reason]
    if closed:
        st.caption(
            "Not here: " + "; ".join(f"{item.title.lower()} ({plain(item.reason, 120)})" for item in closed) + "."
        )


draw()
