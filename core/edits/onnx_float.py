"""Half precision: float32 weights stored and computed as float16 or bfloat16."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from core.edits.kinds import ConvertFloat
from core.edits.onnx_document import OnnxDocument, subgraphs
from core.edits.onnx_library import infer
from core.edits.onnx_names import all_names, new_name
from core.edits.onnx_nodes import keep
from core.edits.onnx_tensors import put
from core.edits.pieces import Made, Span
from core.errors import Unavailable, UsageError
from core.limits import KIB

_TO: Final = {"float16": (TensorProto.FLOAT16, np.float16), "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}
_LARGE: Final = 64 * KIB

_FLOAT32_ONLY: Final[dict[str, frozenset[int]]] = {
    "Resize": frozenset({1, 2}), "Upsample": frozenset({1}), "QuantizeLinear": frozenset({1}),
    "DequantizeLinear": frozenset({1}), "DynamicQuantizeLinear": frozenset({0}),
    "NonMaxSuppression": frozenset({0, 1, 3, 4}),
}  # fmt: skip
"""Inputs that the standard operators take as float32 only (or whose scales stay so)."""

_FLOAT32_OUT: Final = frozenset({"DequantizeLinear", "NonMaxSuppression"})
_TYPED_BY_ATTRIBUTE: Final = {"Cast": "to", "RandomNormal": "dtype", "RandomUniform": "dtype", "EyeLike": "dtype"}
_FLOAT: Final = TensorProto.FLOAT


def convert_float(document: OnnxDocument, edit: ConvertFloat) -> OnnxDocument:
    """Store and compute in half precision; nodes to keep stay within Casts; may start a process.

    Float32 weights become half as wide when they are written; none is held in memory.
    """
    if edit.to not in _TO:
        raise UsageError(f"half precision is {' or '.join(_TO)}, not {edit.to!r}")
    if document.proto.functions or any(any(True for _ in subgraphs(node)) for node in document.proto.graph.node):
        raise Unavailable(
            "models with functions or subgraphs are not converted to half precision", path=document.source.path
        )
    kept = {document.node(name)[1] for name in edit.keep}
    graph = document.proto.graph
    types = _types(graph)
    if any(name and name not in types for node in graph.node for name in node.output):
        inferred = infer(document)
        types.update({name: kind.tensor_type.elem_type for name, kind in inferred.values.items()})
        unknown = [name for node in graph.node for name in node.output if name and not types.get(name)]
        if unknown:
            raise Unavailable(
                f"the types of {len(unknown)} values cannot be inferred, that of {unknown[0][:200]!r} among them"
                + (f": {inferred.problem}" if inferred.problem else ""),
                path=document.source.path,
            )
    return _Conversion(document, edit, types, kept).run()


class _Conversion:
    def __init__(self, document: OnnxDocument, edit: ConvertFloat, types: dict[str, int], kept: set[int]) -> None:
        self._document, self._graph = document, document.proto.graph
        self._kind, self._dtype = _TO[edit.to]
        self._edit, self._types, self._kept = edit, types, kept
        self._taken = all_names(self._graph)
        self._half = dict[str, str]()
        self._full = dict[str, str]()

    def run(self) -> OnnxDocument:
        graph, nodes = self._graph, list[onnx.NodeProto]()
        stored = {item.name for item in graph.initializer}
        full_inside = self._taken_in_full()
        for item in graph.input:
            if item.name in stored or item.type.tensor_type.elem_type != _FLOAT:
                continue
            if self._edit.boundary:
                nodes.append(self._cast(item.name, self._name(self._half, item.name, "half"), self._kind))
            else:
                item.type.tensor_type.elem_type = self._kind
        outputs = {item.name for item in graph.output if item.type.tensor_type.elem_type == _FLOAT}
        for place, node in enumerate(graph.node):
            nodes += self._node(place, node, outputs)
        self._outputs(nodes)
        keep(graph.node, nodes)
        for item in graph.value_info:
            if item.type.tensor_type.elem_type == _FLOAT and item.name not in self._full.values():
                item.type.tensor_type.elem_type = self._kind
        self._weights(full_inside)
        return self._document

    def _node(self, place: int, node: onnx.NodeProto, outputs: set[str]) -> list[onnx.NodeProto]:
        before, after, full = list[onnx.NodeProto](), list[onnx.NodeProto](), place in self._kept
        weights = {item.name for item in self._graph.initializer}
        only = _FLOAT32_ONLY.get(node.op_type, frozenset())
        for i, name in enumerate(node.input):
            if self._types.get(name) != _FLOAT:
                continue
            if full or i in only:
                if name in weights:
                    continue
                if name not in self._full:
                    made = self._name(self._full, name, "float32")
                    before.append(self._cast(self._half.get(name, name), made, _FLOAT))
                node.input[i] = self._full[name]
            elif name in self._half and name not in weights:
                node.input[i] = self._half[name]
        for i, name in enumerate(node.output):
            if self._types.get(name) == _FLOAT and (full or node.op_type in _FLOAT32_OUT):
                made = new_name(self._taken, f"{name}_float32")
                node.output[i] = made
                after.append(self._cast(made, name, self._kind))
        attribute = _TYPED_BY_ATTRIBUTE.get(node.op_type)
        for item in node.attribute:
            if not full and item.name == attribute and item.i == _FLOAT:
                item.i = self._kind
            elif not full and item.HasField("t") and item.t.data_type == _FLOAT:
                self._document = narrowed(self._document, item.t, self._kind, self._dtype)
        return [*before, node, *after]

    def _outputs(self, nodes: list[onnx.NodeProto]) -> None:
        """Outputs keep their names; what is made in half precision gets another before the last Cast."""
        for item in self._graph.output:
            if item.type.tensor_type.elem_type != _FLOAT:
                continue
            if not self._edit.boundary:
                item.type.tensor_type.elem_type = self._kind
                continue
            inner = new_name(self._taken, f"{item.name}_half")
            for node in nodes:
                for names in (node.input, node.output):
                    for i, name in enumerate(names):
                        if name == item.name:
                            names[i] = inner
            nodes.append(self._cast(inner, item.name, _FLOAT))

    def _weights(self, full: set[str]) -> None:
        for tensor in self._graph.initializer:
            if tensor.data_type == _FLOAT and tensor.name not in full:
                self._document = narrowed(self._document, tensor, self._kind, self._dtype)
        declared = {item.name: item for item in self._graph.input}
        for tensor in self._graph.initializer:
            if tensor.name in declared:
                declared[tensor.name].type.tensor_type.elem_type = tensor.data_type

    def _taken_in_full(self) -> set[str]:
        """Weights that a kept node, or an input of float32 only, takes; those another node takes too are refused."""
        weights = {item.name for item in self._graph.initializer if item.data_type == _FLOAT}
        full, half = set[str](), set[str]()
        for place, node in enumerate(self._graph.node):
            only = _FLOAT32_ONLY.get(node.op_type, frozenset())
            for i, name in enumerate(node.input):
                if name in weights:
                    (full if place in self._kept or i in only else half).add(name)
        for name in full & half:
            self._split(name)
        return full

    def _split(self, name: str) -> None:
        """Give the nodes that take a weight in full a copy of their own."""
        tensor = next(item for item in self._graph.initializer if item.name == name)
        copied = onnx.TensorProto()
        copied.CopyFrom(tensor)
        copied.name = new_name(self._taken, f"{name}_half")
        self._graph.initializer.append(copied)
        self._types[copied.name] = _FLOAT
        for place, node in enumerate(self._graph.node):
            only = _FLOAT32_ONLY.get(node.op_type, frozenset())
            for i, taken in enumerate(node.input):
                if taken == name and place not in self._kept and i not in only:
                    node.input[i] = copied.name

    def _name(self, known: dict[str, str], name: str, end: str) -> str:
        known[name] = new_name(self._taken, f"{name}_{end}")
        return known[name]

    def _cast(self, takes: str, makes: str, to: int) -> onnx.NodeProto:
        return helper.make_node("Cast", [takes], [makes], name=f"{makes}_cast", to=to)


def narrowed(document: OnnxDocument, tensor: onnx.TensorProto, kind: int, dtype: type) -> OnnxDocument:
    """Let a float32 tensor be stored as ``dtype``: small ones now, large ones when they are written."""
    piece = document.payload(tensor)
    if not isinstance(piece, Span) or piece.nbytes < _LARGE:
        put(tensor, _cast_array(document.values(tensor), dtype))
        return document

    def make(start: int, stop: int) -> bytes:
        return _cast_array(np.frombuffer(piece.read(2 * start, 2 * stop), "<f4"), dtype).tobytes()

    document, entries = document.with_payload(Made(piece.nbytes // 2, make, 2))
    name, dims, doc = tensor.name, list(tensor.dims), tensor.doc_string
    tensor.Clear()
    tensor.name, tensor.data_type, tensor.data_location = name, kind, TensorProto.EXTERNAL
    tensor.dims.extend(dims)
    if doc:
        tensor.doc_string = doc
    for key, value in entries:
        tensor.external_data.add(key=key, value=value)
    return document


def _cast_array(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array, dtype)


def _types(graph: onnx.GraphProto) -> dict[str, int]:
    types = {item.name: item.data_type for item in graph.initializer}
    for item in (*graph.input, *graph.output, *graph.value_info):
        if item.type.HasField("tensor_type") and item.type.tensor_type.elem_type:
            types[item.name] = item.type.tensor_type.elem_type
    return types
