"""Running one graph part by part, and what all the graphs of one run share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import onnxruntime as ort

from core.dtypes import dtype_of
from core.errors import Unavailable
from core.ir import Finding
from core.run.result import size_text
from core.trace.types import MemoryStep, Status
from worker import slices
from worker.capture import MAIN, Place, Sink
from worker.engines import ort_sessions
from worker.engines.ort_sessions import Problem
from worker.engines.ort_values import describe, element_name, elements, from_array, type_proto
from worker.engines.runners import CannotRun, Held, OrtRunner, Runner
from worker.job import Job
from worker.report import Report
from worker.runtime_model import RuntimeModel
from worker.scope import Control, Scope

_SAID: Final = 20
"""Findings of one kind."""

DEEPEST: Final = 24
"""Graphs within graphs that are looked into."""

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass
class Shared:
    """What holds for all graphs of one run.

    Attributes:
        look: runs a node by running what is inside it, false where the runner has to; ``None`` for never.
        runner: runs the nodes; ``fallback`` what it does not have, ``None`` where the choice is strict.
        why: reason by node id, only of nodes that failed by themselves.
        stop: status and sentence once the run must end.
        executions: how often each graph was begun, which numbers the steps of its values.
    """

    job: Job
    model: RuntimeModel
    report: Report
    runner: Runner
    fallback: Runner | None = None
    look: Callable[[Walk, int, Control], bool] | None = None
    why: dict[str, str] = field(default_factory=dict[str, str])
    stop: tuple[Status, str] | None = None
    broke: bool = False
    probed: bool = False
    done: int = 0
    made: int = 0
    lost: int = 0
    fell_back: int = 0
    entered: int = 0
    executions: dict[int, int] = field(default_factory=dict[int, int])
    told: set[str] = field(default_factory=set[str])
    sizes: dict[Scope, tuple[Shapes, dict[str, int]]] = field(
        default_factory=dict[Scope, tuple[Shapes, dict[str, int]]]
    )

    def predicted(self, scope: Scope, values: Mapping[str, Held]) -> dict[str, int]:
        """Bytes of the values of a graph for inputs of these shapes, kept until they change."""
        shapes = tuple((n, tuple(h.value.shape())) for n, h in values.items() if h.value.is_tensor())
        known = self.sizes.get(scope)
        if known is None or known[0] != shapes:
            types = {name: type_proto(held.type_text) for name, held in values.items()}
            part = self.model.proto if scope is self.model else scope.part(scope.order, types)
            known = self.sizes[scope] = shapes, slices.predict(part, dict(shapes))
        return known[1]


class Walk:
    """One execution of one graph."""

    def __init__(
        self, shared: Shared, scope: Scope, sink: Sink | None, place: Place = MAIN, again: bool = False, depth: int = 0
    ) -> None:
        """``sink`` takes the values, ``None`` drops them; ``again`` says that the graph will be run again."""
        self.shared, self.scope, self.sink, self.place = shared, scope, sink, place
        self.again, self.depth = again, depth
        self.values: dict[str, Held] = {}
        self.lost: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._bytes: dict[str, int] = {}
        self._place = {index: at for at, index in enumerate(scope.order)}
        self._last: dict[str, int] = {}
        self._index_by_id: dict[str, int] = {}

    def run(self, given: Mapping[str, Held], outer: Mapping[str, Held], nodes: Collection[int] | None = None) -> None:
        """Run everything that can be run.

        Args:
            given: inputs by name, which are captured.
            outer: values of the graphs around it.
            nodes: only these, all by default.
        """
        scope, order = self.scope, self.scope.order
        self._last = slices.last_uses(scope, scope.outputs if self.depth or self.again else ())
        self._sizes = self.shared.predicted(scope, {**outer, **given})
        self.values = {name: held for name, held in outer.items() if name in self._last}
        for name, held in given.items():
            scope.constants.pop(name, None)
            self.keep(name, "", held)
        if nodes is not None:
            order = tuple(place for place in order if place in nodes)
        todo = self._cut(order)[::-1]
        while todo and self.shared.stop is None:
            todo.extend(reversed(self._part(todo.pop())))

    def held(self, name: str) -> Held | None:
        """A value by its name, made before or stored in the model; ``None`` where it is lost."""
        if name in self.values:
            return self.values[name]
        owner = self.scope.stored(name)
        if owner is None:
            return None
        runner = self.shared.runner
        options = runner.options if isinstance(runner, OrtRunner) else ort_sessions.options(self.shared.model.folder, 1)
        value = ort_sessions.session(owner.copy_of(name), options).run_with_ort_values(None, {})[0]
        return Held(value, value.data_type())

    def keep(self, name: str, node: str, held: Held) -> None:
        """Capture a value, and hold it as long as somebody takes it."""
        if self.sink is not None:
            self._capture(self.sink, name, node, held)
        place = self._place[self._at(node)] if node else -1
        if self._last.get(name, -1) > place:
            self.values[name] = held

    def child(self, scope: Scope, sink: Sink | None, place: Place, again: bool) -> Walk:
        """An execution of a graph inside this one."""
        return Walk(self.shared, scope, sink, place, again, self.depth + 1)

    def lose(self, index: int, why: str) -> None:
        """Note that what a node makes is not there."""
        for name in self.scope.makes[index]:
            self._lose_value(name, index, why)

    def _lose_value(self, name: str, index: int, why: str) -> None:
        graph = self.scope.model.graphs[self.scope.index]
        self.lost[name] = why
        self.shared.lost += 1
        value = graph.value_index.get(name)
        dtype = graph.value(value).dtype if value is not None else None
        if self.sink is not None:
            self.sink.missing(name, self.scope.id(index), dtype or "unknown", why)

    def memory(self) -> list[MemoryStep]:
        """Bytes alive while each node runs, values freed after their last use."""
        sizes, alive = self._bytes, sum(self._bytes.get(name, 0) for name in self.scope.inputs)
        ends: dict[int, list[str]] = {}
        for name, at in self._last.items():
            ends.setdefault(at, []).append(name)
        steps: list[MemoryStep] = []
        for at, index in enumerate(self.scope.order):
            alive += sum(sizes.get(name, 0) for name in self.scope.makes[index])
            steps.append(MemoryStep(at, self.scope.id(index), alive))
            alive -= sum(sizes.get(name, 0) for name in ends.get(at, ()))
        return steps

    def _cut(self, order: Sequence[int]) -> list[tuple[int, ...]]:
        """Parts that fit; a node that is looked into, or that the runner lacks, is one by itself."""
        if self.shared.runner.one_by_one:
            return [(index,) for index in order]
        most = slices.budget(self.shared.job.request.limits)
        parts: list[tuple[int, ...]] = []
        for part in slices.cut(self.scope, order, self._sizes, most):
            begin = 0
            for at, index in enumerate(part):
                if self._control(index) or not self._known(index):
                    parts += [part[begin:at], (index,)]
                    begin = at + 1
            parts.append(part[begin:])
        return [part for part in parts if part]

    def _part(self, nodes: Sequence[int]) -> list[tuple[int, ...]]:
        """Run some nodes together; returns what is left to try where they cannot be run so."""
        shared = self.shared
        ready: tuple[int, ...] = tuple(index for index in nodes if self._can_run(index))
        if not ready or shared.stop is not None:
            self._count(len(nodes) - len(ready))
            return []
        doing = self.scope.doing(ready)
        if self.depth == 0:
            shared.report.progress("capture", shared.done, len(self.scope.order), doing)
        left: list[tuple[int, ...]] = []
        first = ready[0]
        if len(ready) > 1 or not self._look_inside(first):
            left = self._together(ready)
        self._count(len(nodes) - (len(ready) if left else 0))
        if not left and self.depth == 0:
            shared.report.counted("capture", shared.done, len(self.scope.order), doing)
        return left

    def _count(self, nodes: int) -> None:
        if self.depth == 0:
            self.shared.done += nodes

    def _together(self, nodes: tuple[int, ...]) -> list[tuple[int, ...]]:
        runner, fallback, first = self.shared.runner, self.shared.fallback, nodes[0]
        if len(nodes) == 1 and fallback is not None and not self._own(first):
            owner = self.scope.graph.node[first].domain
            words = f" of domain {owner!r}" if owner not in ("", "ai.onnx") else ""
            self._fall_back(first, fallback, f"{runner.name} has no operator of that name{words}")
            return []
        try:
            found = runner.run(self.scope, nodes, self.values, self.again)
        except CannotRun as error:
            if len(nodes) > 1:
                return self._split(nodes, error.problem)
            if fallback is not None and not error.loaded and not error.problem.memory:
                self._fall_back(first, fallback, f"{runner.name} refuses it: {error.problem.text}")
            else:
                self._failed(first, error.problem, error.loaded)
            return []
        self._take(nodes, found)
        return []

    def _take(self, nodes: Sequence[int], found: Sequence[Held | None], lost: Sequence[str] = ()) -> None:
        names = [(name, index) for index in nodes for name in self.scope.makes[index]]
        left = list(found)[::-1]
        for at, (name, index) in enumerate(names):  # one after the other, so that each may be freed
            held = left.pop()
            if held is None:
                self._lose_value(name, index, lost[at] if at < len(lost) and lost[at] else "it was not made")
            else:
                self.keep(name, self.scope.id(index), held)
        self.shared.made += len(nodes)
        self._forget(self._place[nodes[-1]])

    def finish(self, index: int, found: Sequence[Held | None], lost: Sequence[str]) -> None:
        """Take what a node that was looked into makes; ``lost`` says why where it is ``None``."""
        self._take((index,), found, lost)

    def _fall_back(self, index: int, fallback: Runner, why: str) -> None:
        try:
            found = fallback.run(self.scope, (index,), self.values, self.again)
        except CannotRun as error:
            text = f"{why}; {error.problem.text}"
            self._failed(index, Problem(text, error.problem.memory), False)
            return
        shared, words = self.shared, f"{self.scope.words(index)} was run by {fallback.name}: {why}."
        shared.fell_back += 1
        if shared.fell_back <= _SAID:
            shared.report.finding(Finding("run.reference", "info", words, f"node {self.scope.id(index)}"))
        self._take((index,), found)

    def _look_inside(self, index: int) -> bool:
        """Run a node by running what is inside it; false where it is left to the runner."""
        control = self._control(index)
        look = self.shared.look
        return bool(control) and look is not None and look(self, index, control)

    def _control(self, index: int) -> Control:
        if self.sink is None or self.sink.inside(self.place) is None or self.depth >= DEEPEST:
            return ""
        control = self.scope.control(index)
        node = self.scope.graph.node[index]
        return "" if control == "call" and self.shared.runner.knows(node.domain, node.op_type) else control

    def _own(self, index: int) -> bool:
        """Whether the runner has the operator, or the model brings it along."""
        node = self.scope.graph.node[index]
        return self.shared.runner.knows(node.domain, node.op_type) or self.scope.control(index) == "call"

    def _known(self, index: int) -> bool:
        node, fallback = self.scope.graph.node[index], self.shared.fallback
        return self._own(index) or (fallback is not None and fallback.knows(node.domain, node.op_type))

    def _capture(self, sink: Sink, name: str, node: str, held: Held) -> None:
        value = held.value
        if not value.has_value():
            sink.other(name, node, element_name(held.type_text), (), "it is empty")
        elif value.is_tensor():
            self._tensor(sink, name, node, value)
        else:
            shape, words = describe(value)
            sink.other(name, node, element_name(value.data_type()), shape, words)

    def _tensor(self, sink: Sink, name: str, node: str, value: ort.OrtValue) -> None:
        try:
            found = elements(value)
        except UnicodeDecodeError:
            sink.other(name, node, "string", tuple(value.shape()), "its text is not UTF-8")
            return
        self._bytes[name] = found.stored.nbytes
        sink.tensor(name, node, found.dtype, found.shape, found.stored, found.array)

    def _forget(self, place: int) -> None:
        for name in [name for name in self.values if self._last.get(name, -1) <= place]:
            del self.values[name]

    def _can_run(self, index: int) -> bool:
        """Whether all it takes is there and the runtime knows it; else its values are lost."""
        node = self.scope.graph.node[index]
        lost = next((name for name in self.scope.needs[index] if name in self.lost), None)
        if lost is not None:
            self.lose(index, self.lost[lost])
        elif not self._known(index):
            owner = f" of domain {node.domain!r}" if node.domain not in ("", "ai.onnx") else ""
            self._because(index, f"{self.shared.runner.name} has no operator {node.op_type!r}{owner}")
        else:
            return self._fits(index)
        return False

    def _fits(self, index: int) -> bool:
        """Whether what it makes is not known beforehand to be more than the memory limit."""
        made = sum(self._sizes.get(name, 0) for name in self.scope.makes[index])
        memory = self.shared.job.request.limits.memory
        if made <= memory:
            return True
        words = f"{self.scope.words(index)} would make {size_text(made)} of values"
        self.shared.stop = "memory", f"{words}, more than the {size_text(memory)} the run may use."
        return False

    def _failed(self, index: int, problem: Problem, loaded: bool) -> None:
        """A node that cannot be run even alone."""
        shared = self.shared
        if problem.memory:
            memory = size_text(shared.job.request.limits.memory)
            doing = self.scope.doing((index,))
            shared.stop = "memory", f"The run needs more memory than the {memory} it may use while {doing}."
            return
        if not loaded and not shared.probed and isinstance(shared.runner, OrtRunner):
            shared.probed = True
            if why := ort_sessions.cannot_load_any(shared.model.proto, shared.runner.options):
                raise Unavailable(f"{shared.runner.name} cannot run this model: {why}")
        shared.broke = shared.broke or loaded
        what = "failed" if loaded else "is refused by the runtime"
        self._because(index, f"{self.scope.words(index)} {what}: {problem.text}")

    def _because(self, index: int, why: str) -> None:
        shared, node = self.shared, self.scope.id(index)
        if node not in shared.why:
            code = "run.failed" if shared.broke else "run.unsupported"
            shared.report.finding(Finding(code, "error", f"{why}.", f"node {node}"))
        shared.why[node] = why
        self.lose(index, why)

    def _at(self, node: str) -> int:
        if not self._index_by_id:
            self._index_by_id.update((self.scope.id(index), index) for index in self.scope.order)
        return self._index_by_id[node]

    def _split(self, nodes: tuple[int, ...], problem: Problem) -> list[tuple[int, ...]]:
        """Smaller parts: around the node that the runtime complains about, else two halves."""
        at = next((at for at, index in enumerate(nodes) if self.scope.id(index) == problem.node), None)
        pieces = [nodes[:at], nodes[at : at + 1], nodes[at + 1 :]] if at is not None and not problem.memory else []
        if not pieces:
            middle = len(nodes) // 2
            pieces = [nodes[:middle], nodes[middle:]]
        return [piece for piece in pieces if piece]


def inputs_of(job: Job) -> dict[str, Held]:
    """The inputs of a job as values of the runtime."""
    values = {item.name: from_array(job.inputs[item.name], dtype_of(item.dtype)) for item in job.request.inputs}
    return {name: Held(value, value.data_type()) for name, value in values.items()}
