"""Capturing every value of a model with onnxruntime, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnxruntime as ort

from core.dtypes import dtype_of
from core.errors import Unavailable
from core.ir import Finding
from core.run.result import size_text
from core.trace.types import Status
from worker import slices
from worker.capture import Capture, Sink
from worker.engines import ort_latency, ort_sessions
from worker.engines.ort_sessions import ERRORS, Problem
from worker.engines.ort_values import describe, element_name, elements, from_array, type_proto
from worker.job import Job, Outcome
from worker.report import Report
from worker.runtime_model import RuntimeModel

PROVIDER = "CPUExecutionProvider"


def execute(job: Job, report: Report, held: dict[str, str]) -> Outcome:
    """Capture every value, then time the nodes; both go to ``report`` as they come.

    Raises:
        Unavailable: if the runtime can run nothing of this model.
        MemoryError: if the memory limit is met outside a run.
    """
    report.started(f"onnxruntime {ort.__version__}", PROVIDER, held)
    report.progress("load", 0, 0, "reading the model")
    model = RuntimeModel(job.model)
    ort_sessions.prepare()
    sizes = slices.predict(model, job.inputs)
    named = job.model.graphs[0].columns.value_names
    wanted = [named[int(item[4:])] for item in job.request.keep if item.startswith("g0.v") and item[4:].isdigit()]
    first = dict.fromkeys([*wanted, *model.outputs])
    with Capture(job.spool, report, job.model, job.request.limits.store, first, sizes) as capture:
        status, reason = _Trace(job, model, report, capture, sizes).run()
    report.captured(status, reason)
    if status == "complete" and job.request.latency:
        return Outcome(status, reason, ort_latency.measure(job, model, report))
    return Outcome(status, reason)


class Repeated:
    """The same model over many inputs; sessions are kept from one to the next."""

    def __init__(self, job: Job, report: Report, held: dict[str, str]) -> None:
        report.started(f"onnxruntime {ort.__version__}", PROVIDER, held)
        report.progress("load", 0, 0, "reading the model")
        self._report = report
        self._model = RuntimeModel(job.model)
        self._sessions: dict[tuple[int, ...], ort.InferenceSession] = {}
        self._sizes: dict[tuple[tuple[str, tuple[int, ...]], ...], dict[str, int]] = {}
        ort_sessions.prepare()

    def run(self, job: Job, capture: Sink) -> tuple[Status, str]:
        """Give every value for the inputs of ``job`` to ``capture``; the status and, where not complete, one sentence.

        Raises:
            Unavailable: if the runtime can run nothing of this model.
        """
        shapes = tuple((name, array.shape) for name, array in job.inputs.items())
        if shapes not in self._sizes:
            self._sizes = {shapes: slices.predict(self._model, job.inputs)}
        return _Trace(job, self._model, self._report, capture, self._sizes[shapes], self._sessions).run()


class _Trace:
    def __init__(
        self, job: Job, model: RuntimeModel, report: Report, capture: Sink, sizes: dict[str, int],
        sessions: dict[tuple[int, ...], ort.InferenceSession] | None = None,
    ) -> None:  # fmt: skip
        self._sessions = sessions
        self._job, self._model, self._report, self._capture, self._sizes = job, model, report, capture, sizes
        self._options = ort_sessions.options(model.folder, job.request.limits.threads)
        self._known = ort_sessions.known_operators()
        self._functions = {(f.domain, f.name) for f in model.proto.functions}
        self._values: dict[str, ort.OrtValue] = {}
        self._types: dict[str, onnx.TypeProto] = {}
        self._lost: dict[str, str] = {}
        self._why: dict[str, str] = {}  # reason by node id, only of nodes that failed by themselves
        self._stop: tuple[Status, str] | None = None
        self._broke = self._probed = False
        self._done = self._made = 0
        self._place = {index: place for place, index in enumerate(model.order)}
        self._last = slices.last_uses(model, ())

    def run(self) -> tuple[Status, str]:
        """Run everything that can be run; the status and, where it is not complete, one sentence."""
        model = self._model
        self._take_inputs()
        most = slices.budget(self._job.request.limits)
        todo = slices.cut(model, model.order, self._sizes, most)[::-1]
        while todo and self._stop is None:
            todo.extend(reversed(self._part(todo.pop())))
        if self._stop is None:
            self._constant_outputs()
        if model.seeded:
            self._random()
        return self._stop or self._ending()

    def _take_inputs(self) -> None:
        for item in self._job.request.inputs:
            dtype = dtype_of(item.dtype)
            value = from_array(self._job.inputs[item.name], dtype)
            self._model.constants.pop(item.name, None)
            self._keep(item.name, "", value, value.data_type())

    def _part(self, nodes: Sequence[int]) -> list[tuple[int, ...]]:
        """Run some nodes together; returns what is left to try where they cannot be run so."""
        ready = tuple(index for index in nodes if self._can_run(index))
        if len(ready) == 0 or self._stop is not None:
            self._done += len(nodes) - len(ready)
            return []
        doing = self._model.doing(ready)
        self._report.progress("capture", self._done, len(self._model.order), doing)
        problem, loaded = self._try(ready)
        if problem is None:
            self._done += len(nodes)
            self._report.counted("capture", self._done, len(self._model.order), doing)
            return []
        if len(ready) > 1:
            self._done += len(nodes) - len(ready)
            return _split(ready, problem)
        self._failed(ready[0], problem, loaded)
        self._done += len(nodes)
        return []

    def _try(self, nodes: tuple[int, ...]) -> tuple[Problem | None, bool]:
        """The problem, ``None`` where all went well, and whether the part loaded."""
        loaded = False
        try:
            session = self._session(nodes)
            loaded = True
            texts = {item.name: item.type for item in session.get_outputs()}
            feeds = {item.name: self._values[item.name] for item in session.get_inputs()}
            names = [name for index in nodes for name in self._model.makes[index]]
            results: list[ort.OrtValue | None] = list(session.run_with_ort_values(names, feeds))
        except (*ERRORS, MemoryError) as error:
            return Problem.of(error), loaded
        del session, feeds
        makers = [index for index in nodes for _ in self._model.makes[index]]
        for at, (name, index) in enumerate(zip(names, makers, strict=True)):
            value, results[at] = results[at], None
            assert value is not None
            self._keep(name, f"g0.n{index}", value, texts[name])
        self._made += len(nodes)
        self._forget(self._place[nodes[-1]])
        return None, True

    def _session(self, nodes: tuple[int, ...]) -> ort.InferenceSession:
        """A session of these nodes, kept where the same ones will be run again."""
        known = None if self._sessions is None else self._sessions.get(nodes)
        if known is None:
            known = ort_sessions.session(self._model.part(nodes, self._types), self._options)
            if self._sessions is not None:
                self._sessions[nodes] = known
        return known

    def _keep(self, name: str, node: str, value: ort.OrtValue, type_text: str) -> None:
        """Capture a value, and hold it as long as somebody takes it."""
        if not value.has_value():
            self._capture.other(name, node, element_name(type_text), (), "it is empty")
        elif value.is_tensor():
            self._tensor(name, node, value)
        else:
            shape, words = describe(value)
            self._capture.other(name, node, element_name(value.data_type()), shape, words)
        place = self._place[int(node[4:])] if node else -1
        if self._last.get(name, -1) > place:
            self._values[name] = value
            self._types[name] = type_proto(type_text)

    def _tensor(self, name: str, node: str, value: ort.OrtValue) -> None:
        try:
            found = elements(value)
        except UnicodeDecodeError:
            self._capture.other(name, node, "string", tuple(value.shape()), "its text is not UTF-8")
            return
        self._capture.tensor(name, node, found.dtype, found.shape, found.stored, found.array)

    def _forget(self, place: int) -> None:
        for name in [name for name in self._values if self._last.get(name, -1) <= place]:
            del self._values[name]

    def _can_run(self, index: int) -> bool:
        """Whether all it takes is there and the runtime knows it; else its values are lost."""
        node = self._model.proto.graph.node[index]
        lost = next((name for name in self._model.needs[index] if name in self._lost), None)
        domain = "" if node.domain == "ai.onnx" else node.domain
        if lost is not None:
            self._lose(index, self._lost[lost])
        elif (domain, node.op_type) not in self._known and (node.domain, node.op_type) not in self._functions:
            owner = f" of domain {domain!r}" if domain else ""
            self._because(index, f"onnxruntime {ort.__version__} has no operator {node.op_type!r}{owner}")
        else:
            return self._fits(index)
        return False

    def _fits(self, index: int) -> bool:
        """Whether what it makes is not known beforehand to be more than the memory limit."""
        made = sum(self._sizes.get(name, 0) for name in self._model.makes[index])
        memory = self._job.request.limits.memory
        if made <= memory:
            return True
        words = f"{self._words(index)} would make {size_text(made)} of values"
        self._stop = "memory", f"{words}, more than the {size_text(memory)} the run may use."
        return False

    def _failed(self, index: int, problem: Problem, loaded: bool) -> None:
        """A node that cannot be run even alone."""
        if problem.memory:
            memory = size_text(self._job.request.limits.memory)
            doing = self._model.doing((index,))
            self._stop = "memory", f"The run needs more memory than the {memory} it may use while {doing}."
            return
        if not loaded and not self._probed:
            self._probed = True
            if why := ort_sessions.cannot_load_any(self._model.proto, self._options):
                raise Unavailable(f"onnxruntime {ort.__version__} cannot run this model: {why}")
        self._broke = self._broke or loaded
        what = "failed" if loaded else "is refused by the runtime"
        self._because(index, f"{self._words(index)} {what}: {problem.text}")

    def _because(self, index: int, why: str) -> None:
        self._why[f"g0.n{index}"] = why
        self._report.finding(
            Finding("run.failed" if self._broke else "run.unsupported", "error", f"{why}.", f"node g0.n{index}")
        )
        self._lose(index, why)

    def _lose(self, index: int, why: str) -> None:
        graph = self._job.model.graphs[0]
        for name in self._model.makes[index]:
            self._lost[name] = why
            value = graph.value_index.get(name)
            dtype = graph.value(value).dtype if value is not None else None
            self._capture.missing(name, f"g0.n{index}", dtype or "unknown", why)

    def _words(self, index: int) -> str:
        return self._model.doing((index,)).removeprefix("running ")

    def _constant_outputs(self) -> None:
        """Outputs of the model that are stored in it."""
        for name in self._model.outputs:
            if name not in self._model.constants and name not in self._model.constant_nodes:
                continue
            part = self._model.copy_of(name)
            value = ort_sessions.session(part, self._options).run_with_ort_values(None, {})[0]
            self._keep(name, "", value, value.data_type())

    def _random(self) -> None:
        shown = ", ".join(self._model.seeded[:5]) + (" and more" if len(self._model.seeded) > 5 else "")
        words = f"{shown} draw random numbers without a seed; one was set here, a run elsewhere gives other values."
        self._report.finding(Finding("run.random", "info", f"The nodes {words}"))

    def _ending(self) -> tuple[Status, str]:
        if not self._why:
            return "complete", ""
        count, why = len(self._why), next(iter(self._why.values()))
        more = f" and {count - 1} more" if count > 1 else ""
        lost = len(self._lost)
        text = f"{why}{more}; {lost} value{'s' if lost != 1 else ''} could not be made."
        return "failed" if self._broke or not self._made else "partial", text


def _split(nodes: tuple[int, ...], problem: Problem) -> list[tuple[int, ...]]:
    """Smaller parts: around the node that the runtime complains about, else two halves."""
    at = next((at for at, index in enumerate(nodes) if f"g0.n{index}" == problem.node), None)
    pieces = [nodes[:at], nodes[at : at + 1], nodes[at + 1 :]] if at is not None and not problem.memory else []
    if not pieces:
        middle = len(nodes) // 2
        pieces = [nodes[:middle], nodes[middle:]]
    return [piece for piece in pieces if piece]
