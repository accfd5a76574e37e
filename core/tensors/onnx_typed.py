"""Elements in the typed fields of a ``TensorProto`` or an ``AttributeProto``.

Which field holds which type, and how narrow types sit in int32_data: comments of onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, dtype_of, mini_float_table, to_numbers
from core.errors import BrokenFile, Unavailable
from core.formats._protobuf import BYTES, FIXED32, FIXED64, VARINT, Damage, Window, fields, varints
from core.formats.onnx_tensor import INT32_DATA, TYPED_FIELDS
from core.ir import ByteRange, Model, Tensor
from core.limits import ATTRIBUTE_BYTES, DECODE_ELEMENTS, MIB, check

_ATTRIBUTE_FIELDS: Final = {"float32": (7, 2), "int64": (8, 3), "string": (9, 4)}
_FIXED: Final = {4: 4, 10: 8}


def decode_typed(model: Model, tensor: Tensor, start: int, stop: int) -> NDArray[Any]:
    """Elements ``start`` to ``stop``; reads and decodes all of them from disk.

    Raises:
        BrokenFile: if there are not as many as the shape says.
        LimitExceeded: beyond ``limits.DECODE_ELEMENTS``.
    """
    check("the number of elements", tensor.elements, DECODE_ELEMENTS, path=model.path)
    window, first, last = window_over(model, tensor)
    dtype = dtype_of(tensor.dtype)
    if tensor.encoding == "onnx.attribute":
        message, numbers = "AttributeProto", _ATTRIBUTE_FIELDS[tensor.dtype]
    else:
        message, numbers = "TensorProto", (TYPED_FIELDS.get(tensor.dtype, INT32_DATA),)
    damage = Damage(model.path)
    if tensor.dtype == "string":
        return _strings(window, first, last, message, numbers, damage, tensor)[start:stop]
    data = _stored(window, first, last, message, numbers, damage, tensor, dtype)
    if dtype.bits == 6:
        _expect(tensor, model.path, len(data), tensor.elements)
        return mini_float_table(dtype.name)[data & np.uint8(63)][start:stop]
    _expect(tensor, model.path, len(data), dtype.nbytes(tensor.elements))
    return to_numbers(data, dtype, tensor.elements)[start:stop]


def window_over(model: Model, tensor: Tensor) -> tuple[Window, int, int]:
    """A window on a tensor's message, with where it starts and ends."""
    data = tensor.data
    if data is None:
        raise Unavailable(f"tensor {tensor.name!r} has no data", path=model.path)
    if isinstance(data, ByteRange):
        return Window(model.sources[data.source]), data.start, data.stop
    return Window(data), 0, len(data)


def _stored(
    window: Window, first: int, last: int, message: str, numbers: tuple[int, ...],
    damage: Damage, tensor: Tensor, dtype: DType,
) -> NDArray[np.uint8]:  # fmt: skip
    """The elements as packed little-endian bytes (one byte an element for 6-bit types)."""
    pieces, held, most = list[NDArray[np.uint8]](), 0, max(64, tensor.elements * 16 + 64)
    width = _FIXED.get(numbers[0], 4 if message == "AttributeProto" and dtype.kind == "float" else 0)
    for number, wire, a, b in fields(window, first, last, message, damage):
        if number not in numbers:
            continue
        if width and wire in (BYTES, FIXED32 if width == 4 else FIXED64):
            found: Iterator[NDArray[np.uint8]] = _chunks(window, a, b)
        elif not width and wire == VARINT:
            found = iter((_narrow(np.array([a], np.uint64), dtype),))
        elif not width and wire == BYTES:
            found = (_narrow(v, dtype) for v in _varint_chunks(window, a, b, damage))
        else:
            continue
        for piece in found:
            pieces.append(piece)
            held += piece.size
            if held > most:
                _expect(tensor, damage.path, held, tensor.nbytes)
    if damage.errors:
        raise damage.errors[0]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)


def _chunks(window: Window, start: int, stop: int) -> Iterator[NDArray[np.uint8]]:
    for at in range(start, stop, MIB):
        yield np.frombuffer(window.bytes(at, min(at + MIB, stop)), np.uint8)


def _varint_chunks(window: Window, start: int, stop: int, damage: Damage) -> Iterator[NDArray[np.uint64]]:
    at = start
    while at < stop:
        data = window.bytes(at, min(at + MIB, stop))
        if at + len(data) < stop:  # cut after the last whole number
            tail = next((k for k in range(1, 11) if data[-k] < 0x80), 11)
            data = data[: len(data) - tail + 1]
        try:
            yield varints(data)
        except ValueError as error:
            damage.add(str(error), at, "TensorProto")
            return
        at += len(data)


def _narrow(values: NDArray[np.uint64], dtype: DType) -> NDArray[np.uint8]:
    """The low bits of each number, as wide as the type is stored."""
    width = max(1, dtype.bits // 8)
    return values.astype(f"<u{width}").view(np.uint8)


def _strings(
    window: Window, first: int, last: int, message: str, numbers: tuple[int, ...], damage: Damage, tensor: Tensor
) -> NDArray[Any]:
    texts, held = list[str](), 0
    for number, wire, a, b in fields(window, first, last, message, damage):
        if number in numbers and wire == BYTES:
            held = check("the bytes of all texts", held + b - a, ATTRIBUTE_BYTES, path=damage.path, byte=a)
            texts.append(window.text(a, b))
    if damage.errors:
        raise damage.errors[0]
    _expect(tensor, damage.path, len(texts), tensor.elements)
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def _expect(tensor: Tensor, path: str, found: int, expected: int) -> None:
    if found != expected:
        raise BrokenFile(
            "has not as many elements as its shape says", path=path, field=f"tensor {tensor.name!r}",
            expected=expected, found=found,
        )  # fmt: skip
