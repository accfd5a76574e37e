"""Cutting a graph into parts whose values fit into the memory that capturing may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import onnx
from onnx import shape_inference

from core.dtypes import dtype_of
from core.formats.onnx_types import ELEMENT_TYPES
from core.limits import MIB
from core.trace.types import RunLimits
from worker.scope import Scope

UNKNOWN: Final = -1
AT_ONCE: Final = 256 * MIB
_INFERRED_NODES: Final = 200_000


def budget(limits: RunLimits) -> int:
    """Bytes of values that one part may make: a quarter of the memory, and at most 256 MiB."""
    return max(1, min(limits.memory // 4, limits.capture, AT_ONCE))


def predict(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Bytes of every value of the main graph for inputs of these shapes, ``UNKNOWN`` left out.

    By the shape inference of ``onnx`` on a copy without payloads; where a shape depends on data it
    may stay unknown.
    """
    if len(model.graph.node) > _INFERRED_NODES:
        return {}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for item in copy.graph.input:
        if item.name in shapes:
            _fix(item, shapes[item.name])
    for item in copy.graph.output:
        if item.type.HasField("tensor_type"):
            item.type.tensor_type.ClearField("shape")
    try:
        inferred = shape_inference.infer_shapes(copy, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return {}
    graph = inferred.graph
    known = {item.name: nbytes(item.type) for item in (*graph.value_info, *graph.input, *graph.output)}
    return {name: size for name, size in known.items() if size != UNKNOWN}


def nbytes(proto: onnx.TypeProto) -> int:
    """Bytes of a tensor of this type, ``UNKNOWN`` where a dimension is open or it is no tensor."""
    tensor = proto.tensor_type
    name = ELEMENT_TYPES.get(tensor.elem_type)
    if not proto.HasField("tensor_type") or name is None or not tensor.HasField("shape"):
        return UNKNOWN
    count = 1
    for dim in tensor.shape.dim:
        if not dim.HasField("dim_value") or dim.dim_value < 0:
            return UNKNOWN
        count *= dim.dim_value
    dtype = dtype_of(name)
    return dtype.nbytes(count) if dtype.bits else 32 * count


def cut(model: Scope, nodes: Sequence[int], sizes: Mapping[str, int], most: int) -> list[tuple[int, ...]]:
    """Neighbouring nodes together as long as what they make stays within ``most`` bytes.

    Where every value is known and all fit, that is one part. A node whose output is unknown is
    taken to make as much as its largest input.
    """
    parts: list[tuple[int, ...]] = []
    part: list[int] = []
    total = 0
    guessed = dict(sizes)
    for index in nodes:
        largest = max((guessed.get(name, 0) for name in model.needs[index]), default=0)
        made = 0
        for name in model.makes[index]:
            made += guessed.setdefault(name, largest)
        if part and total + made > most:
            parts.append(tuple(part))
            part, total = [], 0
        part.append(index)
        total += made
    return [*parts, tuple(part)] if part else parts


def last_uses(model: Scope, keep: Sequence[str]) -> dict[str, int]:
    """For each value the place in ``order`` after which nobody takes it, subgraphs counted."""
    last = {name: place for place, index in enumerate(model.order) for name in model.makes[index]}
    last.update((name, place) for place, index in enumerate(model.order) for name in model.needs[index])
    last.update((name, len(model.order)) for name in keep)
    return last


def _fix(item: onnx.ValueInfoProto, shape: Sequence[int]) -> None:
    tensor = item.type.tensor_type
    tensor.ClearField("shape")
    for size in shape:
        tensor.shape.dim.add().dim_value = size
    tensor.shape.SetInParent()
