"""One input of a model: what it takes, the recipe for it, and what it will see."""

from __future__ import annotations

import json
import math
import os
from typing import Final

import streamlit as st

from app import format_text, session
from app.components import array_view, error_box
from app.plain_text import mono, plain
from app.services import input_files, inputs, models
from app.services.inputs import Plan
from core.dtypes import DTYPES
from core.inputs.generic import generate
from core.inputs.recipe import Recipe, RecipeKind
from core.ir import Model
from core.statistics.arrays import of_array
from core.statistics.types import TensorStats

KINDS: Final[dict[RecipeKind, str]] = {"random": "Random", "zeros": "Zeros", "ones": "Ones", "npy": "From .npy"}


def input_card(artifact: str, plan: Plan) -> None:
    """Draw one card; what is chosen here takes effect with Assign."""
    slot = plan.slot
    key = f"input-{slot.value_id}"
    with st.container(border=True, key=key):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{mono(slot.name, 80)}**", width="content")
            kind = (
                plain(slot.type_text) or f"{mono(slot.dtype or 'unknown type')} {plain(format_text.shape(slot.shape))}"
            )
            st.markdown(f":gray[{kind}]", width="content")
            st.space("stretch")
            _state(plan)
        if plan.recipe is None:
            st.caption("The file stores a value for it, which is used.")
            if st.button("Give another one", key=f"{key}-give"):
                inputs.assign(session.actor(), artifact, slot.name, Recipe("zeros"))
                st.rerun()
            return
        left, right = st.columns([3, 2], gap="medium")
        with left:
            recipe = _recipe(artifact, plan, plan.recipe, key)
            if plan.reason:
                st.caption(plain(plan.reason, 300))
        with right:
            _preview(artifact, plan, recipe, key)


def _state(plan: Plan) -> None:
    if plan.assigned:
        st.badge("Assigned", icon=":material/check:", color="green")
    else:
        st.badge("Stored" if plan.recipe is None else "Proposed", color="gray")


def _recipe(artifact: str, plan: Plan, now: Recipe, key: str) -> Recipe | None:
    """The recipe as the widgets say; ``None`` where a file is still to be given."""
    kind: RecipeKind = st.segmented_control(
        "Recipe", list(KINDS), default=now.kind, required=True, format_func=KINDS.__getitem__, key=f"{key}-kind",
        label_visibility="collapsed",
    )  # fmt: skip
    if kind == "npy":
        return _file(artifact, plan, now, key)
    chosen = Recipe(kind, dims=now.dims)
    if kind == "random":
        chosen = _random(plan, now, key)
    changed = (chosen.kind, chosen.seed, chosen.low, chosen.high) != (now.kind, now.seed, now.low, now.high)
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Assign", key=f"{key}-assign", type="primary" if changed else "secondary", icon=":material/check:",
            disabled=plan.assigned and not changed, on_click=_assign, args=(artifact, plan.slot.name, chosen),
        )  # fmt: skip
        _reset(artifact, plan, key)
    return chosen


def _random(plan: Plan, now: Recipe, key: str) -> Recipe:
    dtype = DTYPES.get(plan.slot.dtype or "")
    seed_box, low_box, high_box = st.columns(3)
    seed = int(seed_box.number_input("Seed", 0, 2**31 - 1, min(now.seed, 2**31 - 1), key=f"{key}-seed"))
    if dtype is None or dtype.kind not in ("float", "int", "uint"):
        return Recipe("random", seed, dims=now.dims)
    if dtype.kind == "float":
        low = low_box.number_input("From", value=now.low, key=f"{key}-low", placeholder="normal", format="%g")
        high = high_box.number_input("To", value=now.high, key=f"{key}-high", placeholder="normal", format="%g")
        return Recipe("random", seed, low, high, now.dims)
    first = low_box.number_input("From", value=math.ceil(now.low or 0), key=f"{key}-low", step=1)
    last = high_box.number_input("To", value=math.floor(9 if now.high is None else now.high), key=f"{key}-high", step=1)
    return Recipe("random", seed, int(first), int(last), now.dims)


def _file(artifact: str, plan: Plan, now: Recipe, key: str) -> Recipe | None:
    name = plan.slot.name
    if now.kind == "npy":
        st.caption(f"{mono(now.path, 90)}")
    given = st.file_uploader("A .npy file", type="npy", key=f"{key}-upload", label_visibility="collapsed")
    mark = f"{key}-taken"
    if given is not None and st.session_state.get(mark) != given.file_id:
        input_files.assign_upload(session.actor(), artifact, name, given.name, given)
        st.session_state[mark] = given.file_id
        st.rerun()
    with st.form(f"{key}-path-form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        path = st.text_input("or the path of one", key=f"{key}-path", placeholder="/data/cat.npy")
        if st.form_submit_button("Assign", icon=":material/check:"):
            inputs.assign(session.actor(), artifact, name, Recipe("npy", dims=now.dims, path=path))
            st.rerun()
    _reset(artifact, plan, key)
    return now if now.kind == "npy" else None


def _reset(artifact: str, plan: Plan, key: str) -> None:
    if plan.assigned:
        st.button(
            "Back to the proposal", key=f"{key}-reset", type="tertiary", icon=":material/undo:",
            on_click=_forget, args=(artifact, plan.slot.name, key),
        )  # fmt: skip


def _assign(artifact: str, name: str, recipe: Recipe) -> None:
    inputs.assign(session.actor(), artifact, name, recipe)


def _forget(artifact: str, name: str, key: str) -> None:
    inputs.assign(session.actor(), artifact, name, None)
    for part in ("kind", "seed", "low", "high", "upload", "path", "taken"):
        st.session_state.pop(f"{key}-{part}", None)


# --- preview ----------------------------------------------------------------------------


def _preview(artifact: str, plan: Plan, recipe: Recipe | None, key: str) -> None:
    if recipe is None:
        st.caption("Give a file to see what is in it.")
        return

    def make(_: Model) -> tuple[tuple[int, ...], TensorStats]:
        if recipe.kind == "npy":
            array = inputs.materialise_one(session.actor(), artifact, plan.slot.name)
        else:
            array = generate(plan.slot, recipe)
        return array.shape, of_array(array, DTYPES[plan.slot.dtype or ""])

    changed = os.stat(recipe.path).st_mtime_ns if os.path.exists(recipe.path) else 0
    wanted = ("input preview", plan.slot.name, json.dumps(recipe.to_json(), sort_keys=True), changed)
    with error_box.guard() as outcome:
        shape, stats = models.derived(session.actor(), artifact, wanted, make)
    if outcome.failed:
        return
    st.markdown(f"{plain(format_text.shape(shape))} :gray[{plain(recipe.describe(), 80)}]")
    if stats.min is None:
        st.caption(format_text.plural(stats.count, "element"))
        return
    array_view.facts(stats)
    if stats.histogram is not None and stats.count > 1:
        array_view.small_histogram(stats.histogram, f"{key}-preview")
