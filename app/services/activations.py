"""What the pages show of single values of a run: which views fit, token labels, pictures, comparisons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from app import workspace
from app.actors import Actor
from app.services.models import reach
from app.services.registry import service
from core.dtypes import DTYPES
from core.errors import ModelError, NotFound
from core.inputs.generic import indexed_rows
from core.inputs.tokenizers import load as tokenizers
from core.inputs.tokenizers.types import Tokenizer
from core.ir import Model
from core.run.prepare import input_slots
from core.store.traces import TraceRecord
from core.trace.answers import attention
from core.trace.answers.channels import unit_axis
from core.trace.answers.reading import Reading
from core.trace.types import RunInput, TracedValue
from core.trace.values import load_value
from core.trace.views import difference, feature_maps, stack
from core.trace.views.offer import Subject

if TYPE_CHECKING:
    import pandas as pd

TOKENS: Final = 4096
"""Token labels made at most."""

_IDS: Final = ("int64", "int32")


@dataclass(frozen=True, slots=True)
class Layer:
    """A value that plays the same part in another layer."""

    id: str
    name: str


@service("viewer")
def subject(actor: Actor, artifact: str, trace: str, value: str, step: int = 0) -> Subject:
    """What decides which views a value is offered.

    Raises:
        NotFound: if the run has no such value.
    """
    run = reading(actor, artifact, trace)
    found = _value(run, value, step)
    dtype = DTYPES.get(found.dtype)
    picture = _picture(run, trace)
    return Subject(
        found.shape,
        dtype.kind if dtype is not None else "opaque",
        found.stored and workspace.current().spools.kept(trace),
        attention=found.id in {weights.id for weights in _attention(actor, artifact, trace)},
        vocabulary=_vocabulary(actor, artifact, trace),
        image=None if picture is None else (picture.shape[0], picture.shape[1]),
        layers=len(_layers(actor, artifact, trace, found)),
        channel_axis=unit_axis(run.model, found.id, len(found.shape)),
    )


@service("viewer")
def layers(actor: Actor, artifact: str, trace: str, value: str) -> list[Layer]:
    """The values that play the same part in the other layers, this one among them, in order.

    Raises:
        NotFound: if the run has no such value.
    """
    found = _value(reading(actor, artifact, trace), value, 0)
    return [Layer(item.id, item.name) for item in _layers(actor, artifact, trace, found)]


@service("viewer")
def token_labels(actor: Actor, artifact: str, trace: str) -> list[str]:
    """The tokens of the first row of the run's id input: pieces of the vocabulary, else the ids; empty without one."""
    record = workspace.current().store.traces.record(trace)
    item = _id_input(record)
    if item is None:
        return []
    try:
        ids = _input_array(trace, item).reshape(-1, item.shape[-1])[0][:TOKENS]
    except ModelError:
        return []
    return pieces(actor, artifact, [int(i) for i in ids])


@service("viewer")
def pieces(actor: Actor, artifact: str, ids: list[int]) -> list[str]:
    """Each id as the tokenizer beside the model writes it, as its number where there is none."""
    tokenizer = _tokenizer(actor, artifact)
    return [_piece(tokenizer, token) for token in ids]


@service("viewer")
def picture(actor: Actor, artifact: str, trace: str) -> NDArray[np.uint8] | None:
    """The first picture among the inputs of a run, [height, width, 3]; reads the spool."""
    return _picture(reading(actor, artifact, trace), trace)


@service("viewer")
def steps(actor: Actor, trace: str, value: str) -> list[int]:
    """The executions of its graph in which a value was captured."""
    return workspace.current().store.traces.steps(trace, value)


@service("viewer")
def compare(actor: Actor, artifact: str, trace: str, other: str) -> pd.DataFrame:
    """Every value of one run against the same of another, in order of execution; reads both spools.

    Columns: row, id, name, step, max_abs, relative_l2, cosine, sqnr_db, reason.

    Raises:
        NotFound: if one of them is not there, or was stopped before its end.
    """
    import pandas as pd

    for run in (trace, other):
        record = workspace.current().store.traces.record(run)
        if record.status not in ("complete", "partial"):
            raise NotFound("a run that did not come to its end is not compared", hint="Choose a complete one.")

    def make(_: Model) -> pd.DataFrame:
        first, second = reading(actor, artifact, trace), reading(actor, artifact, other)
        drifts = difference.along_depth(first.values, second.values, first.fetch, second.fetch)
        return pd.DataFrame([_drift(row, item) for row, item in enumerate(drifts)])

    return reach(actor, artifact).derived(("compared", trace, other), make)


def _drift(row: int, item: difference.Drift) -> dict[str, Any]:
    found = item.found
    measured = ("max_abs", "relative_l2", "cosine", "sqnr_db")
    return {
        "row": row,
        "id": item.first.id,
        "name": item.first.name,
        "step": item.first.step,
        **{name: math.nan if found is None else getattr(found, name) for name in measured},
        "reason": item.reason,
    }


def reading(actor: Actor, artifact: str, trace: str) -> Reading:
    """A run as answers and views read it; for services only."""
    held = workspace.current()
    opened = reach(actor, artifact)

    def fetch(value: TracedValue) -> NDArray[Any]:
        return load_value(str(held.spools.path(trace)), value)

    return opened.derived(
        ("reading", trace, held.store.traces.stored(trace)),
        lambda model: Reading(model, tuple(held.store.traces.all_values(trace)), fetch),
    )


def _value(run: Reading, value: str, step: int) -> TracedValue:
    found = run.at(value, step)
    if found is None:
        raise NotFound(f"the run has no value {value[:80]!r} at step {step}")
    return found


def _attention(actor: Actor, artifact: str, trace: str) -> list[TracedValue]:
    run = reading(actor, artifact, trace)
    return reach(actor, artifact).derived(("attention", trace), lambda _: attention.weights(run))


def _layers(actor: Actor, artifact: str, trace: str, value: TracedValue) -> list[TracedValue]:
    run = reading(actor, artifact, trace)
    ids = reach(actor, artifact).derived(("alike", value.id), lambda model: stack.alike(model, value.id))
    found = [run.at(item, 0) for item in ids]
    return [item for item in found if item is not None and item.stored and item.shape == value.shape]


def _picture(run: Reading, trace: str) -> NDArray[np.uint8] | None:
    record = workspace.current().store.traces.record(trace)
    for item in record.inputs:
        if len(item.shape) in (3, 4):
            try:
                found = feature_maps.picture_of(_input_array(trace, item))
            except ModelError:
                continue
            if found is not None:
                return found
    return None


def _id_input(record: TraceRecord) -> RunInput | None:
    """The input that carries token ids: by its name, else the only whole numbers of two axes."""
    whole = [i for i in record.inputs if i.dtype in _IDS and len(i.shape) in (1, 2) and i.shape[-1:] > (1,)]
    named = [i for i in whole if "id" in i.name.lower() and "position" not in i.name.lower()]
    named = [i for i in named if "type" not in i.name.lower()]
    return named[0] if named else whole[0] if len(whole) == 1 else None


def _input_array(trace: str, item: RunInput) -> NDArray[Any]:
    place = workspace.current().spools.path(trace) / "inputs" / Path(item.file).name
    try:
        return np.load(place, allow_pickle=False)
    except (OSError, ValueError):
        raise NotFound(f"the input {item.name!r} of this run is gone", hint="Run it again.") from None


def _tokenizer(actor: Actor, artifact: str) -> Tokenizer | None:
    def make(model: Model) -> Tokenizer | None:
        try:
            return tokenizers.load(model)
        except ModelError:
            return None

    return reach(actor, artifact).derived("tokenizer", make)


def _vocabulary(actor: Actor, artifact: str, trace: str) -> int:
    """Size of the tokenizer's vocabulary, else rows of the table that the id input looks up."""
    tokenizer = _tokenizer(actor, artifact)
    if tokenizer is not None:
        return tokenizer.info.size
    item = _id_input(workspace.current().store.traces.record(trace))
    if item is None:
        return 0

    def rows(model: Model) -> int:
        found = [slot for slot in input_slots(model) if slot.name == item.name]
        return (indexed_rows(found[0], model) or 0) if found else 0

    return reach(actor, artifact).derived(("table rows", item.name), rows)


def _piece(tokenizer: Tokenizer | None, token: int) -> str:
    if tokenizer is None:
        return str(token)
    try:
        return tokenizer.decode([token], special=True) or str(token)
    except ModelError:
        return str(token)
