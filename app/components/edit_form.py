"""A form for one edit: its fields by their types, filled in from the thing that is edited."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Final, get_args, get_origin, get_type_hints

import streamlit as st

from app.plain_text import plain
from core.edits.kinds import KINDS, Edit, from_json
from core.edits.menu import Choice
from core.errors import UsageError

_LABELS: Final[Mapping[str, str]] = {
    "to": "To",
    "node": "Node",
    "value": "Value",
    "tensor": "Tensor",
    "name": "Name",
    "op_type": "Operator",
    "domain": "Domain",
    "attributes": "Attributes, as JSON",
    "consumers": "Only before these nodes, one a line",
    "graph": "Graph",
    "scale": "Scale",
    "zero_point": "Zero point",
    "dtype": "Element type",
    "nodes": "Nodes, one a line",
    "index": "Input number, from 0",
    "inputs": "From these values, one a line",
    "outputs": "To these values, one a line",
    "clean": "Also remove what only it needed",
    "symbol": "Symbol",
    "size": "Size",
    "axis": "Axis, from 0",
    "layout": "Layout",
    "mean": "Mean a channel",
    "std": "Standard deviation a channel",
    "factor": "Factor",
    "at": "Slice, such as 0, :, 2:5",
    "path": "Path of the .npy file",
    "sha256": "Its SHA-256",
    "keep": "Nodes that stay in float32, one a line",
    "boundary": "Inputs and outputs stay float32",
    "key": "Key",
    "text": "Text",
}
_FIXED: Final = frozenset({"node", "graph", "sha256", "nodes"})
"""Fields that the thing itself gives and nobody types."""

_HIDDEN_AT_DEFAULT: Final = frozenset({"name"})


def edit_form(choice: Choice, key: str) -> Edit | None:
    """Draw the form; gives the edit where it was asked to be tried.

    Raises:
        UsageError: if what was typed makes no edit.
    """
    kind = KINDS[choice.kind]
    hints = get_type_hints(kind)
    given: dict[str, Any] = {"edit": choice.kind, **choice.preset}
    with st.form(f"{key}-{choice.kind}", border=False):
        for field in fields(kind):
            if _skipped(field, choice):
                continue
            value = _widget(field, hints[field.name], choice, f"{key}-{choice.kind}-{field.name}")
            if value is not None:
                given[field.name] = value
        asked = st.form_submit_button("Preview", type="primary", icon=":material/preview:")
    return from_json(given) if asked else None


def _skipped(field: Field[Any], choice: Choice) -> bool:
    if field.name in ("value", "tensor") and field.name in choice.preset:
        return True
    if field.name in _FIXED and (field.name in choice.preset or field.default is not MISSING):
        return True
    return field.name in _HIDDEN_AT_DEFAULT and field.default is not MISSING


def _widget(field: Field[Any], hint: Any, choice: Choice, key: str) -> Any:
    label = _LABELS[field.name]
    preset = choice.preset.get(field.name, None if field.default is MISSING else field.default)
    if field.name in choice.choices and choice.kind != "insert_node":
        return _pick(label, choice.choices[field.name], preset, key)
    if field.name == "op_type":
        known = list(choice.choices.get("op_type", ())) or [str(preset or "")]
        return st.selectbox(label, known, key=key, accept_new_options=True)
    origin = get_origin(hint)
    if hint is bool:
        return st.checkbox(label, bool(preset), key=key)
    if hint is int:
        return int(st.number_input(label, value=int(preset or 0), step=1, key=key))
    if hint is float:
        return float(st.number_input(label, value=float(1.0 if preset is None else preset), format="%g", key=key))
    if hint == list[float]:
        return _numbers(label, preset, key)
    if origin is list or (origin is types.UnionType and list[str] in get_args(hint) and type(None) in get_args(hint)):
        lines = st.text_area(label, "\n".join(preset or ()), key=key, height=90).split("\n")
        names = [line for line in lines if line]
        return names or (None if origin is types.UnionType else [])
    if origin is types.UnionType or (origin is not None and origin is not list):
        return _json(label, field.name, hint, preset, key)
    return st.text_input(label, str(preset or ""), key=key)


def _pick(label: str, options: Any, preset: Any, key: str) -> str | None:
    listed = list(options)
    return st.selectbox(
        label, listed, listed.index(preset) if preset in listed else 0, key=key, format_func=lambda x: plain(x, 80)
    )


def _numbers(label: str, preset: Any, key: str) -> list[float]:
    text = st.text_input(label, ", ".join(f"{number:g}" for number in preset or ()), key=key)
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"{label.lower()} needs numbers with commas between them, found {text[:80]!r}") from None


def _json(label: str, name: str, hint: Any, preset: Any, key: str) -> Any:
    """A value that may be of several types: JSON where it reads as such, else the text itself."""
    mapping = name == "attributes"
    text = st.text_input(
        label, json.dumps(preset or {}) if mapping else "" if preset is None else str(preset), key=key,
        help=None if mapping else "A number, a list such as [1, 2], or a text",
    )  # fmt: skip
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if mapping:
            raise UsageError(f'attributes are written as {{"axis": 1}}, found {text[:80]!r}') from None
        return text
