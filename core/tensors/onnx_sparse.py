"""Sparse tensors of ONNX, spread out to dense ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of, to_numbers
from core.errors import BrokenFile, Unavailable
from core.formats._protobuf import Damage
from core.formats.onnx_external import ExternalFiles
from core.formats.onnx_tensor import TensorReader, sparse_parts
from core.ir import ByteRange, Model, Tensor
from core.limits import DECODE_ELEMENTS, check
from core.source import Source
from core.tensors.onnx_typed import decode_typed, window_over


def decode_sparse(model: Model, tensor: Tensor, start: int, stop: int) -> NDArray[Any]:
    """Elements ``start`` to ``stop`` of the dense tensor; reads all values and indices from disk.

    ``SparseTensorProto``: indices are linear ([NNZ]) or coordinates ([NNZ, rank]).

    Raises:
        BrokenFile: if an index is outside the shape.
        LimitExceeded: beyond ``limits.DECODE_ELEMENTS``.
    """
    check("the number of elements", tensor.elements, DECODE_ELEMENTS, path=model.path)
    window, first, last = window_over(model, tensor)
    damage = Damage(model.path)
    parts = sparse_parts(window, damage, [(first, last)])
    external = ExternalFiles(model.sources[0])
    reader = TensorReader(window, damage, external)
    inner = replace(model, sources=_same(model.sources, external.sources))
    values = _flat(inner, tensor, reader.read(parts.values, role=tensor.role, graph=tensor.graph))
    inner = replace(model, sources=_same(model.sources, external.sources))
    indices = _flat(inner, tensor, reader.read(parts.indices, role=tensor.role, graph=tensor.graph))
    if damage.errors:
        raise damage.errors[0]
    places = _linear(indices.astype(np.int64), values.size, tensor, model.path)
    if values.dtype == object:
        dense: NDArray[Any] = np.full(tensor.elements, "", object)
    else:
        dense = np.zeros(tensor.elements, values.dtype)
    dense[places] = values
    return dense[start:stop]


def _same(opened: tuple[Source, ...], found: list[Source]) -> tuple[Source, ...]:
    """The sources opened with the model, in the order found, so that changes are noticed."""
    by_path = {source.path: source for source in opened}
    return tuple(by_path.get(source.path, source) for source in found)


def _flat(model: Model, whole: Tensor, part: Tensor) -> NDArray[Any]:
    if part.problem:
        raise Unavailable(f"tensor {whole.name!r} cannot be read: {part.problem}", path=model.path)
    check("the number of stored elements", part.elements, DECODE_ELEMENTS, path=model.path)
    if part.encoding == "onnx.typed":
        return decode_typed(model, part, 0, part.elements)
    data = part.data or b""
    if isinstance(data, ByteRange):
        buffer = np.empty(data.nbytes, np.uint8)
        model.sources[data.source].read_into(data.start, buffer.data)
        return to_numbers(buffer, dtype_of(part.dtype), part.elements)
    return to_numbers(data, dtype_of(part.dtype), part.elements)


def _linear(indices: NDArray[np.int64], count: int, tensor: Tensor, path: str) -> NDArray[np.int64]:
    if indices.size not in (count, count * len(tensor.shape)):
        raise BrokenFile(
            "has not one index a value", path=path, field=f"tensor {tensor.name!r}", expected=count, found=indices.size
        )
    if indices.size != count:
        indices = _from_coordinates(indices.reshape(count, -1), tensor, path)
    if indices.size and (indices.min() < 0 or indices.max() >= tensor.elements):
        raise _outside(tensor, path)
    return indices


def _from_coordinates(rows: NDArray[np.int64], tensor: Tensor, path: str) -> NDArray[np.int64]:
    shape = np.array(tensor.shape, np.int64)
    if rows.size and ((rows < 0) | (rows >= shape)).any():
        raise _outside(tensor, path)
    steps = np.concatenate([np.cumprod(shape[:0:-1], dtype=np.int64)[::-1], [1]]).astype(np.int64)
    return (rows * steps).sum(axis=1)


def _outside(tensor: Tensor, path: str) -> BrokenFile:
    return BrokenFile(
        "an index is outside the shape", path=path, field=f"tensor {tensor.name!r}", expected=list(tensor.shape)
    )
