"""Statistics of every block of a block-quantized tensor: GGML blocks, and ONNX blocks along an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import Unavailable
from core.ir import Model, Tensor
from core.limits import DECODE_ELEMENTS, MIB, check
from core.statistics.affine import Affine, affine_of
from core.statistics.stream import Watch
from core.statistics.tensors import Progress, tensor_at

MOST: Final = 65_536
"""Blocks whose numbers are given."""

_PIECE: Final = 1 * MIB
"""Elements dequantized at once."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BlockStats:
    """Numbers of each block shown, over its dequantized elements; NaN where an element is not finite.

    Attributes:
        size: elements of a whole block.
        blocks: how many the tensor has; every ``step``-th is shown.
        axis: the axis the blocks lie along.
        std: population standard deviation.
        scale: the block's own scale as stored, NaN where its encoding has none.
    """

    size: int
    blocks: int
    step: int
    axis: int
    min: Floats
    max: Floats
    mean: Floats
    std: Floats
    absmax: Floats
    scale: Floats


def of_tensor(
    model: Model,
    tensor: Tensor | int,
    *,
    most: int = MOST,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> BlockStats:
    """Numbers of at most ``most`` evenly spaced blocks, in stored order; reads the tensor from disk once.

    Raises:
        Unavailable: if the tensor is not quantized in blocks or its values cannot be decoded.
        LimitExceeded: for ONNX blocks beyond ``limits.DECODE_ELEMENTS`` elements.
        Cancelled: if ``cancelled`` says so.
    """
    from core.tensors.read import decodable

    index, tensor = tensor, tensor_at(model, tensor)
    if reason := tensor.problem or decodable(model, tensor):
        raise Unavailable(f"tensor {tensor.name[:200]!r} has no values: {reason}", path=model.path)
    total = tensor.nbytes
    watch = Watch(None if progress is None else lambda done: progress(min(done, total), total), cancelled)
    if tensor.encoding.startswith("ggml."):
        return _of_ggml(model, tensor, most, watch)
    affine = affine_of(model, index)
    if affine is None or affine.axis is None or not affine.block_size:
        raise Unavailable(f"tensor {tensor.name[:200]!r} is not quantized in blocks", path=model.path)
    return _of_affine(model, tensor, affine, most, watch)


def _of_ggml(model: Model, tensor: Tensor, most: int, watch: Watch) -> BlockStats:
    from core.tensors.packed import BY_NAME, layout_of
    from core.tensors.read import stored

    kind = BY_NAME[tensor.encoding.removeprefix("ggml.")]
    layout, decode = layout_of(kind.name)
    blocks = tensor.elements // kind.block
    step, at_once = max(1, -(-blocks // most)), _PIECE // kind.block

    def raw() -> Iterator[NDArray[Any]]:
        for at in range(0, blocks, at_once):
            stop = min(at + at_once, blocks)
            yield np.frombuffer(stored(model, tensor, at * kind.nbytes, stop * kind.nbytes), layout)

    rows, scales, at = list[Floats](), list[Floats](), 0
    for piece in watch.through(raw()):
        chosen = piece[-at % step :: step]
        at += piece.size
        with np.errstate(invalid="ignore", over="ignore"):
            rows.append(_row(decode(chosen).astype(np.float64)))
        scales.append(_scale(chosen))
    return _joined(kind.block, blocks, step, len(tensor.shape) - 1, rows, scales)


def _scale(blocks: NDArray[Any]) -> Floats:
    """The field ``d`` where it is one float a block."""
    field = blocks.dtype.fields.get("d") if blocks.dtype.fields else None
    if field is None or field[0].kind != "f" or field[0].shape:
        return np.full(blocks.size, np.nan)
    return blocks["d"].astype(np.float64)


def _of_affine(model: Model, tensor: Tensor, affine: Affine, most: int, watch: Watch) -> BlockStats:
    from core.tensors.read import values

    assert affine.axis is not None
    check("the number of elements to dequantize", tensor.elements, DECODE_ELEMENTS, path=model.path)
    size, inner, length = affine.block_size, 1, tensor.shape[affine.axis]
    for more in tensor.shape[affine.axis + 1 :]:
        inner *= more
    each = -(-length // size)
    outer = tensor.elements // max(1, length * inner)
    blocks = outer * each * inner
    step = max(1, -(-blocks // most))
    whole = values(model, tensor).reshape(outer, length, inner)
    rows = list[Floats]()

    def slabs() -> Iterator[NDArray[Any]]:
        for o in range(outer):
            for b in range(each):
                yield whole[o, b * size : (b + 1) * size]

    for place, slab in enumerate(watch.through(slabs())):
        o, b = divmod(place, each)
        chosen = range(-place * inner % step, inner, step)
        if chosen:
            start = (o * length + b * size) * inner
            numbers = affine.numbers(slab.reshape(-1), start).reshape(slab.shape)[:, chosen.start :: step]
            rows.append(_row(numbers.T.astype(np.float64)))
    scale = np.broadcast_to(affine.scale, blocks) if affine.scale.size == 1 else affine.scale
    return _joined(size, blocks, step, affine.axis, rows, [scale[::step].astype(np.float64)])


def _row(numbers: Floats) -> Floats:
    """Min, max, mean, std and absmax of each row, as rows of the result."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.stack([numbers.min(1), numbers.max(1), numbers.mean(1), numbers.std(1), np.abs(numbers).max(1)])
    found[:, ~np.isfinite(numbers).all(axis=1)] = np.nan
    return found


def _joined(size: int, blocks: int, step: int, axis: int, rows: list[Floats], scales: list[Floats]) -> BlockStats:
    found = np.concatenate(rows, axis=1) if rows else np.zeros((5, 0))
    scale = np.concatenate(scales) if scales else np.zeros(0)
    low, high, mean, std, absmax = found
    return BlockStats(size, blocks, step, axis, low, high, mean, std, absmax, scale)
