"""Putting together how a run ended, from whatever the worker left behind."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from core.errors import RunError
from core.ir import Finding
from core.limits import GIB, MIB
from core.run.spool import EventReader, Spool
from core.trace.types import MemoryStep, NodeTiming, Status, TracedValue, TraceRequest, TraceResult

_LOG_TAIL: Final = 4096
_OUT_OF_MEMORY: Final = (b"bad_alloc", b"MemoryError", b"Cannot allocate memory")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why the watcher put an end to a worker."""

    status: Literal["cancelled", "timeout", "memory"]


@dataclass
class _Left:
    """What the events say."""

    values: list[TracedValue]
    nodes: list[NodeTiming]
    findings: list[Finding]
    started: Mapping[str, Any]
    captured: Mapping[str, Any] | None = None
    memory: tuple[MemoryStep, ...] = ()
    doing: str = ""


def collect(
    spool: Spool,
    request: TraceRequest,
    verdict: Verdict | None,
    code: int | None,
    elapsed: float,
    peak: int,
) -> TraceResult:
    """The result of a worker that has ended, however it did; reads the spool.

    Values captured before an early end are kept; the status says that they are not all.

    Args:
        verdict: why the watcher ended it, ``None`` where it ended by itself.
        code: exit code of the worker, negative for a signal.
        peak: highest resident memory seen from outside.
    """
    left = _events(spool)
    end = spool.read_result() or _without_result(spool, request, left, verdict, code)
    started = left.started
    return TraceResult(
        status=_status(end),
        engine=str(end.get("engine") or started.get("engine") or request.engine),
        provider=str(end.get("provider") or started.get("provider") or ""),
        reason=str(end.get("reason", "")),
        elapsed_s=elapsed,
        peak_rss_bytes=max(peak, int(end.get("peak_rss_bytes", 0))),
        inputs=request.inputs,
        values=tuple(left.values),
        nodes=tuple(left.nodes),
        findings=tuple(left.findings),
        spool=spool.path,
        held={**_outside(), **cast("dict[str, str]", started.get("held", {}))},
        optimisation=str(started.get("optimisation", "off")),
        latency_optimisation=str(end.get("latency_optimisation", "")),
        memory=left.memory,
    )


def reread(path: str) -> TraceResult:
    """The result of a run that ended before, from its spool alone.

    Raises:
        RunError: if the folder is no spool of a run that came to its end.
    """
    spool = Spool(path)
    request, _ = spool.read_request()
    end = spool.read_result()
    if end is None:
        raise RunError("the run left no result", path=path)
    return replace(collect(spool, request, None, 0, float(end.get("elapsed_s", 0.0)), 0), spool=spool.path)


def size_text(nbytes: int) -> str:
    """A size in words, e.g. ``2 GiB`` or ``512 MiB``."""
    return f"{nbytes / GIB:.3g} GiB" if nbytes >= GIB else f"{nbytes / MIB:.3g} MiB"


def _outside() -> dict[str, str]:
    return {
        "time": "held from outside by the watcher",
        "resident memory": "polled from outside"
        if Path("/proc/self/status").exists()
        else "not watched on this system",
    }


def _status(end: Mapping[str, Any]) -> Status:
    status = end.get("status")
    return cast(Status, status) if status in get_args(Status) else "failed"


def _events(spool: Spool) -> _Left:
    left = _Left([], [], [], {})
    for event in EventReader(spool).read():
        kind = event["event"]
        if kind == "value":
            left.values.append(TracedValue.from_json(event["value"]))
        elif kind == "timing":
            left.nodes.append(NodeTiming.from_json(event["timing"]))
        elif kind == "finding":
            left.findings.append(Finding(**event["finding"]))
        elif kind == "memory":
            left.memory = tuple(MemoryStep(*step) for step in event["steps"])
        elif kind == "started":
            left.started = event
        elif kind == "captured":
            left.captured = event
        elif kind == "progress":
            left.doing = str(event.get("doing") or "")
    return left


def _without_result(
    spool: Spool, request: TraceRequest, left: _Left, verdict: Verdict | None, code: int | None
) -> dict[str, Any]:
    """The end of a worker that did not tell its own."""
    status, reason = _ending(spool, request, left, verdict, code)
    if left.captured is None or status == "cancelled":
        return {"status": status, "reason": reason}
    left.findings.append(Finding("run.latency", "warning", f"The latency of the nodes is not known: {reason}"))
    return {"status": left.captured["status"], "reason": left.captured["reason"]}


def _ending(
    spool: Spool, request: TraceRequest, left: _Left, verdict: Verdict | None, code: int | None
) -> tuple[Status, str]:
    limits, doing = request.limits, f" while {left.doing}" if left.doing else ""
    kind = verdict.status if verdict is not None else None
    if kind is None and code != 0 and _ran_out(spool):
        kind = "memory"
    if kind == "cancelled":
        return kind, "The run was stopped."
    if kind == "timeout":
        return kind, f"The run was stopped after its {limits.time:g} s{doing}."
    if kind == "memory":
        return kind, f"The run needs more memory than the {size_text(limits.memory)} it may use{doing}."
    if code is not None and code < 0:
        return "failed", f"The worker was killed by signal {-code} ({_signal_name(-code)}){doing}."
    return "failed", f"The worker ended with code {code} and left no result{doing}."


def _ran_out(spool: Spool) -> bool:
    try:
        with open(spool.file("stderr.log"), "rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - _LOG_TAIL))
            tail = log.read()
    except OSError:
        return False
    return any(words in tail for words in _OUT_OF_MEMORY)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
