"""Inputs: what will the model see."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from app import format_text, session
from app.components import empty
from app.components.input_card import input_card
from app.plain_text import plain
from app.services import inputs
from app.services.inputs import Plan
from core.inputs.generic import default_dims
from core.inputs.recipe import open_dimensions

_IN_A_ROW = 4


def draw() -> None:
    """Draw the page."""
    artifact, model = session.current_model()
    capability = model.capability("trace")
    if model.main_graph is None or capability.availability == "unavailable":
        empty.empty(":material/input:", "This model cannot be run here", plain(capability.reason, 300))
        return
    plan = inputs.plan(session.actor(), artifact)
    if not plan:
        empty.empty(":material/input:", "This model takes no inputs", "It can be traced as it is.")
    _head(plan)
    _dimensions(artifact, plan)
    for item in plan:
        input_card(artifact, item)


def _head(plan: list[Plan]) -> None:
    mine = sum(item.assigned for item in plan)
    rest = len(plan) - mine
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        words = [f"{mine} assigned" if mine else "", f"{rest} as proposed" if rest else ""]
        st.markdown(
            f"**{format_text.plural(len(plan), 'input')}** :gray[{', '.join(word for word in words if word)}]",
            width="content",
        )
        st.space("stretch")
        if st.button("Go to Trace", key="inputs-trace", type="primary", icon=":material/play_circle:"):
            session.go("trace")


def _dimensions(artifact: str, plan: list[Plan]) -> None:
    """Ask for the size of every open dimension, once a symbol."""
    used = [item for item in plan if item.recipe is not None]
    uses = open_dimensions(item.slot for item in used)
    if not uses:
        return
    sizes = {key: size for item in used if item.recipe is not None for key, size in item.recipe.dims.items()}
    reasons = default_dims(item.slot for item in used)
    from_files = {
        key
        for key, places in uses.items()
        for item in used
        if item.recipe is not None and item.recipe.kind == "npy" and item.slot.name in {name for name, _ in places}
    }
    with st.container(border=True, key="inputs-dimensions"):
        st.markdown("**Open dimensions**")
        keys = list(uses)
        for start in range(0, len(keys), _IN_A_ROW):
            for key, column in zip(keys[start : start + _IN_A_ROW], st.columns(_IN_A_ROW), strict=False):
                fixed = key in from_files
                name = f"input-dimension-{artifact}-{key}" + (f"-{sizes.get(key)}" if fixed else "")
                places = ", ".join(f"axis {axis} of {plain(slot, 30)}" for slot, axis in uses[key])
                column.number_input(
                    plain(key, 40), 0, 1 << 31, sizes.get(key, 1), key=name, disabled=fixed,
                    help=f"{places}. {'Set by a file.' if fixed else plain(reasons[key].reason)}",
                    on_change=_resize, args=(artifact, key, name, {slot for slot, _ in uses[key]}),
                )  # fmt: skip


def _resize(artifact: str, key: str, widget: str, slots: set[str]) -> None:
    """Keep a size in the recipe of every input that uses it."""
    size = int(st.session_state[widget])
    for item in inputs.plan(session.actor(), artifact):
        if item.slot.name in slots and item.recipe is not None and item.recipe.kind != "npy":
            inputs.assign(
                session.actor(), artifact, item.slot.name, replace(item.recipe, dims={**item.recipe.dims, key: size})
            )


draw()
