"""From a model and arrays to a request that can be approved: every check comes before the start."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DTYPES, DType
from core.errors import InputMismatch, Unavailable, UsageError
from core.inputs.recipe import bind, shape_text
from core.ir import Dim, Graph, Model
from core.limits import MIB
from core.run.spool import Spool
from core.trace.types import RunLimits, TraceRequest

LEAST_MEMORY: Final = 160 * MIB
"""A worker that holds no model yet needs about 130 MiB of data memory."""

ENGINES: Final = ("auto", "onnxruntime", "reference", "normalized")
"""``auto`` is onnxruntime, and the reference evaluator of ``onnx`` for what it cannot run."""

MOST_STEPS: Final = 1024
PROVIDERS: Final = ("auto", "cpu")


@dataclass(frozen=True, slots=True)
class InputSlot:
    """One input that a run must be given.

    Attributes:
        dtype: element type, ``None`` where the file does not say.
        shape: declared dimensions: sizes, symbols, ``None`` for unknown ones.
        optional: the file stores a value for it, which is used where nothing is given.
        type_text: the written-out type where it is no tensor, e.g. ``sequence(float32)``.
    """

    name: str
    value_id: str
    dtype: str | None
    shape: tuple[Dim, ...] | None
    optional: bool = False
    type_text: str = ""


def input_slots(model: Model) -> list[InputSlot]:
    """The inputs of the main graph in order; those with a stored default are ``optional``.

    Raises:
        Unavailable: if the model has no graph that runs.
    """
    graph = _graph(model)
    values = [graph.value(index) for index in graph.inputs]
    return [InputSlot(v.name, v.id, v.dtype, v.shape, v.tensor >= 0, v.type_text) for v in values]


def request(
    model: Model,
    inputs: Mapping[str, NDArray[np.generic]],
    sources: Mapping[str, str],
    limits: RunLimits | None = None,
    digest: str = "",
    *,
    engine: str = "auto",
    latency: bool = True,
    keep: Sequence[str] = (),
    iterations: Sequence[int] = (),
    folder: str | os.PathLike[str] | None = None,
) -> tuple[TraceRequest, Spool]:
    """Check everything, write the spool, and return the request that is to be approved.

    Args:
        inputs: array by input name; bfloat16 as uint16 bits, floats of at most 8 bits as uint8
            patterns, int4 and uint4 as one int8 or uint8 an element.
        sources: where each input came from, in words.
        digest: of the model, to which the approval is bound.
        keep: value ids to store first.
        iterations: of Loop and Scan that are looked into, the first few where left out.
        folder: parent of the spool, the system's temporary folder where left out.

    Raises:
        InputMismatch: if an input is missing, unknown, or of another dtype or shape.
        Unavailable: if the model cannot be run.
        UsageError: if a limit makes no sense.
        SourceChanged: if the file is no longer the one that was opened.
    """
    limits = RunLimits() if limits is None else limits
    check_limits(limits)
    if engine not in ENGINES:
        raise UsageError(f"no engine is called {engine!r}", hint="Use one of " + ", ".join(ENGINES) + ".")
    _check_steps(iterations)
    slots = input_slots(model)
    check_inputs(slots, inputs)
    for source in model.sources:
        source.check_unchanged()
    spool = Spool.create(folder)
    written = tuple(
        spool.add_input(slot.name, slot.dtype or "", inputs[slot.name], sources.get(slot.name, "given"))
        for slot in slots
        if slot.name in inputs
    )
    made = TraceRequest(model.path, digest, written, limits, engine, latency, tuple(keep), iterations=tuple(iterations))
    spool.write_request(made, [(source.path, *source.identity) for source in model.sources])
    return made, spool


def check_limits(limits: RunLimits) -> None:
    """Refuse limits under which nothing can run.

    Raises:
        UsageError: with the limit, what it is and what is allowed.
    """
    if limits.memory < LEAST_MEMORY:
        raise UsageError(f"the memory limit is {limits.memory} bytes, a worker needs at least {LEAST_MEMORY}")
    if not (math.isfinite(limits.time) and limits.time > 0):
        raise UsageError(f"the time limit is {limits.time} s, expected more than 0")
    for name, least in (("capture", 1), ("store", 0), ("threads", 1)):
        found = getattr(limits, name)
        if found < least:
            raise UsageError(f"the {name} limit is {found}, expected at least {least}")
    if limits.threads > 1024:
        raise UsageError(f"the number of threads is {limits.threads}, allowed are 1 to 1024")
    if limits.provider not in PROVIDERS:
        raise UsageError(
            f"the provider {limits.provider!r} is not available here", hint="Use one of " + ", ".join(PROVIDERS) + "."
        )


def _check_steps(iterations: Sequence[int]) -> None:
    if len(iterations) > MOST_STEPS or any(step < 0 for step in iterations):
        raise UsageError(f"the iterations to look into are at most {MOST_STEPS} numbers from 0")


def check_inputs(slots: Sequence[InputSlot], inputs: Mapping[str, NDArray[np.generic]]) -> None:
    """Compare arrays with the declared signature, dimensions of one symbol among each other as well.

    Raises:
        InputMismatch: with the input's name, what is declared and what was given.
    """
    names = {slot.name for slot in slots}
    for name in inputs:
        if name not in names:
            raise InputMismatch(f"the model has no input {name!r}", hint="Its inputs are: " + ", ".join(sorted(names)))
    bound: dict[str, int] = {}
    for slot in slots:
        if slot.name not in inputs:
            if slot.optional:
                continue
            raise InputMismatch(f"input {slot.name!r} was not given", hint=f"It takes {_signature(slot)}.")
        if slot.type_text:
            raise InputMismatch(f"input {slot.name!r} is a {slot.type_text}, only plain tensors can be given")
        array = inputs[slot.name]
        _check_dtype(slot, array)
        bound = bind(slot, array.shape, bound)


def _check_dtype(slot: InputSlot, array: NDArray[np.generic]) -> None:
    dtype = DTYPES.get(slot.dtype or "")
    if dtype is None:
        raise InputMismatch(f"input {slot.name!r} declares no element type")
    fits = array.dtype.kind in "OU" if dtype.kind == "string" else array.dtype == _array_type(dtype)
    if not fits:
        found = f"{array.dtype} of shape {shape_text(array.shape)}"
        raise InputMismatch(f"input {slot.name!r} takes {_signature(slot)}, the array is {found}")


def _array_type(dtype: DType) -> np.dtype[np.generic]:
    if dtype.kind == "bool":
        return np.dtype(np.bool_)
    if dtype.packed and dtype.kind == "int":
        return np.dtype(np.int8)
    return np.dtype(dtype.storage).newbyteorder("=")


def _signature(slot: InputSlot) -> str:
    return slot.type_text or f"{slot.dtype or 'an unknown type'} of shape {shape_text(slot.shape)}"


def _graph(model: Model) -> Graph:
    capability = model.capability("trace")
    graph = model.main_graph
    if capability.availability == "unavailable" or graph is None:
        reason = capability.reason or "It has no graph that runs."
        raise Unavailable(f"cannot be run: {reason}", path=model.path)
    return graph
