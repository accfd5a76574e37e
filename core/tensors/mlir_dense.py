"""Elements of MLIR ``dense<...>`` attributes: hexadecimal digits, number lists, and splats."""

from __future__ import annotations

import binascii
import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, dtype_of, to_numbers
from core.errors import BrokenFile
from core.ir import Model, Tensor
from core.limits import DECODE_ELEMENTS, check
from core.tensors.stored import stored_bytes

_WORD: Final = re.compile(rb"[-+]?0x[0-9A-Fa-f]+|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|true|false|\([^()]*\)")


def decode_hex(model: Model, tensor: Tensor, start: int, stop: int) -> NDArray[Any]:
    """Elements ``start`` to ``stop`` of hexadecimal digits; reads two digits a byte."""
    dtype = dtype_of(tensor.dtype)
    if dtype.bits < 8:
        return _from_hex(stored_bytes(model, tensor, 0, tensor.nbytes), dtype, tensor.elements, tensor)[start:stop]
    width = dtype.bits // 8
    digits = stored_bytes(model, tensor, 2 * width * start, 2 * width * stop)
    return _from_hex(digits, dtype, stop - start, tensor)


def decode_text(model: Model, tensor: Tensor, start: int, stop: int) -> NDArray[Any]:
    """Elements of ``[[1, 2], [3, 4]]``; the whole list is read once a call.

    Raises:
        BrokenFile: if it has another number of elements than the shape.
    """
    words = _WORD.findall(bytes(stored_bytes(model, tensor, 0, tensor.nbytes)))
    if len(words) != tensor.elements:
        raise BrokenFile(
            "has another number of elements", path=model.path, field=f"tensor {tensor.name[:200]!r}",
            expected=tensor.elements, found=len(words),
        )  # fmt: skip
    return _numbers(words[start:stop], dtype_of(tensor.dtype), tensor)


def decode_splat(model: Model, tensor: Tensor, start: int, stop: int) -> NDArray[Any]:
    """``stop - start`` times the one element that stands for all.

    Raises:
        LimitExceeded: beyond ``limits.DECODE_ELEMENTS``.
    """
    check("the number of elements to decode", stop - start, DECODE_ELEMENTS, path=model.path)
    text, dtype = bytes(stored_bytes(model, tensor, 0, tensor.nbytes)), dtype_of(tensor.dtype)
    if dtype.bits >= 8 and len(text) == dtype.bits // 4 and re.fullmatch(rb"[0-9A-Fa-f]+", text):
        one = _from_hex(text, dtype, 1, tensor)
    else:
        one = _numbers(_WORD.findall(text)[:1], dtype, tensor)
    return np.full(stop - start, one[0], one.dtype) if one.size else np.empty(0, np.float32)


def _from_hex(digits: bytes | NDArray[np.uint8], dtype: DType, count: int, tensor: Tensor) -> NDArray[Any]:
    try:
        return to_numbers(binascii.unhexlify(bytes(digits)), dtype, count)
    except binascii.Error as error:
        raise BrokenFile(f"is no hexadecimal text: {error}", field=f"tensor {tensor.name[:200]!r}") from None


def _numbers(words: list[bytes], dtype: DType, tensor: Tensor) -> NDArray[Any]:
    """Numbers as written; ``0x`` words of float types are bit patterns, most significant digit first."""
    try:
        return np.array([_number(word, dtype) for word in words], _array_type(dtype))
    except (ValueError, OverflowError) as error:
        raise BrokenFile(f"holds something that is no number: {error}", field=f"tensor {tensor.name[:200]!r}") from None


def _number(word: bytes, dtype: DType) -> Any:
    if word in (b"true", b"false"):
        return word == b"true"
    if word.startswith(b"("):
        real, _, imaginary = word.strip(b"()").partition(b",")
        return complex(float(real), float(imaginary))
    if b"0x" in word and dtype.kind == "float":
        pattern = int(word, 16).to_bytes(dtype.bits // 8, "little")
        return to_numbers(pattern, dtype, 1)[0]
    if dtype.kind in ("int", "uint", "bool"):
        return int(word, 16) if b"0x" in word else int(word)
    return float(word)


def _array_type(dtype: DType) -> str:
    if dtype.name == "bfloat16" or dtype.mini is not None:
        return "<f4"
    if dtype.packed:
        return "u1" if dtype.kind == "uint" else "i1"
    return "?" if dtype.kind == "bool" else dtype.storage
