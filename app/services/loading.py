"""Values that a run did not keep, made again from what it kept under the consent that it has."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Final

from app import workspace
from app.actors import Actor
from app.jobs import Job, Progress
from app.services.registry import service
from core.errors import ApprovalVoid, Cancelled, NotFound
from core.run import load as runs
from core.run import process
from core.run.result import collect
from core.run.spool import Spool
from core.trace.types import Approval, TracedValue, TraceRequest, TraceResult

KIND: Final = "value"
_PIECE: Final = 1 << 22
_TICK: Final = 0.05


@service("collaborator")
def load(actor: Actor, trace: str, value: str, step: int = 0) -> Job:
    """Make one value again that a trace did not keep; afterwards it is stored like any other.

    Only the operators between it and the nearest stored values are run.

    The model, its inputs and the limits are those that were approved; a model file that changed
    since refuses to run.

    Raises:
        NotFound: if the run, its inputs or the value are gone, or the value cannot be kept.
        ApprovalVoid: if the request on disk is not the one that was approved.
    """
    held = workspace.current()
    record, wanted = held.store.traces.record(trace), held.store.traces.value(trace, value, step)
    if wanted.stats is None or not wanted.stats.count:
        raise NotFound(f"{wanted.name!r} cannot be kept: {wanted.reason or 'it has no elements'}")
    spool = Spool(held.spools.path(trace))
    before, _ = spool.read_request()
    if before.fingerprint() != record.fingerprint:
        raise ApprovalVoid("the run on disk is not the one that was approved", hint="Run it again.")

    def work(progress: Progress, cancelled: Callable[[], bool]) -> str:
        result = collect(spool, before, None, 0, record.elapsed_s, record.peak_rss_bytes)
        again, copy = runs.request(result, wanted, held.spools.folder)
        name = os.path.basename(copy.path)
        held.spools.hold(name, math.inf)
        try:
            approval = Approval(again.fingerprint(), record.actor, record.approved_at)
            ended = _run(again, copy, approval, progress, cancelled)
            start, stop = _append(runs.loaded(ended, wanted), copy, spool)
            held.store.traces.place_value(trace, value, step, start, stop)
        finally:
            held.spools.let_go(name)
            copy.remove()
        return trace

    return held.jobs.submit(
        KIND, f"Value {wanted.name[:60]}", work, key=f"value {trace} {value} {step}", subject=f"{trace}/{value}/{step}",
        actor=actor.id, memory=before.limits.memory,
    )  # fmt: skip


@service("viewer")
def at_work(actor: Actor, trace: str, value: str, step: int = 0) -> Job | None:
    """The newest job that loads, or loaded, this value."""
    subject = f"{trace}/{value}/{step}"
    found = (job for job in workspace.current().jobs.list() if job.kind == KIND and job.subject == subject)
    return next(found, None)


def _run(
    request: TraceRequest, spool: Spool, approval: Approval, progress: Progress, cancelled: Callable[[], bool]
) -> TraceResult:
    run = process.start(request, spool, approval)
    while run.running:
        if cancelled():
            run.cancel()
        for event in run.poll():
            if event.get("event") == "progress":
                progress(float(event.get("done", 0)), float(event.get("total", 0)))
        time.sleep(_TICK)
    result = run.wait()
    if result.status == "cancelled":
        raise Cancelled(result.reason)
    return result


def _append(value: TracedValue, source: Spool, target: Spool) -> tuple[int, int]:
    """Copy the elements behind those that the run kept; where they lie now."""
    with open(source.values_file, "rb") as taken, open(target.values_file, "ab") as kept:
        start = kept.tell()
        taken.seek(value.start)
        left = value.stop - value.start
        while left and (piece := taken.read(min(left, _PIECE))):
            kept.write(piece)
            left -= len(piece)
    return start, start + value.stop - value.start
