"""Capturing every value of a model, part by part, with the engine that was asked for."""

from __future__ import annotations

import onnxruntime as ort

from core.ir import Finding
from core.trace.types import Status
from worker import slices
from worker.capture import Capture, Sink
from worker.engines import inside, ort_latency, ort_sessions
from worker.engines.normalize import normalize
from worker.engines.runners import OrtRunner, ReferenceRunner
from worker.engines.walk import Shared, Walk, inputs_of
from worker.job import Job, Outcome
from worker.report import Report
from worker.runtime_model import RuntimeModel

PROVIDER = "CPUExecutionProvider"


def execute(job: Job, report: Report, held: dict[str, str]) -> Outcome:
    """Capture every value, then time the nodes; both go to ``report`` as they come.

    Raises:
        Unavailable: if nothing of this model can be run.
        MemoryError: if the memory limit is met outside a run.
    """
    model, shared = begin(job, report, held)
    sizes = slices.predict(model.proto, {name: array.shape for name, array in job.inputs.items()})
    named = job.model.graphs[0].columns.value_names
    wanted = [named[int(item[4:])] for item in job.request.keep if item.startswith("g0.v") and item[4:].isdigit()]
    first = dict.fromkeys([*wanted, *model.outputs])
    with Capture(job.spool, report, job.model, job.request.limits.store, first, sizes) as capture:
        walk = Walk(shared, model, capture)
        walk.run(inputs_of(job), {})
        status, reason = finish(shared, walk)
    if status == "complete":
        report.memory(walk.memory())
    report.captured(status, reason)
    engine = engine_text(shared)
    if status == "complete" and job.request.latency and isinstance(shared.runner, OrtRunner) and not shared.fell_back:
        return Outcome(status, reason, ort_latency.measure(job, model, report), engine)
    return Outcome(status, reason, engine=engine)


class Repeated:
    """The same model over many inputs; sessions are kept from one to the next."""

    def __init__(self, job: Job, report: Report, held: dict[str, str]) -> None:
        self._model, self._shared = begin(job, report, held)

    def run(self, job: Job, capture: Sink) -> tuple[Status, str]:
        """Give every value for the inputs of ``job`` to ``capture``; the status and, where not complete, one sentence.

        Raises:
            Unavailable: if nothing of this model can be run.
        """
        before = self._shared
        shared = Shared(job, self._model, before.report, before.runner, before.fallback, sizes=before.sizes)
        walk = Walk(shared, self._model, capture, again=True)
        walk.run(inputs_of(job), {})
        return finish(shared, walk)


def begin(job: Job, report: Report, held: dict[str, str]) -> tuple[RuntimeModel, Shared]:
    """Read the model and choose what runs it."""
    strict = job.request.engine in ("reference", "normalized")
    name = ReferenceRunner("").name if strict else f"onnxruntime {ort.__version__}"
    report.started(name, "" if strict else PROVIDER, held)
    report.progress("load", 0, 0, "reading the model")
    model = RuntimeModel(job.model)
    ort_sessions.prepare()
    reference = ReferenceRunner(model.folder)
    if job.request.engine == "normalized":
        opset = normalize(model)
        reference.name += f" after normalisation to opset {opset}"
        words = f"Functions were inlined and operators converted to opset {opset}; what only the file has is left out."
        report.finding(Finding("run.normalized", "info", words))
    if strict:
        return model, Shared(job, model, report, reference, look=inside.run)
    fallback = reference if job.request.engine == "auto" else None
    return model, Shared(job, model, report, OrtRunner(model.folder, job.request.limits.threads), fallback, inside.run)


def engine_text(shared: Shared) -> str:
    """What ran the nodes, for people."""
    if not shared.fell_back or shared.fallback is None:
        return shared.runner.name
    count = f"{shared.fell_back} operator{'s' if shared.fell_back > 1 else ''}"
    return f"{shared.runner.name}, {shared.fallback.name} for {count}"


def finish(shared: Shared, walk: Walk) -> tuple[Status, str]:
    """What remains when all nodes were run; the status and, where it is not complete, one sentence."""
    if shared.stop is None:
        for name in shared.model.outputs:
            if shared.model.stored(name) is not None and (held := walk.held(name)) is not None:
                walk.keep(name, "", held)
    if shared.model.seeded:
        _random(shared)
    return shared.stop or _ending(shared)


def _random(shared: Shared) -> None:
    seeded = shared.model.seeded
    shown = ", ".join(seeded[:5]) + (" and more" if len(seeded) > 5 else "")
    words = f"{shown} draw random numbers without a seed; one was set here, a run elsewhere gives other values."
    shared.report.finding(Finding("run.random", "info", f"The nodes {words}"))


def _ending(shared: Shared) -> tuple[Status, str]:
    if not shared.why:
        return "complete", ""
    count, why = len(shared.why), next(iter(shared.why.values()))
    more = f" and {count - 1} more" if count > 1 else ""
    text = f"{why}{more}; {shared.lost} value{'s' if shared.lost != 1 else ''} could not be made."
    return "failed" if shared.broke or not shared.made else "partial", text
