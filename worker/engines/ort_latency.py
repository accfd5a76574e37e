"""Latency of each node from the runtime's own profile, in a session of its own with nothing added."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import onnxruntime as ort

from core.dtypes import dtype_of
from core.ir import Finding
from core.trace.types import NodeTiming
from worker.engines import ort_sessions
from worker.engines.ort_sessions import ERRORS, Problem
from worker.engines.ort_values import from_array
from worker.job import Job
from worker.report import Report
from worker.runtime_model import RuntimeModel

OPTIMISATION: Final = "all (the runtime's default)"
REPEATS: Final = 10
SPENT: Final = 1.0
"""Seconds that repeats may take together, the first run not counted."""

_PROFILED: Final = 100_000
"""Node executions in one profile."""

_ID: Final = re.compile(r"g\d+\.n\d+")


def measure(job: Job, model: RuntimeModel, report: Report) -> str:
    """Report the latency of every node as the median over a few runs, the first one left out.

    Returns:
        The optimisation level it was measured at, empty where it could not be.
    """
    report.progress("latency", 0, 1, "timing the nodes")
    prefix = job.spool.file("tmp", "profile")
    try:
        profile = _profile(job, model, prefix)
        times, providers = _median(profile)
    except (*ERRORS, MemoryError, OSError) as error:
        words = "memory ran out" if isinstance(error, MemoryError) else Problem.of(error).text
        report.finding(Finding("run.latency", "warning", f"The latency of the nodes could not be measured: {words}."))
        return ""
    finally:
        for file in Path(job.spool.file("tmp")).glob("profile*"):
            file.unlink(missing_ok=True)
    for node_id in dict.fromkeys([*(f"g0.n{index}" for index in model.order), *times]):
        graph, place = (int(number) for number in node_id[1:].split(".n"))
        node = job.model.graphs[graph].node(place)
        report.timing(NodeTiming(node_id, node.name, node.op_type, times.get(node_id), providers.get(node_id, "")))
    report.progress("latency", 1, 1, "")
    return OPTIMISATION


def _profile(job: Job, model: RuntimeModel, prefix: str) -> str:
    options = ort_sessions.options(model.folder, job.request.limits.threads)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_profiling = True
    options.profile_file_prefix = prefix
    session = ort_sessions.session(model.whole(), options)
    feeds = {i.name: from_array(job.inputs[i.name], dtype_of(i.dtype)) for i in job.request.inputs}
    begin = time.monotonic()
    session.run_with_ort_values(None, feeds)
    once = max(time.monotonic() - begin, 1e-6)
    left = min(SPENT, (job.deadline - time.monotonic()) / 2)
    most = min(REPEATS, _PROFILED // max(1, len(model.order)))
    for _ in range(max(0, min(most, int(left / once)))):
        session.run_with_ort_values(None, feeds)
    return session.end_profiling()


def _median(path: str) -> tuple[dict[str, float], dict[str, str]]:
    """Microseconds by node id, and the provider that ran it."""
    runs: list[dict[str, float]] = [{}]
    providers: dict[str, str] = {}
    for event in _events(path):
        if event.get("name") == "model_run":  # written when the run has ended
            runs.append({})
            continue
        found = _ID.search(str(event["name"]))
        if found is not None:
            times = runs[-1]
            times[found[0]] = times.get(found[0], 0.0) + float(event["dur"])
            providers[found[0]] = str(event.get("args", {}).get("provider", ""))
    full = [run for run in runs if run]
    counted = full[1:] or full
    ids = dict.fromkeys(node for run in counted for node in run)
    return {node: statistics.median(run.get(node, 0.0) for run in counted) for node in ids}, providers


def _events(path: str) -> Iterator[dict[str, Any]]:
    """Kernel times and ends of runs; the runtime writes one event a line."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if "_kernel_time" not in line and '"model_run"' not in line:
                continue
            try:
                yield json.loads(line.strip().rstrip(",").removeprefix("["))
            except ValueError:
                continue
