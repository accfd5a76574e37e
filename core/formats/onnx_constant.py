"""Numbers and texts written in attributes of ``Constant`` nodes, as tensors like any other."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from core.formats._protobuf import BYTES, FIXED32, VARINT, Damage, Window, fields, signed, varints
from core.formats.onnx_node import AttributeParts
from core.formats.onnx_tensor import TensorReader
from core.formats.onnx_types import Span
from core.ir import ByteRange, Tensor
from core.limits import KIB

SMALL: Final = 64 * KIB
"""Attributes up to this size are decoded at once; longer lists stay on disk."""

_NUMBERS: Final = {"value_float": 2, "value_floats": 7, "value_int": 3, "value_ints": 8}
_TEXTS: Final = {"value_string": 4, "value_strings": 9}


def constant_tensor(
    reader: TensorReader, window: Window, damage: Damage, parts: AttributeParts, span: Span, name: str, graph: int
) -> Tensor | None:
    """The tensor that an attribute of a Constant node holds, ``None`` where it holds none.

    Reads numbers and texts of short attributes from disk; payloads of tensors stay there.
    """
    if parts.name == "value" and parts.tensor:
        return replace(reader.read(parts.tensor, role="constant", graph=graph), name=name)
    if parts.name == "sparse_value" and parts.sparse:
        return replace(reader.sparse(parts.sparse, role="constant", graph=graph), name=name)
    if parts.name in _NUMBERS:
        return _numbers(window, damage, parts.name, span, name, graph)
    if parts.name in _TEXTS:
        number = _TEXTS[parts.name]
        found = [
            (a, b) for n, wire, a, b in fields(window, *span, "AttributeProto", damage) if n == number and wire == BYTES
        ]
        single = parts.name == "value_string"
        shape = () if single else (len(found),)
        return Tensor(name, "string", shape, ByteRange(0, *span), "onnx.attribute", role="constant", graph=graph)
    return None


def _numbers(window: Window, damage: Damage, key: str, span: Span, name: str, graph: int) -> Tensor:
    number, many = _NUMBERS[key], key.endswith("s")
    floats = "float" in key
    dtype = "float32" if floats else "int64"
    pieces, packed = list[bytes](), list[Span]()
    scalar = FIXED32 if floats else VARINT
    for n, wire, a, b in fields(window, *span, "AttributeProto", damage):
        if n != number:
            continue
        if wire == BYTES and many:
            packed.append((a, b))
            if not floats or b - a <= SMALL:
                pieces.append(_packed(window.bytes(a, b), floats, damage, a))
        elif wire == scalar:
            piece = window.bytes(a, b) if floats else signed(a).to_bytes(8, "little", signed=True)
            if not many:
                pieces.clear()
            pieces.append(piece)
    if floats and len(packed) == 1 and packed[0][1] - packed[0][0] > SMALL and not pieces:
        data: ByteRange | bytes = ByteRange(0, *packed[0])
    else:
        data = b"".join(pieces)
    width = 4 if floats else 8
    length = data.nbytes if isinstance(data, ByteRange) else len(data)
    if not many and length == 0:  # proto2 default of a missing scalar
        data = bytes(width)
    shape = (length // width,) if many else ()
    return Tensor(name, dtype, shape, data, role="constant", graph=graph)


def _packed(data: bytes, floats: bool, damage: Damage, at: int) -> bytes:
    if floats:
        return data
    try:
        return varints(data).astype(np.dtype("<u8")).tobytes()
    except ValueError as error:
        damage.add(str(error), at, "AttributeProto.ints")
        return b""
