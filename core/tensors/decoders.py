"""From stored bytes to numbers: one decoder an encoding, one line a decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType, dtype_of, to_numbers
from core.ir import Model, Tensor
from core.tensors.mlir_dense import decode_hex, decode_splat, decode_text
from core.tensors.onnx_sparse import decode_sparse
from core.tensors.onnx_typed import decode_typed
from core.tensors.packed import GGML_ENCODINGS, decode_deflated, decode_ggml
from core.tensors.stored import stored_bytes

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
    "deflate": Decoder(decode_deflated),
    "mlir.hex": Decoder(decode_hex),
    "mlir.text": Decoder(decode_text, whole=True),
    "mlir.splat": Decoder(decode_splat),
    **{encoding: Decoder(decode_ggml) for encoding in GGML_ENCODINGS},
}


def decoder_of(encoding: str) -> Decoder | None:
    """The decoder of an encoding; what follows a ``+`` is its parameter."""
    return DECODERS.get(encoding.partition("+")[0])
