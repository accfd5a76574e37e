"""Elements that lie in GGML blocks or behind deflate."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of, to_numbers
from core.errors import BrokenFile, LimitExceeded
from core.ggml import TYPES, GgmlType
from core.inflate import inflate
from core.ir import ByteRange, Model, Tensor
from core.limits import MIB
from core.tensors.ggml import PLAIN, Decode
from core.tensors.ggml_grid import GRIDS
from core.tensors.stored import stored_bytes

BY_NAME: Final[dict[str, GgmlType]] = {kind.name: kind for kind in TYPES.values() if not kind.plain}
GGML_ENCODINGS: Final = tuple(f"ggml.{name}" for name in BY_NAME)

INFLATED_BYTES: Final = 1024 * MIB
"""A deflated tensor longer than this is not inflated."""


def layout_of(name: str) -> tuple[np.dtype[Any], Decode]:
    """How a block of that type lies in bytes, and its decoder: structured blocks to float32 rows."""
    return PLAIN.get(name) or GRIDS[name]


def decode_ggml(model: Model, tensor: Tensor, start: int, stop: int) -> NDArray[Any]:
    """Elements ``start`` to ``stop`` of a block-quantized tensor as float32; reads whole blocks."""
    kind = BY_NAME[tensor.encoding.removeprefix("ggml.")]
    first, last = start // kind.block, -(-stop // kind.block)
    raw = stored_bytes(model, tensor, first * kind.nbytes, last * kind.nbytes)
    layout, decode = layout_of(kind.name)
    with np.errstate(invalid="ignore", over="ignore"):  # random bytes hold infinite and NaN scales
        numbers = decode(np.frombuffer(raw, layout)).reshape(-1)
    return numbers[start - first * kind.block : stop - first * kind.block]


class _Inflated:
    """The bytes inflated last: pieces of one tensor are asked for one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[object, ...] = ()
        self._bytes = b""

    def get(self, model: Model, data: ByteRange, needed: int) -> bytes:
        source = model.sources[data.source]
        key = (source.path, source.identity, data.start, data.stop)
        with self._lock:
            if self._key == key and len(self._bytes) >= needed:
                return self._bytes
        inflated = _inflate(model, data, needed)
        with self._lock:
            self._key, self._bytes = (key, inflated) if len(inflated) <= 64 * MIB else ((), b"")
        return inflated


_LAST: Final = _Inflated()


def decode_deflated(model: Model, tensor: Tensor, start: int, stop: int) -> NDArray[Any]:
    """Elements ``start`` to ``stop`` of deflated bytes; encoding ``deflate+N`` skips N bytes first.

    Raises:
        BrokenFile: if the packed bytes are damaged or too short.
        LimitExceeded: beyond 1 GiB of inflated bytes.
    """
    assert isinstance(tensor.data, ByteRange)
    dtype = dtype_of(tensor.dtype)
    skip = int(tensor.encoding.partition("+")[2] or 0)
    width = dtype.bits // 8
    # All of it at once where it is small, so that the next piece finds it inflated already.
    needed = skip + stop * width
    inflated = _LAST.get(model, tensor.data, needed)
    if len(inflated) < needed:
        raise BrokenFile(
            "is too short", path=model.path, field=f"packed bytes of tensor {tensor.name[:200]!r}",
            expected=f"{needed} bytes", found=len(inflated),
        )  # fmt: skip
    return to_numbers(inflated[skip + start * width : needed], dtype, stop - start)


def _inflate(model: Model, data: ByteRange, needed: int) -> bytes:
    """At least ``needed`` bytes, all of them where that is at most 64 MiB."""
    if needed > INFLATED_BYTES:
        raise LimitExceeded(f"{needed} bytes would have to be inflated, allowed are {INFLATED_BYTES}", path=model.path)
    return inflate(model.sources[data.source], data.start, data.stop, max(needed, 64 * MIB))
