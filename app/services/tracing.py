"""Runs of a model: prepared, approved by a person, done by a worker, kept in the database."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from app import workspace
from app.actors import Actor
from app.jobs import Job, Progress
from app.services import edits, inputs
from app.services.models import reach
from app.services.registry import service
from app.services.tables import TablePage, frame, query
from app.services.tables import page as as_frame
from core.errors import ApprovalVoid, Cancelled, NotFound, RunFailed
from core.ir import Model
from core.run import prepare as runs
from core.run import process
from core.run.result import collect
from core.run.spool import Spool
from core.store.traces import TraceRecord
from core.trace import capture
from core.trace.answers import table as answers
from core.trace.types import Approval, MemoryStep, RunLimits, TracedValue, TraceRequest, TraceResult
from core.trace.values import load_value

if TYPE_CHECKING:
    import pandas as pd

TICK: Final = 0.05
_PLANNED: Final = 20_000
"""Operators up to which values are ranked before a run."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that waits for approval.

    Attributes:
        id: of the trace that it will become.
        artifact: quick identity of the model.
    """

    id: str
    artifact: str
    request: TraceRequest
    spool: str


@service("collaborator")
def prepare(
    actor: Actor,
    artifact: str,
    limits: RunLimits | None = None,
    *,
    latency: bool = True,
    keep: tuple[str, ...] = (),
    engine: str = "auto",
) -> Prepared:
    """Make the inputs as planned, check them and write the spool; nothing runs yet.

    Where not all values fit, those of ``keep`` (ids of values or nodes) are stored first, then the
    model's outputs, then what leaves a block.

    Raises:
        InputMismatch, Unavailable, UsageError, SourceChanged: as ``core.run.prepare.request``.
    """
    opened, held = reach(actor, artifact), workspace.current()
    plan = inputs.plan(actor, artifact)
    arrays = inputs.materialise(actor, artifact)
    sources = {item.slot.name: item.recipe.describe() for item in plan if item.recipe is not None}
    model = edits.runnable(opened)
    request, spool = runs.request(
        model, arrays, sources, limits, opened.id, engine=engine, latency=latency,
        keep=_first(model, keep), folder=held.spools.folder,
    )  # fmt: skip
    trace = os.path.basename(spool.path)
    held.spools.hold(trace)
    return Prepared(trace, opened.quick, request, spool.path)


@service("collaborator")
def discard(actor: Actor, prepared: Prepared) -> None:
    """Throw away a prepared run that will not be started."""
    held = workspace.current()
    if not any(job.subject == prepared.id for job in held.jobs.list()):
        held.spools.let_go(prepared.id)
        held.spools.remove(prepared.id)


@service("collaborator")
def approve(actor: Actor, prepared: Prepared) -> Approval:
    """The acting person's consent to exactly this run."""
    return process.approve(prepared.request, actor.id)


@service("collaborator")
def start(actor: Actor, prepared: Prepared, approval: Approval) -> Job:
    """Run it in a job whose ``subject`` and result are the trace's id.

    The job fails where the run failed, timed out or met its memory limit; what the run left is
    kept as a trace in any case.

    Raises:
        ApprovalVoid: if the approval is another person's or of another request.
    """
    held = workspace.current()
    if approval.actor != actor.id or approval.fingerprint != prepared.request.fingerprint():
        raise ApprovalVoid("the run is not the one that you approved", hint="Approve it again.")
    if any(job.subject == prepared.id for job in held.jobs.list()):
        raise ApprovalVoid("this run was started already", hint="Prepare it again.")
    held.spools.hold(prepared.id, math.inf)
    name = os.path.basename(prepared.request.model_path)

    def work(progress: Progress, cancelled: Callable[[], bool]) -> str:
        try:
            result = _answered(prepared, _run(prepared, approval, progress, cancelled), progress)
            held.store.traces.put_trace(prepared.id, prepared.artifact, prepared.request, approval, result)
        finally:
            held.spools.make_room()
        if result.status == "cancelled":
            raise Cancelled(result.reason or "was stopped")
        if result.status not in ("complete", "partial"):
            raise RunFailed(result.reason)
        return prepared.id

    return held.jobs.submit(
        "trace", f"Trace of {name}", work,
        key=f"trace {prepared.id}", artifact=prepared.artifact, subject=prepared.id, actor=actor.id,
        memory=prepared.request.limits.memory,
    )  # fmt: skip


@service("collaborator")
def stop(actor: Actor, job: str) -> Job:
    """Stop a run; the values it has are kept."""
    return workspace.current().jobs.cancel(job)


@service("viewer")
def history(actor: Actor, artifact: str) -> list[TraceRecord]:
    """Runs of a model, newest first."""
    return workspace.current().store.traces.of_artifact(reach(actor, artifact).quick)


@service("viewer")
def result(actor: Actor, trace: str) -> TraceRecord:
    """How a run ended.

    Raises:
        NotFound: if there is none of that id.
    """
    return workspace.current().store.traces.record(trace)


@service("viewer")
def values(
    actor: Actor,
    trace: str,
    *,
    sort: str = "",
    descending: bool = False,
    text: str = "",
    dtype: str = "",
    node: str = "",
    value: str = "",
    after: int | None = None,
    start: int = 0,
    limit: int = 100,
    columns: Sequence[str] = (),
) -> TablePage:
    """Rows of the value table of a run, in the order of execution unless sorted.

    Columns: row, id, name, node, step, dtype, shape, start, stop, stored, reason, and the
    statistics columns of ``tensors.page``. Filters: part of the name, dtype, id of the node that
    made it, id of the value.
    """
    asked = query(sort, descending, text, dtype=dtype, node=node, id=value)
    traces = workspace.current().store.traces
    return as_frame(traces.values_page(trace, asked, after=after, start=start, limit=limit, columns=columns))


@service("viewer")
def nodes(
    actor: Actor,
    trace: str,
    *,
    sort: str = "",
    descending: bool = False,
    text: str = "",
    op_type: str = "",
    after: int | None = None,
    start: int = 0,
    limit: int = 100,
    columns: Sequence[str] = (),
) -> TablePage:
    """Rows of the latency table of a run: row, id, name, op_type, latency_us, provider."""
    asked = query(sort, descending, text, op_type=op_type)
    traces = workspace.current().store.traces
    return as_frame(traces.nodes_page(trace, asked, after=after, start=start, limit=limit, columns=columns))


@service("viewer")
def depth(actor: Actor, trace: str) -> pd.DataFrame:
    """All values of a run in the order of execution, with the columns of ``values`` but no histogram."""
    return frame(workspace.current().store.traces.depth(trace))


@service("viewer")
def described(actor: Actor, trace: str, value: str, step: int = 0) -> TracedValue:
    """One value of a run with its statistics; reads no spool.

    Raises:
        NotFound: if the run has no such value.
    """
    return workspace.current().store.traces.value(trace, value, step)


@service("viewer")
def value(actor: Actor, trace: str, value: str, step: int = 0) -> NDArray[np.generic]:
    """The elements of one value; reads them from the spool of the run.

    Raises:
        NotFound: if the run has no such value, did not store it, or its spool was removed.
    """
    held = workspace.current()
    found = held.store.traces.value(trace, value, step)
    return load_value(str(held.spools.path(trace)), found)


@service("viewer")
def kept(actor: Actor, trace: str) -> bool:
    """Whether the stored values of a run are still there."""
    return workspace.current().spools.kept(trace)


@service("collaborator")
def forget(actor: Actor, trace: str) -> None:
    """Remove a run and its values."""
    held = workspace.current()
    if any(job.subject == trace and job.active for job in held.jobs.list()):
        raise NotFound("this run is still at work", hint="Stop it first.")
    held.store.traces.forget(trace)
    held.spools.remove(trace)


def _first(model: Model, keep: tuple[str, ...]) -> tuple[str, ...]:
    """Ids of the values to store first; in a very large graph those of ``keep`` alone."""
    if model.main_graph is None or model.main_graph.node_count > _PLANNED:
        return keep
    return tuple(wish.value for wish in capture.plan(model, keep) if wish.rank < 3)


@service("viewer")
def memory(actor: Actor, trace: str) -> list[MemoryStep]:
    """Bytes of values alive after each operator, as measured; empty where the spool is gone or not all was made."""
    spool = Spool(workspace.current().spools.path(trace))
    request, _ = spool.read_request()
    return list(collect(spool, request, None, 0, 0.0, 0).memory)


def _run(prepared: Prepared, approval: Approval, progress: Progress, cancelled: Callable[[], bool]) -> TraceResult:
    if cancelled():
        raise Cancelled("was stopped before it began")
    run = process.start(prepared.request, Spool(prepared.spool), approval)
    while run.running:
        if cancelled():
            run.cancel()
        _tell(run.poll(), progress)
        time.sleep(TICK)
    _tell(run.poll(), progress)
    return run.wait()


def _answered(prepared: Prepared, result: TraceResult, progress: Progress) -> TraceResult:
    """The result with what it says about the model among its findings; a run cut short says nothing."""
    opened = workspace.current().models.find(prepared.artifact)
    if opened is None or result.status not in ("complete", "partial"):
        return result
    progress(0, 0, message="looking for what is wrong")
    return replace(result, findings=(*result.findings, *answers.of_result(opened.model, result)))


def _tell(events: list[dict[str, Any]], progress: Progress) -> None:
    for event in events:
        if event.get("event") == "progress":
            told = f"{event.get('phase', '')}: {event.get('doing', '')}"
            progress(float(event.get("done", 0)), float(event.get("total", 0)), message=told.strip(": "))
