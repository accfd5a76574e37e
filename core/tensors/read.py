"""Tensor values, read when asked for: whole, in part, or piece by piece in bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from core.dtypes import dtype_of
from core.errors import BrokenFile, NotFound, Unavailable, UsageError
from core.ir import Model, Tensor
from core.limits import DECODE_ELEMENTS, KIB, MIB, check
from core.tensors.decoders import Decoder, decoder_of
from core.tensors.stored import stored_bytes, stored_elements

Array = NDArray[Any]
Index = tuple[int | slice, ...]

WASTE = 4
"""A slice is read as one range while that holds at most this many times its elements."""

SPARE = 64 * KIB
READS = 1 << 20
"""Ranges one slice may be read from."""


def decodable(model: Model, tensor: Tensor | int) -> str:
    """Why the values cannot be had, empty where they can; reads nothing."""
    tensor = _tensor(model, tensor)
    if tensor.problem:
        return tensor.problem
    if tensor.dtype == "opaque":
        return "its elements are of an unknown type"
    if decoder_of(tensor.encoding) is None:
        return f"its encoding {tensor.encoding} has no decoder"
    if tensor.data is None and tensor.elements:
        return "it has no data"
    return ""


def values(model: Model, tensor: Tensor | int) -> Array:
    """Decode all elements, in the tensor's shape; reads from disk.

    Texts come as an object array of str; bfloat16 and smaller floats as float32.

    Raises:
        LimitExceeded: beyond ``limits.DECODE_ELEMENTS``.
        Unavailable: with the reason where the values cannot be had.
        BrokenFile: if the stored bytes do not fit the shape.
    """
    tensor = _tensor(model, tensor)
    return values_slice(model, tensor, tuple(slice(None) for _ in tensor.shape))


def values_slice(model: Model, tensor: Tensor | int, index: Index) -> Array:
    """Decode the elements that a basic index selects; reads only the ranges it needs from disk.

    Args:
        index: as numpy takes it, one entry a dimension; left-out ones at the end are whole.

    Raises: as ``values``, for the elements selected; UsageError: for an index outside the shape.
    """
    tensor = _tensor(model, tensor)
    decoder = _decoder(model, tensor)
    view, shape = _View.of(tensor).select(index, tensor)
    check("the number of elements to decode", view.elements, DECODE_ELEMENTS, path=model.path)
    if view.elements == 0:
        return _flat(model, tensor, decoder, 0, 0).reshape(shape)
    if decoder.whole:
        check("the number of elements to decode", tensor.elements, DECODE_ELEMENTS, path=model.path)
        return _take(_flat(model, tensor, decoder, 0, tensor.elements), view, 0).reshape(shape)
    check("the number of ranges to read", view.reads(), READS, path=model.path)
    return _gather(model, tensor, decoder, view).reshape(shape)


def stored(model: Model, tensor: Tensor | int, start: int = 0, stop: int | None = None) -> bytes:
    """Stored bytes ``start`` to ``stop`` of a tensor's data, as they are; reads from disk.

    Raises:
        BrokenFile: if the data ends before. Unavailable: if there is none.
    """
    tensor = _tensor(model, tensor)
    size = tensor.nbytes if tensor.data is not None else 0
    data = stored_bytes(model, tensor, start, size if stop is None else stop)
    return data if isinstance(data, bytes) else data.tobytes()


def blocks(model: Model, tensor: Tensor | int, elements: int = 256 * KIB) -> Iterator[Array]:
    """Decode all elements in order as flat arrays of at most ``elements``; reads from disk.

    Raises: as ``values``, without its bound where the encoding can be decoded in pieces.
    """
    tensor = _tensor(model, tensor)
    decoder = _decoder(model, tensor)
    if decoder.whole:
        whole = values(model, tensor).reshape(-1)
        yield from (whole[at : at + elements] for at in range(0, whole.size, elements))
    elif tensor.strides is None:
        total, first = tensor.elements, tensor.offset
        for at in range(0, total, elements):
            yield _flat(model, tensor, decoder, first + at, first + min(at + elements, total))
    else:
        for index in _pieces(tensor.shape, elements):
            yield values_slice(model, tensor, index).reshape(-1)


def raw_blocks(model: Model, tensor: Tensor | int, nbytes: int = MIB) -> Iterator[bytes]:
    """Stored bytes in order, in pieces of at most ``nbytes`` with whole elements; reads from disk.

    Raises:
        UsageError: for other encodings than plain, contiguous elements.
        Unavailable: with the reason where the values cannot be had.
    """
    tensor = _tensor(model, tensor)
    _decoder(model, tensor)
    bits = dtype_of(tensor.dtype).bits
    if tensor.encoding != "plain" or tensor.strides is not None or bits == 0:
        raise UsageError(f"tensor {tensor.name!r} is not stored as plain elements", path=model.path)
    if tensor.offset * bits % 8:
        raise UsageError(f"tensor {tensor.name!r} does not begin at a whole byte", path=model.path)
    size = max(48, nbytes - nbytes % 48)  # whole elements of every width, 6 bits and 16 bytes included
    first = tensor.offset * bits // 8
    total = first + dtype_of(tensor.dtype).nbytes(tensor.elements)
    for at in range(first, total, size):
        yield stored(model, tensor, at, min(at + size, total))


# --- views --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _View:
    """Elements ``offset + sum(i * stride)`` for all i within ``sizes``."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(tensor: Tensor) -> _View:
        if tensor.strides is not None:
            return _View(tensor.offset, tensor.shape, tensor.strides)
        strides, step = list[int](), 1
        for size in reversed(tensor.shape):
            strides.append(step)
            step *= size
        return _View(tensor.offset, tensor.shape, tuple(reversed(strides)))

    def select(self, index: Index, tensor: Tensor) -> tuple[_View, tuple[int, ...]]:
        """The part that ``index`` selects, and its shape (whole numbers drop their dimension)."""
        if len(index) > len(self.sizes):
            raise UsageError(f"tensor {tensor.name!r} has {len(self.sizes)} dimensions, {len(index)} are indexed")
        offset, sizes, strides, shape = self.offset, list[int](), list[int](), list[int]()
        padded = (*index, *(slice(None),) * (len(self.sizes) - len(index)))
        for entry, size, stride in zip(padded, self.sizes, self.strides, strict=True):
            if isinstance(entry, slice):
                chosen = range(*entry.indices(size))
                shape.append(len(chosen))
            else:
                if not -size <= entry < size:
                    raise UsageError(f"index {entry} is outside a dimension of {size} of tensor {tensor.name!r}")
                chosen = range(entry % size, entry % size + 1)
            offset += chosen.start * stride if chosen else 0
            sizes.append(len(chosen))
            strides.append(stride * chosen.step)
        return _View(offset, tuple(sizes), tuple(strides)), tuple(shape)

    @property
    def elements(self) -> int:
        total = 1
        for size in self.sizes:
            total *= size
        return total

    def bounds(self) -> tuple[int, int]:
        """First and one past the last stored element, of a view that is not empty."""
        ends = [(size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True)]
        return self.offset + sum(min(0, e) for e in ends), self.offset + sum(max(0, e) for e in ends) + 1

    @property
    def compact(self) -> bool:
        """Whether reading it as one range wastes little."""
        low, high = self.bounds()
        return high - low <= max(SPARE, WASTE * self.elements)

    def parts(self) -> Iterator[_View]:
        """The views along the longest step, one each."""
        axis = self.axis()
        for i in range(self.sizes[axis]):
            yield _View(
                self.offset + i * self.strides[axis],
                (*self.sizes[:axis], 1, *self.sizes[axis + 1 :]),
                self.strides,
            )

    def axis(self) -> int:
        """The dimension with the longest step."""
        long = [a for a, size in enumerate(self.sizes) if size > 1]
        return max(long, key=lambda a: abs(self.strides[a]))

    def reads(self) -> int:
        """How many ranges it is read from."""
        if self.compact:
            return 1
        return self.sizes[self.axis()] * next(self.parts()).reads()


def _gather(model: Model, tensor: Tensor, decoder: Decoder, view: _View) -> Array:
    low, high = view.bounds()
    held = stored_elements(tensor) if tensor.encoding in ("plain", "big") else max(tensor.elements, high)
    if low < 0 or high > held:
        raise BrokenFile(
            "leaves its data", path=model.path, field=f"tensor {tensor.name!r}",
            expected=f"elements within {held}", found=f"{low} to {high}",
        )  # fmt: skip
    if view.compact:
        return _take(_flat(model, tensor, decoder, low, high), view, low)
    axis = view.axis()
    return np.concatenate([_gather(model, tensor, decoder, part) for part in view.parts()], axis=axis)


def _take(flat: Array, view: _View, low: int) -> Array:
    """The view's elements out of the flat ones that begin at stored element ``low``."""
    steps = tuple(stride * flat.itemsize for stride in view.strides)
    if view.elements == flat.size and view == _contiguous(view):
        return flat.reshape(view.sizes)
    if flat.dtype == object:  # as_strided would not count references
        index: Array = np.full((), view.offset - low, np.int64)
        for size, stride in zip(view.sizes, view.strides, strict=True):
            index = np.add.outer(index, np.arange(size, dtype=np.int64) * stride)
        return flat[index]
    return as_strided(flat[view.offset - low :], view.sizes, steps, writeable=False).copy()


def _contiguous(view: _View) -> _View:
    strides, step = list[int](), 1
    for size in reversed(view.sizes):
        strides.append(step)
        step *= size
    return _View(view.offset, view.sizes, tuple(reversed(strides)))


def _flat(model: Model, tensor: Tensor, decoder: Decoder, start: int, stop: int) -> Array:
    return decoder.flat(model, tensor, start, stop)


def _pieces(shape: tuple[int, ...], elements: int) -> Iterator[Index]:
    """Indexes in row-major order that cover the shape with at most ``elements`` each."""
    inner, axis = 1, len(shape)
    while axis and inner * shape[axis - 1] <= elements:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        yield ()
        return
    step = max(1, elements // max(1, inner))
    for outer in itertools.product(*(range(size) for size in shape[: axis - 1])):
        for at in range(0, shape[axis - 1], step):
            yield (*outer, slice(at, at + step))


def _tensor(model: Model, tensor: Tensor | int) -> Tensor:
    if isinstance(tensor, Tensor):
        return tensor
    if not 0 <= tensor < len(model.tensors):
        raise NotFound(f"there is no tensor {tensor}", path=model.path)
    return model.tensors[tensor]


def _decoder(model: Model, tensor: Tensor) -> Decoder:
    reason = decodable(model, tensor)
    if reason:
        raise Unavailable(f"tensor {tensor.name[:200]!r} cannot be read: {reason}", path=model.path)
    decoder = decoder_of(tensor.encoding)
    assert decoder is not None  # decodable() looked it up
    return decoder
