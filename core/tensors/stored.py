"""The stored bytes of a tensor, before any decoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of
from core.errors import BrokenFile, Unavailable
from core.ir import ByteRange, Model, Tensor
from core.limits import READ_AT_ONCE


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
