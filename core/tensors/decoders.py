"""From stored bytes to numbers: one decoder an encoding, one line a decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, dtype_of, to_numbers
from core.errors import BrokenFile, Unavailable
from core.ir import ByteRange, Model, Tensor
from core.limits import READ_AT_ONCE
from core.tensors.onnx_sparse import decode_sparse
from core.tensors.onnx_typed import decode_typed

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Decoder:
    """How elements of one encoding are decoded.

    Attributes:
        flat: ``flat(model, tensor, start, stop)`` gives elements ``start`` to ``stop`` in stored
            order; reads from disk.
        whole: whether it always decodes everything, so that callers ask once.
    """

    flat: Callable[[Model, Tensor, int, int], Array]
    whole: bool = False


def stored_elements(tensor: Tensor) -> int:
    """Elements that the stored bytes hold (more or fewer than the shape where it is a view)."""
    bits = dtype_of(tensor.dtype).bits
    return tensor.nbytes * 8 // bits if bits and tensor.data is not None else tensor.elements


def stored_bytes(model: Model, tensor: Tensor, start: int, stop: int) -> bytes | NDArray[np.uint8]:
    """Bytes ``start`` to ``stop`` of a tensor's data; reads from disk.

    Raises:
        BrokenFile: if the data ends before. Unavailable: if there is none.
    """
    data = tensor.data
    if data is None:
        if start == stop:
            return b""
        raise Unavailable(f"tensor {tensor.name!r} has no data", path=model.path)
    size = data.nbytes if isinstance(data, ByteRange) else len(data)
    if not 0 <= start <= stop <= size:
        raise BrokenFile(
            "leaves its data", path=model.path, field=f"tensor {tensor.name!r}",
            expected=f"bytes within {size}", found=f"{start} to {stop}",
        )  # fmt: skip
    if not isinstance(data, ByteRange):
        return data[start:stop]
    source = model.sources[data.source]
    if stop - start <= READ_AT_ONCE:
        return source.read(data.start + start, data.start + stop)
    buffer = np.empty(stop - start, np.uint8)
    source.read_into(data.start + start, buffer.data)
    return buffer


def _plain(model: Model, tensor: Tensor, start: int, stop: int) -> Array:
    return _numbers(model, tensor, start, stop, swap=False)


def _big(model: Model, tensor: Tensor, start: int, stop: int) -> Array:
    return _numbers(model, tensor, start, stop, swap=True)


def _numbers(model: Model, tensor: Tensor, start: int, stop: int, *, swap: bool) -> Array:
    dtype = dtype_of(tensor.dtype)
    first = start * dtype.bits // 8
    skipped = start - first * 8 // dtype.bits  # elements before ``start`` in its byte
    if dtype.bits == 6:
        first, skipped = start // 4 * 3, start % 4
    data = stored_bytes(model, tensor, first, first + dtype.nbytes(skipped + stop - start))
    raw = np.frombuffer(data, np.uint8)
    if swap:
        raw = _swapped(raw, dtype)
    return to_numbers(raw, dtype, skipped + stop - start)[skipped:]


def _swapped(raw: NDArray[np.uint8], dtype: DType) -> NDArray[np.uint8]:
    width = dtype.bits // 8 // (2 if dtype.kind == "complex" else 1)
    return raw if width <= 1 else raw.view(f">u{width}").astype(f"<u{width}").view(np.uint8)


DECODERS: Final[dict[str, Decoder]] = {
    "plain": Decoder(_plain),
    "big": Decoder(_big),
    "onnx.typed": Decoder(decode_typed, whole=True),
    "onnx.attribute": Decoder(decode_typed, whole=True),
    "sparse": Decoder(decode_sparse, whole=True),
}
