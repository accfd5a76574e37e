"""The model's boundary: its inputs, outputs, their shapes, types and layouts, and parts of it."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from core.edits.kinds import (
    AddOutput,
    ExtractSubgraph,
    FixDimension,
    FoldPreprocessing,
    MakeBatchDynamic,
    RemoveOutput,
    SetDimension,
    SetInputType,
    SetLayout,
)
from core.edits.onnx_document import GraphLike, OnnxDocument, subgraphs
from core.edits.onnx_library import infer
from core.edits.onnx_names import all_names, made_in, need_value, new_name, replace_name, used_in
from core.edits.onnx_nodes import clean, keep
from core.errors import NotFound, UsageError

ELEMENT_TYPES: Final = {
    "float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16,
    "float64": TensorProto.DOUBLE, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "uint16": TensorProto.UINT16,
    "int16": TensorProto.INT16, "int32": TensorProto.INT32, "uint32": TensorProto.UINT32,
    "int64": TensorProto.INT64, "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL,
}  # fmt: skip
"""Element types an input can be given as."""

_TO_NHWC: Final = (0, 2, 3, 1)
_TO_NCHW: Final = (0, 3, 1, 2)


def extract_subgraph(document: OnnxDocument, edit: ExtractSubgraph) -> None:
    """Keep what leads from some values to others; starts a process where a new input has no declared type."""
    graph = document.proto.graph
    if not edit.outputs:
        raise UsageError("no output is given")
    for name in (*edit.inputs, *edit.outputs):
        need_value(graph, name)
    types = declared(graph)
    cut = set(edit.inputs)
    stored = {item.name for item in graph.initializer} | {item.values.name for item in graph.sparse_initializer}
    nodes, missing = _between(graph, cut, set(edit.outputs), stored)
    if missing:
        raise UsageError(
            f"the outputs need {len(missing)} more values, {sorted(missing)[0]!r} among them",
            hint="Name them as inputs too, or choose inputs further up.",
        )
    if any(name not in types for name in edit.inputs):
        for name, kind in infer(document).values.items():
            types.setdefault(name, onnx.ValueInfoProto(name=name, type=kind))
    keep(graph.node, [node for place, node in enumerate(graph.node) if place in nodes])
    inputs, outputs = ([_typed(types, name) for name in names] for names in (edit.inputs, edit.outputs))
    keep(graph.input, inputs)
    keep(graph.output, outputs)
    keep(graph.initializer, [item for item in graph.initializer if item.name not in cut])
    clean(graph)


def add_output(document: OnnxDocument, edit: AddOutput) -> None:
    """Make a value a model output."""
    graph = document.proto.graph
    need_value(graph, edit.value)
    if any(item.name == edit.value for item in graph.output):
        raise UsageError(f"{edit.value!r} is an output already")
    graph.output.append(_typed(declared(graph), edit.value))
    keep(graph.value_info, [item for item in graph.value_info if item.name != edit.value])


def remove_output(document: OnnxDocument, edit: RemoveOutput) -> None:
    """Make a model output an inner value, and drop what only it needed."""
    graph = document.proto.graph
    kept = [item for item in graph.output if item.name != edit.value]
    if len(kept) == len(graph.output):
        raise NotFound(f"the model has no output {edit.value[:200]!r}")
    if not kept:
        raise UsageError("it is the only output of the model")
    keep(graph.output, kept)
    if edit.clean:
        clean(graph)


def fix_dimension(document: OnnxDocument, edit: FixDimension) -> None:
    """Give every dimension of a symbol's name one size."""
    if edit.size < 0:
        raise UsageError(f"a dimension cannot be {edit.size}")
    found = 0
    for graph in document.graphs():
        for item in _typed_items(graph):
            for dim in item.type.tensor_type.shape.dim:
                if dim.dim_param == edit.symbol:
                    dim.dim_value = edit.size
                    found += 1
    if not found:
        raise NotFound(f"no dimension is called {edit.symbol[:200]!r}")


def set_dimension(document: OnnxDocument, edit: SetDimension) -> None:
    """Set one dimension of an input or output; what lies between is declared anew by whoever infers it."""
    graph = document.proto.graph
    item = _boundary(graph, edit.value)
    dims = item.type.tensor_type.shape.dim
    if not -len(dims) <= edit.axis < len(dims):
        raise UsageError(f"{edit.value!r} has {len(dims)} dimensions, there is no dimension {edit.axis}")
    _set(dims[edit.axis % len(dims)], edit.to)
    _forget_inner_shapes(graph)


def make_batch_dynamic(document: OnnxDocument, edit: MakeBatchDynamic) -> None:
    """Let the first dimension of inputs and outputs be a symbol; Reshapes that fix the batch are mended."""
    graph = document.proto.graph
    stored = {item.name for item in graph.initializer}
    sizes = set[int]()
    for item in (*[i for i in graph.input if i.name not in stored], *graph.output):
        dims = item.type.tensor_type.shape.dim
        if not dims:
            continue
        if dims[0].HasField("dim_value"):
            sizes.add(dims[0].dim_value)
        _set(dims[0], edit.symbol)
    if not sizes:
        raise UsageError("no input or output has a fixed first dimension")
    if len(sizes) > 1:
        raise UsageError(f"inputs and outputs begin with different sizes: {', '.join(map(str, sorted(sizes)))}")
    _mend_reshapes(document, graph, sizes.pop())
    _forget_inner_shapes(graph)


def set_input_type(document: OnnxDocument, edit: SetInputType) -> None:
    """Let an input be given as another type and cast it to what the model takes."""
    graph = document.proto.graph
    item = _input(graph, edit.value)
    kind = ELEMENT_TYPES.get(edit.dtype)
    if kind is None:
        raise UsageError(f"an input cannot be given as {edit.dtype!r}; known are {', '.join(ELEMENT_TYPES)}")
    inner = item.type.tensor_type.elem_type
    if inner == kind:
        raise UsageError(f"{edit.value!r} is {edit.dtype} already")
    cast = helper.make_node(
        "Cast", [edit.value], [_inner(graph, edit.value, "cast")], name=f"{edit.value}_cast", to=inner
    )
    item.type.tensor_type.elem_type = kind
    _first(graph, [cast])


def set_layout(document: OnnxDocument, edit: SetLayout) -> None:
    """Let an input or output have the other layout."""
    graph = document.proto.graph
    item = _boundary(graph, edit.value)
    dims = item.type.tensor_type.shape.dim
    if edit.layout not in ("NHWC", "NCHW") or len(dims) != 4:
        raise UsageError(f"{edit.value!r} has {len(dims)} dimensions; layouts NHWC and NCHW are for four")
    outward = _TO_NHWC if edit.layout == "NHWC" else _TO_NCHW
    inward = _TO_NCHW if edit.layout == "NHWC" else _TO_NHWC
    permuted = [onnx.TensorShapeProto.Dimension.FromString(dims[axis].SerializeToString()) for axis in outward]
    if any(value.name == edit.value for value in graph.input):
        inner = _inner(graph, edit.value, "layout")
        node = helper.make_node("Transpose", [edit.value], [inner], name=f"{edit.value}_layout", perm=inward)
        _first(graph, [node])
    else:
        inner = _inner(graph, edit.value, "before_layout", output=True)
        graph.node.append(
            helper.make_node("Transpose", [inner], [edit.value], name=f"{edit.value}_layout", perm=outward)
        )
    keep(dims, permuted)


def fold_preprocessing(document: OnnxDocument, edit: FoldPreprocessing) -> None:
    """Put ``(x * scale - mean) / std`` a channel before an input, which then takes raw numbers."""
    graph = document.proto.graph
    item = _input(graph, edit.value)
    inner = item.type.tensor_type.elem_type
    rank, kind = len(item.type.tensor_type.shape.dim), ELEMENT_TYPES.get(edit.dtype)
    if kind is None or inner not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
        raise UsageError(f"{edit.value!r} must take floating-point numbers, and {edit.dtype!r} be a known type")
    if len(edit.mean) != len(edit.std) or not edit.mean or not all(edit.std) or not 0 <= edit.axis < max(rank, 1):
        raise UsageError("mean and std need one number a channel, std none that is zero, and an axis of the input")
    shape = [1] * rank
    shape[edit.axis] = len(edit.mean)
    # x * (scale / std) - mean / std, in float64 before it is rounded once.
    std = np.asarray(edit.std, np.float64)
    numbers = {"factor": edit.scale / std, "offset": np.asarray(edit.mean, np.float64) / std}
    dtype = helper.tensor_dtype_to_np_dtype(inner)
    taken = all_names(graph)
    names = {key: new_name(taken, f"{edit.value}_{key}") for key in ("factor", "offset", "real", "scaled")}
    for key, array in numbers.items():
        graph.initializer.append(numpy_helper.from_array(array.reshape(shape).astype(dtype), names[key]))
    last = _inner(graph, edit.value, "normalized")
    real, scaled = names["real"], names["scaled"]
    _first(
        graph,
        [
            helper.make_node("Cast", [edit.value], [real], name=real, to=inner),
            helper.make_node("Mul", [real, names["factor"]], [scaled], name=scaled),
            helper.make_node("Sub", [scaled, names["offset"]], [last], name=last),
        ],
    )
    item.type.tensor_type.elem_type = kind


def declared(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """Declared types by value name, of initializers too."""
    types = {item.name: item for item in _typed_items(graph)}
    for tensor in graph.initializer:
        if tensor.name not in types:
            types[tensor.name] = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
    return types


def _typed(types: dict[str, onnx.ValueInfoProto], name: str) -> onnx.ValueInfoProto:
    """A value's declaration; where the file has none the element type is left for inference to fill in."""
    made = onnx.ValueInfoProto()
    if name in types:
        made.CopyFrom(types[name])
    else:
        made.name = name
    return made


def _typed_items(graph: GraphLike) -> list[onnx.ValueInfoProto]:
    if isinstance(graph, onnx.FunctionProto):
        return list(graph.value_info)
    return [*graph.input, *graph.output, *graph.value_info]


def _between(graph: onnx.GraphProto, cut: set[str], wanted: set[str], stored: set[str]) -> tuple[set[int], set[str]]:
    """Places of the nodes that make ``wanted`` out of ``cut``, and what else they would need."""
    maker = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    nodes, missing, seen, pending = set[int](), set[str](), set[str](), list(wanted - cut)
    while pending:
        name = pending.pop()
        if name in seen or name in cut:
            continue
        seen.add(name)
        place = maker.get(name)
        if place is not None:
            if place not in nodes:
                nodes.add(place)
                pending += _needs(graph.node[place])
        elif name not in stored:
            missing.add(name)
    return nodes, missing


def _needs(node: onnx.NodeProto) -> list[str]:
    names = [name for name in node.input if name]
    for inner in subgraphs(node):
        own = made_in(inner)
        names += [name for other in inner.node for name in _needs(other) if name not in own]
        names += [item.name for item in inner.output if item.name not in own]
    return names


def _boundary(graph: onnx.GraphProto, name: str) -> onnx.ValueInfoProto:
    for item in (*graph.input, *graph.output):
        if item.name == name:
            return item
    raise NotFound(f"the model has no input or output {name[:200]!r}")


def _input(graph: onnx.GraphProto, name: str) -> onnx.ValueInfoProto:
    for item in graph.input:
        if item.name == name:
            return item
    raise NotFound(f"the model has no input {name[:200]!r}")


def _inner(graph: onnx.GraphProto, name: str, end: str, *, output: bool = False) -> str:
    """Let inner nodes use another name for an input or output, so that it keeps its own outside."""
    made = new_name(all_names(graph), f"{name}_{end}")
    if output and any(item.name == name for item in graph.input):
        raise UsageError(f"{name!r} is an input and an output at once")
    if not output and any(item.name == name for item in graph.output):
        raise UsageError(f"{name!r} is an input and an output at once")
    replace_name(graph, lambda known: made if known == name else known, {name})
    for item in graph.output if output else graph.input:
        if item.name == made:
            item.name = name
    return made


def _first(graph: onnx.GraphProto, nodes: list[onnx.NodeProto]) -> None:
    keep(graph.node, [*nodes, *graph.node])


def _set(dim: onnx.TensorShapeProto.Dimension, to: int | str) -> None:
    if isinstance(to, str):
        if not to:
            raise UsageError("a symbol needs a name")
        dim.dim_param = to
    elif to < 0:
        raise UsageError(f"a dimension cannot be {to}")
    else:
        dim.dim_value = to


def _forget_inner_shapes(graph: onnx.GraphProto) -> None:
    """Inner values keep their element types; sizes may follow from the boundary and hold no more."""
    for item in graph.value_info:
        if item.type.HasField("tensor_type"):
            item.type.tensor_type.ClearField("shape")


def _mend_reshapes(document: OnnxDocument, graph: onnx.GraphProto, size: int) -> None:
    """Let a Reshape to a stored shape that begins with the old batch size take it from its input.

    Its first number becomes 0, "as the input has it", which holds where the input begins with the batch.
    """
    stored = {item.name: item for item in graph.initializer}
    taken = all_names(graph)
    for node in graph.node:
        shape = stored.get(node.input[1]) if node.op_type == "Reshape" and len(node.input) == 2 else None
        if shape is None or any(item.name == "allowzero" and item.i for item in node.attribute):
            continue
        numbers = np.asarray(document.values(shape), np.int64).reshape(-1)
        if numbers.size == 0 or numbers[0] != size:
            continue
        mended = numbers.copy()
        mended[0] = 0 if -1 in numbers[1:] else -1
        name = new_name(taken, f"{shape.name}_batch")
        graph.initializer.append(numpy_helper.from_array(mended, name))
        node.input[1] = name
    used = set(used_in(graph)) | {item.name for item in graph.input}
    keep(graph.initializer, [item for item in graph.initializer if item.name in used])
