"""Running a model before and after an edit on the same inputs, in the worker, and comparing what comes out."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from core.errors import Cancelled, InputMismatch, ModelError, UsageError
from core.identity import quick
from core.inputs.generic import default_recipe, generate, shared_dims
from core.inputs.recipe import with_dims
from core.ir import Model
from core.run import prepare, process
from core.run.prepare import InputSlot, input_slots
from core.trace.types import RunLimits, TraceResult
from core.trace.values import load_value

Arrays = dict[str, NDArray[Any]]
Verdict = Literal["bit-exact", "within tolerance", "different", "runs", "not run"]
SEEDS: Final = (0, 1)
TOLERANCE: Final = 1e-3
"""Relative L2 error of an output up to which it counts as within tolerance."""

_TICK: Final = 0.05


@dataclass(frozen=True, slots=True)
class OutputError:
    """How far an output moved, the worst over all runs.

    Attributes:
        max_abs: largest absolute difference.
        relative_l2: ||after - before|| / ||before||, 0 for equal ones.
        sqnr_db: 10 log10(||before||^2 / ||after - before||^2), ``None`` for equal ones.
        equal: whether every run gave the same bits.
    """

    name: str
    max_abs: float
    relative_l2: float
    sqnr_db: float | None
    equal: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """What runs before and after showed.

    Attributes:
        verdict: ``bit-exact`` or ``within tolerance`` (``TOLERANCE``) or ``different`` where both were
            compared; ``runs`` where only the edited model could be run, since its inputs are others;
            ``not run`` where it could not.
        reason: why it was not compared or not run, empty where it was.
        seeds: of the random inputs.
    """

    verdict: Verdict
    reason: str
    outputs: tuple[OutputError, ...]
    seeds: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def prove(
    before: Model,
    after: Model,
    *,
    limits: RunLimits | None = None,
    seeds: Sequence[int] = SEEDS,
    cancelled: Callable[[], bool] | None = None,
) -> Proof:
    """Run both models on seeded inputs and compare their outputs; starts worker processes.

    Args:
        after: as written to a file: the worker reads it from there.

    Raises:
        Cancelled: once ``cancelled`` says so.
    """
    limits = limits or RunLimits()
    worst = dict[str, OutputError]()
    same, reason = _same_inputs(before, after)
    for seed in seeds:
        try:
            arrays = _inputs(before if same else after, seed)
            found, problem = run_outputs(after, arrays, limits, cancelled)
        except (InputMismatch, UsageError) as error:
            return Proof("not run", error.message, (), tuple(seeds))
        if problem:
            return Proof("not run", problem, (), tuple(seeds))
        if not same:
            return Proof("runs", reason, (), (seed,))
        known, problem = run_outputs(before, arrays, limits, cancelled)
        if problem:
            return Proof("runs", f"the model before the edit does not run: {problem}", (), (seed,))
        pairs, reason = _pairs(known, found)
        if reason:
            return Proof("runs", reason, (), (seed,))
        for name, first, second in pairs:
            error = compare(name, first, second)
            worst[name] = _worse(worst.get(name), error)
    errors = tuple(worst.values())
    return Proof(_verdict(errors), "", errors, tuple(seeds))


def run_outputs(
    model: Model, arrays: Arrays, limits: RunLimits, cancelled: Callable[[], bool] | None = None
) -> tuple[Arrays, str]:
    """Outputs of one run by name, and why there are none; starts a worker process."""
    graph = model.graphs[0]
    keep = [f"g0.v{index}" for index in graph.outputs]
    with tempfile.TemporaryDirectory(prefix="modelglass-") as folder:
        try:
            request, spool = prepare.request(
                model, arrays, {}, limits, quick(model), latency=False, keep=keep, folder=folder
            )
            run = process.start(request, spool, process.approve(request, "comparison"))
        except InputMismatch:
            raise
        except ModelError as error:
            return {}, error.message
        result = _end(run, cancelled)
        if result.status != "complete":
            return {}, result.reason or f"the run ended as {result.status}"
        values = {value.id: value for value in result.values}
        found: Arrays = {}
        for index in graph.outputs:
            value = values.get(f"g0.v{index}")
            if value is None or not value.stored:
                return {}, f"the output {graph.columns.value_names[index][:200]!r} was not kept"
            found[value.name] = load_value(result, value)
        return found, ""


def compare(name: str, before: NDArray[Any], after: NDArray[Any]) -> OutputError:
    """The error of one array against another of the same shape, in float64."""
    if before.dtype.kind == "O" or after.dtype.kind == "O":
        equal = bool(np.array_equal(before, after))
        return OutputError(name, 0.0 if equal else 1.0, 0.0 if equal else 1.0, None, equal)
    first, second = np.asarray(before, np.float64), np.asarray(after, np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    if before.dtype == after.dtype and bool(same.all()):
        return OutputError(name, 0.0, 0.0, None, equal=True)
    difference = np.where(same, 0.0, second - first)
    noise, signal = (
        float(np.linalg.norm(difference)),
        float(np.linalg.norm(np.where(same & ~np.isfinite(first), 0.0, first))),
    )
    relative = noise / signal if signal else (0.0 if noise == 0 else float("inf"))
    sqnr = 20 * float(np.log10(signal / noise)) if noise and signal else None
    return OutputError(name, float(np.abs(difference).max(initial=0.0)), relative, sqnr, equal=False)


def _end(run: process.Run, cancelled: Callable[[], bool] | None) -> TraceResult:
    try:
        while run.running:
            if cancelled is not None and cancelled():
                raise Cancelled("was stopped while the models were compared")
            run.poll()
            time.sleep(_TICK)
        return run.wait()
    finally:
        run.cancel()


def _inputs(model: Model, seed: int) -> Arrays:
    slots = [slot for slot in input_slots(model) if not slot.optional]
    recipes = {slot.name: default_recipe(slot, model).recipe for slot in slots}
    known = shared_dims(slots, recipes, {})
    made = Arrays()
    for slot in slots:
        made[slot.name] = generate(slot, replace(with_dims(recipes[slot.name], known), seed=seed))
    return made


def _same_inputs(before: Model, after: Model) -> tuple[bool, str]:
    old, new = ([slot for slot in input_slots(model) if not slot.optional] for model in (before, after))
    if [(slot.name, slot.dtype) for slot in old] != [(slot.name, slot.dtype) for slot in new]:
        return False, "its inputs are others than before the edit"
    if any(not _shapes_meet(a, b) for a, b in zip(old, new, strict=True)):
        return False, "its inputs have other shapes than before the edit"
    return True, ""


def _shapes_meet(before: InputSlot, after: InputSlot) -> bool:
    """Whether an input that fits one can fit the other."""
    if before.shape is None or after.shape is None:
        return True
    if len(before.shape) != len(after.shape):
        return False
    both = zip(before.shape, after.shape, strict=True)
    return all(not (isinstance(a, int) and isinstance(b, int)) or a == b for a, b in both)


def _pairs(before: Arrays, after: Arrays) -> tuple[list[tuple[str, NDArray[Any], NDArray[Any]]], str]:
    """Outputs that correspond: by name, else by place where there are as many."""
    if set(before) & set(after):
        pairs = [(name, before[name], after[name]) for name in before if name in after]
    elif len(before) == len(after):
        pairs = [(name, first, second) for first, (name, second) in zip(before.values(), after.items(), strict=True)]
    else:
        return [], "its outputs are others than before the edit"
    moved = [name for name, first, second in pairs if first.shape != second.shape]
    return (pairs, "") if not moved else ([], f"the output {moved[0][:200]!r} has another shape than before the edit")


def _worse(known: OutputError | None, found: OutputError) -> OutputError:
    if known is None:
        return found
    sqnr = [value for value in (known.sqnr_db, found.sqnr_db) if value is not None]
    return OutputError(
        found.name, max(known.max_abs, found.max_abs), max(known.relative_l2, found.relative_l2),
        min(sqnr) if sqnr else None, known.equal and found.equal,
    )  # fmt: skip


def _verdict(errors: tuple[OutputError, ...]) -> Verdict:
    if all(error.equal for error in errors):
        return "bit-exact"
    return "within tolerance" if all(error.relative_l2 <= TOLERANCE for error in errors) else "different"
