"""Stored tensors of an ONNX model: their elements changed, replaced or stored at half the width."""

from __future__ import annotations

import hashlib
import os
from typing import Final

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from core.edits.kinds import ReplaceTensor, ScaleTensor, SetElements
from core.edits.onnx_document import VALUES_BYTES, GraphLike, OnnxDocument
from core.errors import BrokenFile, NotFound, Unavailable, UnreadableFile, UsageError
from core.limits import MIB, check

_FLOATS: Final = ("f", "c")
_SMALL_FLOATS: Final = (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)


def scale_tensor(document: OnnxDocument, edit: ScaleTensor) -> None:
    """Multiply all elements, computed in float64 and rounded once."""
    tensor = stored_tensor(document.graph(edit.graph), edit.tensor)
    array = document.values(tensor)
    if not is_float(array.dtype):
        raise UsageError(f"tensor {edit.tensor[:200]!r} holds {array.dtype}; only floating-point numbers are scaled")
    put(
        tensor,
        _rounded(
            np.asarray(array, np.complex128 if array.dtype.kind == "c" else np.float64) * edit.factor, array.dtype
        ),
    )


def set_elements(document: OnnxDocument, edit: SetElements) -> None:
    """Set the elements of a slice to one number."""
    tensor = stored_tensor(document.graph(edit.graph), edit.tensor)
    array = np.array(document.values(tensor))
    index = index_of(edit.at, array.shape)
    value = np.asarray(edit.to).astype(array.dtype)
    if array.dtype.kind in "iub" and float(value) != edit.to:
        raise UsageError(f"{edit.to} is no {array.dtype}")
    array[index] = value
    put(tensor, array)


def replace_tensor(document: OnnxDocument, edit: ReplaceTensor) -> None:
    """Replace all elements by those of a file; reads it."""
    tensor = stored_tensor(document.graph(edit.graph), edit.tensor)
    given = _read_npy(edit.path, edit.sha256)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if given.shape != tuple(tensor.dims) or given.dtype != dtype:
        raise UsageError(
            f"tensor {edit.tensor[:200]!r} is {dtype} {list(tensor.dims)}, {os.path.basename(edit.path)} holds "
            f"{given.dtype} {list(given.shape)}"
        )
    put(tensor, given)


def stored_tensor(graph: GraphLike, name: str) -> onnx.TensorProto:
    """An initializer by name, or what a ``Constant`` node of that output or name holds.

    Raises:
        NotFound: if there is none. Unavailable: if it is stored sparse or as an attribute list.
    """
    if isinstance(graph, onnx.GraphProto):
        for tensor in graph.initializer:
            if tensor.name == name:
                return tensor
        if any(sparse.values.name == name for sparse in graph.sparse_initializer):
            raise Unavailable(f"tensor {name[:200]!r} is stored sparse; its elements cannot be edited")
    for node in graph.node:
        if node.op_type == "Constant" and name in (*node.output, node.name):
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    return attribute.t
            raise Unavailable(f"constant {name[:200]!r} is an attribute; set the attribute instead")
    raise NotFound(f"there is no stored tensor {name[:200]!r}")


def put(tensor: onnx.TensorProto, array: NDArray[np.generic]) -> None:
    """Let a tensor hold these elements; its name and documentation stay."""
    made = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), tensor.name)
    if tensor.doc_string:
        made.doc_string = tensor.doc_string
    made.metadata_props.extend(tensor.metadata_props)
    tensor.CopyFrom(made)


def is_float(dtype: np.dtype[np.generic]) -> bool:
    """Whether a numpy dtype is of floating point, those of ml_dtypes with it."""
    return dtype.kind in _FLOATS or dtype.type in _SMALL_FLOATS


def index_of(text: str, shape: tuple[int, ...]) -> tuple[int | slice, ...]:
    """A slice written as numpy has it, such as ``0, :, 2:5``.

    Raises:
        UsageError: if it is none, or leaves the shape.
    """
    entries = [entry.strip() for entry in text.split(",")] if text.strip() else []
    if len(entries) > len(shape):
        raise UsageError(f"{text!r} has {len(entries)} entries for {len(shape)} dimensions")
    index = list[int | slice]()
    for entry, size in zip(entries, shape, strict=False):
        parts = entry.split(":")
        try:
            numbers = [int(part) if part.strip() else None for part in parts]
        except ValueError:
            raise UsageError(f"{entry!r} is no slice; write for example 0, : or 2:5") from None
        if len(numbers) == 1 and numbers[0] is not None:
            if not -size <= numbers[0] < size:
                raise UsageError(f"index {numbers[0]} is outside a dimension of {size}")
            index.append(numbers[0])
        elif 2 <= len(numbers) <= 3 and (len(numbers) < 3 or numbers[2] != 0):
            index.append(slice(*numbers))
        else:
            raise UsageError(f"{entry!r} is no slice; write for example 0, : or 2:5")
    return tuple(index)


def _rounded(array: NDArray[np.generic], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def _read_npy(path: str, sha256: str) -> NDArray[np.generic]:
    try:
        with open(path, "rb") as file:
            check("the bytes of the file", os.fstat(file.fileno()).st_size, VALUES_BYTES + MIB, path=path)
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if sha256 and found != sha256:
                raise UsageError(f"{os.path.basename(path)} is not the file of the script: its SHA-256 is {found}")
            file.seek(0)
            return np.load(file, allow_pickle=False)
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror or error}", path=path) from None
    except (ValueError, EOFError) as error:
        raise BrokenFile(f"is no .npy file without pickles: {error}", path=path) from None
