"""Making chosen values of an earlier run again: only the nodes between them and what that run stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, dtype_of
from core.errors import RunError
from core.run.spool import EventReader, Spool
from core.source import Source
from core.trace.types import Status, TracedValue
from worker.capture import MAIN, Capture, Place, Sink
from worker.engines.onnxruntime import begin, engine_text, finish
from worker.engines.ort_values import from_stored
from worker.engines.runners import Held
from worker.engines.walk import Walk, inputs_of
from worker.job import Job, Outcome
from worker.report import Report
from worker.runtime_model import RuntimeModel


class _Only:
    """Passes on the wanted values alone."""

    def __init__(self, capture: Capture, wanted: dict[tuple[int, str, str], int], place: Place = MAIN) -> None:
        """``wanted`` has the step by graph, path and name."""
        self._capture, self._wanted, self._place = capture, wanted, place

    def inside(self, place: Place) -> Sink | None:
        return _Only(self._capture, self._wanted, place) if any(graph for graph, _, _ in self._wanted) else None

    def tensor(
        self, name: str, node: str, dtype: DType, shape: tuple[int, ...], stored: NDArray[np.uint8], array: NDArray[Any]
    ) -> None:
        step = self._wanted.get((self._place.graph, self._place.path, name))
        if step is not None:
            place = Place(self._place.graph, step, self._place.path)
            self._capture.keep(place, name, node, dtype, shape, stored, array)

    def other(self, name: str, node: str, type_text: str, shape: tuple[int, ...], reason: str) -> None:
        """Nothing that is no tensor is asked for."""

    def missing(self, name: str, node: str, dtype: str, reason: str) -> None:
        """What could not be made was not asked for."""


def run(job: Job, report: Report, held: dict[str, str]) -> Outcome:
    """Make the targets of the request again.

    Raises:
        RunError: if the earlier run is gone.
        Unavailable: if nothing of this model can be run.
    """
    model, shared = begin(job, report, held)
    before = _values(job.request.origin)
    targets = [value for value in before if f"{value.id}@{value.step}" in job.request.targets]
    stored = {v.name: v for v in before if v.stored and not v.path and not v.step and v not in targets}
    nodes, taken = _needed(model, targets, {*stored, *job.inputs})
    inputs = inputs_of(job)
    outer = _read(job.request.origin, [stored[name] for name in taken if name in stored and name not in inputs])
    wanted = {(int(v.id[1:].split(".")[0]), v.path, v.name): v.step for v in targets}
    with Capture(job.spool, report, job.model, job.request.limits.store, (), {}) as capture:
        walk = Walk(shared, model, _Only(capture, wanted))
        walk.run(inputs, outer, nodes)
        status, reason = finish(shared, walk)
    report.captured(status, reason)
    return Outcome(_status(status), reason, engine=engine_text(shared))


def _status(status: Status) -> Status:
    return "complete" if status == "partial" else status


def _values(origin: str) -> list[TracedValue]:
    events = EventReader(Spool(origin)).read()
    found = [TracedValue.from_json(event["value"]) for event in events if event["event"] == "value"]
    if not found:
        raise RunError("the run that this value belongs to is gone", path=origin, hint="Run it again.")
    return found


def _needed(model: RuntimeModel, targets: Iterable[TracedValue], known: set[str]) -> tuple[set[int], set[str]]:
    """Nodes of the main graph that have to run, and names that they take from what is known."""
    producer = {name: place for place in model.order for name in model.makes[place]}
    at = {model.id(place): place for place in model.order}
    nodes: set[int] = set()
    taken: set[str] = set()
    waiting = [at[value.path.split("/")[0].split("[")[0]] for value in targets if value.path]
    waiting += [producer[value.name] for value in targets if not value.path and value.name in producer]
    while waiting:
        place = waiting.pop()
        if place in nodes:
            continue
        nodes.add(place)
        for name in model.needs[place]:
            if name in known:
                taken.add(name)
            elif name in producer:
                waiting.append(producer[name])
    return nodes, taken


def _read(origin: str, values: Iterable[TracedValue]) -> dict[str, Held]:
    source = Source(Spool(origin).values_file)
    try:
        found: dict[str, Held] = {}
        for value in values:
            raw = np.empty(value.stop - value.start, np.uint8)
            source.read_into(value.start, memoryview(raw.data))
            made = from_stored(raw, dtype_of(value.dtype), value.shape)
            found[value.name] = Held(made, made.data_type())
        return found
    finally:
        source.close()
