"""Scales and zero points of quantized tensors, and the numbers they stand for.

Formula: real = (stored - zero_point) * scale, in float32 as ONNX's DequantizeLinear computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of
from core.errors import BrokenFile, Unavailable
from core.ir import Graph, Model, Node, Tensor
from core.limits import DECODE_ELEMENTS, check
from core.statistics import engine
from core.statistics.feeds import PieceFeed
from core.statistics.stream import Watch, Way, measure
from core.statistics.tensors import EXACT_BYTES, Progress, tensor_at
from core.statistics.types import TensorStats

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Use:
    """Where an operator takes a quantized tensor: inputs by number, and its axis where it says none."""

    stored: int
    scale: int
    zero: int
    axis: int


_USES: Final[dict[str, tuple[_Use, ...]]] = {
    "DequantizeLinear": (_Use(0, 1, 2, 1),),
    "QLinearConv": (_Use(3, 4, 5, 0),),
    "QLinearMatMul": (_Use(0, 1, 2, -2), _Use(3, 4, 5, -1)),
}


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """How the stored integers of one tensor become numbers.

    Attributes:
        scale, zero_point: flat; one element, one a channel of ``axis``, or, where blocked, one a
            block in C order of the tensor's shape with ``axis`` divided by ``block_size``.
        axis: the channel or block axis, ``None`` for one scale in all.
        block_size: elements along ``axis`` that share a scale, 0 where not blocked.
        source: who says so: the tensor itself, or an operator by its id.
    """

    shape: tuple[int, ...]
    scale: Floats
    zero_point: Floats
    axis: int | None
    block_size: int
    source: str

    def places(self, start: int, stop: int) -> NDArray[np.int64]:
        """For stored elements ``start`` to ``stop`` the place of their scale."""
        flat = np.arange(start, stop, dtype=np.int64)
        if self.axis is None:
            return np.zeros(stop - start, np.int64)
        size, inner = self.shape[self.axis], 1
        for length in self.shape[self.axis + 1 :]:
            inner *= length
        channel = flat // inner % size
        if not self.block_size:
            return channel
        blocks = -(-size // self.block_size)
        return (flat // (inner * size) * blocks + channel // self.block_size) * inner + flat % inner

    def numbers(self, stored: NDArray[Any], start: int) -> Floats:
        """What flat stored elements from number ``start`` on stand for."""
        at = self.places(start, start + stored.size)
        with np.errstate(invalid="ignore", over="ignore"):
            zero = self.zero_point[at if self.zero_point.size > 1 else 0]
            if stored.dtype.kind in "iu" and stored.dtype.itemsize >= 4:
                away = (stored.astype(np.float64) - zero).astype(np.float32)
            else:
                away = stored.astype(np.float32) - zero
            return away * self.scale[at if self.scale.size > 1 else 0]


def affine_of(model: Model, tensor: Tensor | int) -> Affine | None:
    """The quantization of a tensor, its own or that of the first operator that takes it as quantized.

    Reads scales and zero points from disk. ``None`` where there is none.

    Raises:
        BrokenFile: if there are not as many scales as channels or blocks.
        LimitExceeded: beyond ``limits.DECODE_ELEMENTS`` scales.
    """
    index = tensor if isinstance(tensor, int) else _index(model, tensor)
    tensor = tensor_at(model, tensor)
    if (own := tensor.quantization) is not None:
        return _checked(
            model, tensor, np.array(own.scale, np.float32), np.array(own.zero_point, np.float32),
            own.axis, own.block_size, "the tensor",
        )  # fmt: skip
    if index < 0 or dtype_of(tensor.dtype).kind not in ("int", "uint", "float"):
        return None
    for graph in model.graphs:
        for value in np.flatnonzero(graph.columns.tensor == index).tolist():
            for number in dict.fromkeys(graph.value(value).consumers):
                node = graph.node(number)
                for use in _USES.get(node.op_type, ()):
                    if _input(node, use.stored) == value and (found := _at(model, graph, node, use, tensor)):
                        return found
    return None


def _index(model: Model, tensor: Tensor) -> int:
    return next((i for i, known in enumerate(model.tensors) if known is tensor), -1)


def _input(node: Node, number: int) -> int:
    return node.inputs[number] if number < len(node.inputs) else -1


def _at(model: Model, graph: Graph, node: Node, use: _Use, tensor: Tensor) -> Affine | None:
    scale = _constant(model, graph, _input(node, use.scale))
    zero = _constant(model, graph, _input(node, use.zero))
    if scale is None or (zero is None and _input(node, use.zero) >= 0):
        return None
    if zero is None:
        zero = np.zeros(1, np.float32)
    given = {a.name: a for a in node.attributes if a.name in ("axis", "block_size")}
    read = {name: model.attribute(attribute) for name, attribute in given.items()}
    axis, block = read.get("axis", use.axis), read.get("block_size", 0)
    if not isinstance(axis, int) or not isinstance(block, int):
        return None
    return _checked(model, tensor, scale, zero, None if scale.size == 1 and not block else axis, block, node.id)


def _constant(model: Model, graph: Graph, value: int) -> Floats | None:
    from core.tensors.read import decodable, values

    index = graph.value(value).tensor if value >= 0 else -1
    if index < 0 or decodable(model, index):
        return None
    return values(model, index).reshape(-1).astype(np.float32)


def _checked(
    model: Model, tensor: Tensor, scale: Floats, zero: Floats, axis: int | None, block: int, source: str
) -> Affine:
    wanted, rank = 1, len(tensor.shape)
    if axis is not None and -rank <= axis < rank:
        axis %= rank
        wanted = tensor.shape[axis]
        if block > 0:
            wanted = 1
            for i, length in enumerate(tensor.shape):
                wanted *= -(-length // block) if i == axis else length
    elif axis is not None:
        raise BrokenFile("is not an axis of the tensor", path=model.path, field=f"quantization axis {axis}",
                         expected=f"an axis of {rank}", found=axis)  # fmt: skip
    check("the number of scales", wanted, DECODE_ELEMENTS, path=model.path)
    if scale.size not in (1, wanted) or zero.size not in (1, wanted):
        raise BrokenFile(
            "has another number of scales", path=model.path, field=f"quantization of tensor {tensor.name[:200]!r}",
            expected=f"1 or {wanted}", found=f"{scale.size} scales and {zero.size} zero points",
        )  # fmt: skip
    return Affine(tensor.shape, scale, zero, axis, max(block, 0), source)


def pieces(model: Model, tensor: Tensor | int, affine: Affine) -> Iterator[Floats]:
    """The numbers of a quantized tensor as flat float32 pieces in order; reads from disk."""
    from core.tensors.read import blocks

    at = 0
    for piece in blocks(model, tensor):
        yield affine.numbers(piece, at)
        at += piece.size


def of_tensor(
    model: Model,
    tensor: Tensor | int,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    bins: int = 64,
    exact: bool | None = None,
) -> TensorStats:
    """Statistics over what a quantized tensor stands for; ``tensors.of_tensor`` gives those of what is stored.

    Block encodings such as GGML's are dequantized there already. Arguments as there.

    Raises:
        Unavailable: if the tensor is not quantized or its values cannot be decoded.
    """
    affine = affine_of(model, tensor)
    tensor = tensor_at(model, tensor)
    if affine is None:
        raise Unavailable(
            f"tensor {tensor.name[:200]!r} has no scale: nothing says that it is quantized", path=model.path
        )
    size = 4 * tensor.elements
    watch = Watch(None if progress is None else lambda done: progress(min(done, size), size), cancelled)
    feed = PieceFeed(lambda: pieces(model, tensor, affine), "float32", tensor.elements)
    way = Way(engine.for_scan(size), exact=size <= EXACT_BYTES if exact is None else exact, bins=bins)
    return measure(feed, dtype_of("float32"), way, watch)
