"""Looking into nodes that hold a graph: the taken branch of If, iterations of Loop and Scan, calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

import numpy as np
import onnx
import onnxruntime as ort

from core.ir import Finding
from worker.capture import Place
from worker.engines.ort_values import elements, from_array
from worker.engines.runners import Held
from worker.engines.walk import Walk
from worker.scope import Control, Scope

ITERATIONS: Final = 8
"""Iterations of a loop that are looked into where nobody chose others."""

REPLAYED: Final = 10_000
"""Iterations that are gone through to reach a chosen one."""

MOST: Final = 4096
"""Executions of subgraphs in one run that are looked into."""


def run(walk: Walk, index: int, control: Control) -> bool:
    """Capture what happens inside a node.

    The outputs of If and of a call are those of the graph that was run. Those of Loop and Scan are
    left to the runner, which is quicker at many iterations.

    Returns:
        Whether the node is done; false where the runner has to run it.
    """
    shared = walk.shared
    if shared.entered >= MOST:
        if shared.entered == MOST:
            words = f"Nodes that hold graphs were looked into {MOST} times; the later ones are not."
            shared.report.finding(Finding("run.iterations", "info", words, f"node {walk.scope.id(index)}"))
            shared.entered += 1
        return False
    match control:
        case "If":
            return _branch(walk, index)
        case "call":
            return _call(walk, index)
        case "Loop":
            return _loop(walk, index)
        case "Scan":
            return _scan(walk, index)
        case "":
            return False
    assert_never(control)


def _branch(walk: Walk, index: int) -> bool:
    held = walk.held(walk.scope.graph.node[index].input[0])
    if held is None:
        return False
    body = walk.scope.inside(index, "then_branch" if _truth(held) else "else_branch")
    child = _enter(walk, index, body, _step(walk, body, 1), "", walk.again)
    child.run({}, _outer(walk, body))
    _hand_on(walk, index, child)
    return True


def _call(walk: Walk, index: int) -> bool:
    body, node = walk.scope.called(index), walk.scope.graph.node[index]
    given: dict[str, Held] = {}
    for item, actual in zip(body.graph.input, [name for name in node.input if name], strict=False):
        if item.name not in body.constants and (held := walk.held(actual)) is not None:
            given[item.name] = held
    child = _enter(walk, index, body, _step(walk, body, 1), "", walk.again)
    child.run(given, {})
    _hand_on(walk, index, child)
    return True


def _loop(walk: Walk, index: int) -> bool:
    node, body = walk.scope.graph.node[index], walk.scope.inside(index, "body")
    most = _optional(walk, node, 0)
    going = _optional(walk, node, 1)
    carried = [walk.held(name) for name in node.input[2:]]
    limit = None if most is None else int(_scalar(most))
    go = going is None or _truth(going)
    names = [item.name for item in body.graph.input]
    chosen = walk.shared.job.request.iterations or range(ITERATIONS)
    last = min(max(chosen), REPLAYED)
    base, at = _step(walk, body, 0), 0
    while at <= last and go and (limit is None or at < limit):
        counters = [np.int64(at), np.bool_(go)]
        values = [_like(item, counter) for item, counter in zip(body.graph.input, counters, strict=False)]
        child = _iteration(walk, index, body, base, at, at in chosen)
        given = dict(zip(names, [*values, *(held for held in carried if held is not None)], strict=False))
        child.run(given, _outer(walk, body))
        at += 1
        if _gave_up(walk, index, child):
            return True
        outputs = [child.held(name) for name in body.outputs[: len(node.input) - 1]]
        if any(held is None for held in outputs) or outputs[0] is None:
            return False
        go, carried = _truth(outputs[0]), outputs[1:]
    _say_how_many(walk, index, at, go and (limit is None or at < limit))
    _step(walk, body, at)
    return False


def _scan(walk: Walk, index: int) -> bool:
    node, body = walk.scope.graph.node[index], walk.scope.inside(index, "body")
    count = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
    taken = [walk.held(name) for name in node.input]
    if not 0 < count <= len(taken) or any(held is None for held in taken):
        return False  # the form of opset 8, which had a batch
    held = [item for item in taken if item is not None]
    carried, scanned = held[: len(held) - count], held[len(held) - count :]
    arrays = [elements(item.value) for item in scanned]
    axes = [
        axis % max(1, len(a.shape)) for axis, a in zip(_numbers(node, "scan_input_axes", count), arrays, strict=True)
    ]
    back = _numbers(node, "scan_input_directions", count)
    length = arrays[0].shape[axes[0]] if arrays[0].shape else 0
    names = [item.name for item in body.graph.input]
    chosen = walk.shared.job.request.iterations or range(ITERATIONS)
    last, base, at = min(max(chosen), REPLAYED), _step(walk, body, 0), 0
    while at <= last and at < length:
        places = [length - 1 - at if backwards else at for backwards in back]
        rows = [a.array.take(place, axis) for a, place, axis in zip(arrays, places, axes, strict=True)]
        values = [from_array(np.asarray(row), a.dtype) for row, a in zip(rows, arrays, strict=True)]
        child = _iteration(walk, index, body, base, at, at in chosen)
        given = [*carried, *(Held(value, value.data_type()) for value in values)]
        child.run(dict(zip(names, given, strict=False)), _outer(walk, body))
        at += 1
        if _gave_up(walk, index, child):
            return True
        outputs = [child.held(name) for name in body.outputs[: len(carried)]]
        if any(item is None for item in outputs):
            return False
        carried = [item for item in outputs if item is not None]
    _say_how_many(walk, index, at, at < length)
    _step(walk, body, at)
    return False


def _enter(walk: Walk, index: int, body: Scope, step: int, iteration: str, again: bool) -> Walk:
    path = f"{walk.scope.id(index)}{iteration}"
    place = Place(body.index, step, f"{walk.place.path}/{path}" if walk.place.path else path)
    sink = None if walk.sink is None else walk.sink.inside(place)
    walk.shared.entered += sink is not None
    return walk.child(body, sink, place, again)


def _iteration(walk: Walk, index: int, body: Scope, base: int, at: int, shown: bool) -> Walk:
    child = _enter(walk, index, body, base + at, f"[{at}]", True)
    if not shown:
        child.sink = None
    return child


def _outer(walk: Walk, body: Scope) -> dict[str, Held]:
    return {name: held for name in body.outer if (held := walk.held(name)) is not None}


def _hand_on(walk: Walk, index: int, child: Walk) -> None:
    """The outputs of the graph become those of the node."""
    if walk.shared.stop is not None:
        return
    inner = [
        name for name, outer in zip(child.scope.outputs, walk.scope.graph.node[index].output, strict=False) if outer
    ]
    lost = [child.lost.get(name, "") for name in inner]
    walk.finish(index, [None if why else child.held(name) for name, why in zip(inner, lost, strict=True)], lost)


def _gave_up(walk: Walk, index: int, child: Walk) -> bool:
    if walk.shared.stop is None and child.lost:
        walk.lose(index, next(iter(child.lost.values())))
    return walk.shared.stop is not None or bool(child.lost)


def _step(walk: Walk, body: Scope, add: int) -> int:
    """How often a graph was begun before; ``add`` more are counted."""
    before = walk.shared.executions.get(body.index, 0)
    walk.shared.executions[body.index] = before + add
    return before


def _say_how_many(walk: Walk, index: int, at: int, more: bool) -> None:
    if not more or walk.sink is None or walk.scope.id(index) in walk.shared.told:
        return
    walk.shared.told.add(walk.scope.id(index))
    words = f"{walk.scope.words(index)} goes on after its iteration {at - 1}; chosen iterations alone are looked into."
    walk.shared.report.finding(Finding("run.iterations", "info", words, f"node {walk.scope.id(index)}"))


def _optional(walk: Walk, node: onnx.NodeProto, at: int) -> Held | None:
    return walk.held(node.input[at]) if len(node.input) > at and node.input[at] else None


def _scalar(held: Held) -> np.generic:
    return elements(held.value).array.reshape(-1)[0]


def _truth(held: Held) -> bool:
    return bool(_scalar(held))


def _like(item: onnx.ValueInfoProto, number: np.generic) -> Held:
    """A number of the rank that the body declares, one element in any case."""
    rank = len(item.type.tensor_type.shape.dim) if item.type.tensor_type.HasField("shape") else 0
    value = ort.OrtValue.ortvalue_from_numpy(np.asarray(number).reshape((1,) * rank))
    return Held(value, value.data_type())


def _numbers(node: onnx.NodeProto, name: str, count: int) -> Sequence[int]:
    found = [number for a in node.attribute if a.name == name for number in a.ints]
    return found if len(found) == count else [0] * count
