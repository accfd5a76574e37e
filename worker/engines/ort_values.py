"""Values of onnxruntime as numpy arrays and as stored bytes, for every element type it has."""

from __future__ import annotations

import ctypes
import json
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from core.dtypes import DTYPES, DType, dtype_of, pack, unpack
from core.formats.onnx_types import ELEMENT_TYPES

_RENAMED: Final = {"float": "float32", "double": "float64"}
_NUMBER: Final = {name: number for number, name in ELEMENT_TYPES.items()}
_TENSOR: Final = re.compile(r"tensor\((\w+)\)")
_WRAPPED: Final = re.compile(r"(seq|optional)\((.*)\)")
_SHOWN: Final = 4
_MAP: Final = re.compile(r"map\((\w+),(.*)\)")


@dataclass(frozen=True, slots=True)
class Elements:
    """A tensor of the runtime seen from here, without a copy; dies with the runtime's value.

    Attributes:
        stored: its bytes as they lie in memory; packed types share bytes.
        array: one element a place: numbers, or bit patterns for bfloat16 (uint16) and floats of
            at most 8 bits (uint8); objects for text.
    """

    dtype: DType
    shape: tuple[int, ...]
    stored: NDArray[np.uint8]
    array: NDArray[Any]


def element_name(type_text: str) -> str:
    """The name of a type as the runtime writes it: ``tensor(float)`` is ``float32``."""
    found = _TENSOR.fullmatch(type_text)
    if found is None:
        return type_text.replace("seq(", "sequence(").replace("tensor(float)", "float32").replace("tensor", "")
    return _RENAMED.get(found[1], found[1])


def elements(value: ort.OrtValue) -> Elements:
    """The elements of a tensor in the runtime's memory.

    Raises:
        UnicodeDecodeError: if it is text that is not UTF-8.
    """
    dtype = dtype_of(element_name(value.data_type()))
    shape = tuple(value.shape())
    if dtype.kind == "string":
        texts = np.asarray(value.numpy(), object).reshape(shape)
        return Elements(dtype, shape, np.empty(0, np.uint8), texts)
    count = 1
    for size in shape:
        count *= size
    nbytes = dtype.nbytes(count)
    if nbytes == 0:
        stored = np.empty(0, np.uint8)
    else:
        stored = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(value.data_ptr()))
    return Elements(dtype, shape, stored, _array(stored, dtype, count).reshape(shape))


def from_array(array: NDArray[Any], dtype: DType) -> ort.OrtValue:
    """A value of the runtime from an input array of the spool.

    Args:
        array: numbers, or bit patterns as ``core.run.prepare.request`` takes them.
    """
    if dtype.kind == "string":
        return _text(array)
    array = np.ascontiguousarray(array).reshape(array.shape)
    if dtype.name in _PLAIN:
        return ort.OrtValue.ortvalue_from_numpy(array)
    if dtype.packed:
        value = ort.OrtValue.ortvalue_from_shape_and_type(list(array.shape), _NUMBER[dtype.name])
        packed = pack(array.reshape(-1).view(np.uint8), dtype.bits)
        if packed.size:
            ctypes.memmove(value.data_ptr(), packed.ctypes.data, packed.size)
        return value
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _NUMBER[dtype.name])


def from_stored(stored: NDArray[np.uint8], dtype: DType, shape: tuple[int, ...]) -> ort.OrtValue:
    """A value of the runtime from bytes as ``worker.capture`` stores them."""
    if dtype.kind == "string":
        return _text(np.array(json.loads(stored.tobytes()), object).reshape(shape))
    count = 1
    for size in shape:
        count *= size
    return from_array(_array(stored, dtype, count).reshape(shape), dtype)


def sequence_of(values: list[ort.OrtValue]) -> ort.OrtValue:
    """A sequence of tensors of one type; of float32 where there are none."""
    model = onnx.ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=11)
    model.graph.name = "sequence"
    for at, value in enumerate(values):
        model.graph.input.add(name=f"x{at}").type.CopyFrom(type_proto(value.data_type()))
    feeds = {f"x{at}": value for at, value in enumerate(values)}
    op_type = "SequenceConstruct" if values else "SequenceEmpty"
    model.graph.node.add(op_type=op_type, input=list(feeds), output=["y"])
    model.graph.output.add(name="y")
    return ort.InferenceSession(model.SerializeToString()).run_with_ort_values(None, feeds)[0]


def describe(value: ort.OrtValue) -> tuple[tuple[int, ...], str]:
    """Length and words for a value that is no tensor, e.g. ``a sequence of 2: float32 3 x 4, ...``."""
    if value.is_sparse_tensor():
        return tuple(value.shape()), "it is a sparse tensor"
    type_text = value.data_type()
    found = _WRAPPED.fullmatch(type_text)
    if found is None or not value.is_tensor_sequence():
        return (), f"it is a {element_name(type_text)}"
    length = int(_ask("SequenceLength", value, None)[0].numpy())
    shown = [tuple(_ask("SequenceAt", value, at)[0].shape()) for at in range(min(length, _SHOWN))]
    texts = [" x ".join(map(str, shape)) or "scalar" for shape in shown]
    more = ", ..." if length > _SHOWN else ""
    return (length,), f"it is a sequence of {length} {element_name(found[2])}: {', '.join(texts)}{more}"


def _text(array: NDArray[Any]) -> ort.OrtValue:
    """A tensor of text: the runtime takes one only from a model."""
    model = onnx.ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=13)
    model.graph.name = "text"
    texts = [str(item).encode() for item in array.reshape(-1).tolist()]
    model.graph.initializer.append(
        onnx.TensorProto(name="x", data_type=onnx.TensorProto.STRING, dims=array.shape, string_data=texts)
    )
    model.graph.node.add(op_type="Identity", input=["x"], output=["y"])
    model.graph.output.add(name="y")
    return ort.InferenceSession(model.SerializeToString()).run_with_ort_values(None, {})[0]


def _ask(op_type: str, sequence: ort.OrtValue, position: int | None) -> list[ort.OrtValue]:
    """Run one operator over a sequence: the runtime gives no other way to look into it."""
    model = onnx.ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=11)
    graph = model.graph
    graph.name = "ask"
    graph.input.add(name="s").type.CopyFrom(type_proto(sequence.data_type()))
    graph.output.add(name="y")
    feeds = {"s": sequence}
    if position is not None:
        graph.input.add(name="i").type.CopyFrom(type_proto("tensor(int64)"))
        feeds["i"] = ort.OrtValue.ortvalue_from_numpy(np.asarray(position))
    graph.node.add(op_type=op_type, input=list(feeds), output=["y"])
    return ort.InferenceSession(model.SerializeToString()).run_with_ort_values(None, feeds)


def type_proto(type_text: str) -> onnx.TypeProto:
    """A type as the runtime writes it, e.g. ``seq(tensor(float))``, as the file format has it."""
    proto = onnx.TypeProto()
    tensor, wrapped, mapping = _TENSOR.fullmatch(type_text), _WRAPPED.fullmatch(type_text), _MAP.fullmatch(type_text)
    if tensor is not None:
        proto.tensor_type.elem_type = _NUMBER[element_name(type_text)]
    elif wrapped is not None:
        inner = proto.sequence_type if wrapped[1] == "seq" else proto.optional_type
        inner.elem_type.CopyFrom(type_proto(wrapped[2]))
    elif mapping is not None:
        proto.map_type.key_type = _NUMBER[_RENAMED.get(mapping[1], mapping[1])]
        proto.map_type.value_type.CopyFrom(type_proto(mapping[2]))
    return proto


_PLAIN: Final = frozenset(
    {"float16", "float32", "float64", "bool"} | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


def _array(stored: NDArray[np.uint8], dtype: DType, count: int) -> NDArray[Any]:
    if dtype.packed:
        codes = unpack(stored, dtype.bits, count)
        if dtype.kind != "int":
            return codes
        shift = np.int8(8 - dtype.bits)
        return (codes.view(np.int8) << shift) >> shift
    if dtype.kind == "bool":
        return stored.view(np.bool_)
    return stored.view(np.dtype(dtype.storage).newbyteorder("="))


assert set(_NUMBER) <= set(DTYPES)
