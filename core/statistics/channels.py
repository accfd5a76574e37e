"""Statistics of every channel along one axis, as columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of, to_numbers
from core.errors import UsageError
from core.ir import Model, Tensor
from core.limits import check
from core.statistics.feeds import FileFeed, magnitude
from core.statistics.stream import Watch
from core.statistics.tensors import Progress, stored_range, tensor_at

PIECE: Final = 1 << 17
"""Elements taken at once; a multiple of eight, so that packed types start at whole bytes."""

CHANNELS: Final = 1 << 22
"""Most channels of one axis."""

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """One row a channel; numbers are over its finite elements and NaN where it has none.

    Attributes:
        axis: the axis whose positions are the channels.
        count: elements of each channel, non-finite ones included.
        inf: infinite ones of both signs.
        std: population standard deviation.
        l2: root of the sum of squares.
    """

    axis: int
    count: Longs
    nan: Longs
    inf: Longs
    zero: Longs
    min: Floats
    max: Floats
    mean: Floats
    std: Floats
    l2: Floats
    absmax: Floats

    def __len__(self) -> int:
        return self.count.size

    def to_json(self) -> list[dict[str, Any]]:
        """One object a channel; ``None`` for what is not a finite number."""
        names = [f.name for f in fields(self) if f.name != "axis"]
        columns = [_plain(getattr(self, name)) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def of_array(array: NDArray[Any], axis: int) -> Channels:
    """Statistics of every channel of an array in memory, by pieces of ``PIECE`` elements.

    Raises:
        UsageError: if the array has no such axis or holds no numbers.
        LimitExceeded: if it has more than ``CHANNELS`` channels.
    """
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    pieces = (flat[at : at + PIECE] for at in range(0, array.size, PIECE))
    if array.dtype.kind in "OSUTM":
        raise UsageError("text has no statistics by channel")
    return _collect(pieces, array.shape, axis)


def of_tensor(
    model: Model,
    tensor: Tensor | int,
    axis: int,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Channels:
    """Statistics of every channel of a stored tensor; reads it from disk once, in pieces.

    Args:
        axis: counted from the end where negative.

    Raises:
        UsageError: if the tensor has no such axis or holds no numbers.
        LimitExceeded: if it has more than ``CHANNELS`` channels.
        Unavailable: if the values cannot be decoded.
        Cancelled: if ``cancelled`` says so.
    """
    tensor = tensor_at(model, tensor)
    if dtype_of(tensor.dtype).kind in ("string", "opaque"):
        raise UsageError("text has no statistics by channel")
    size = dtype_of(tensor.dtype).nbytes(tensor.elements)
    watch = Watch(None if progress is None else lambda done: progress(min(done, size), size), cancelled)
    return _collect(watch.through(_pieces(model, tensor)), tensor.shape, axis)


def _pieces(model: Model, tensor: Tensor) -> Iterator[NDArray[Any]]:
    dtype = dtype_of(tensor.dtype)
    stored = stored_range(model, tensor, dtype)
    if stored is None:
        from core.tensors.read import blocks

        yield from (np.asarray(piece).reshape(-1) for piece in blocks(model, tensor))
        return
    for at in range(0, tensor.elements, PIECE):
        count = min(PIECE, tensor.elements - at)
        start = at * dtype.bits // 8
        stop = start + dtype.nbytes(count)
        if isinstance(stored, FileFeed):
            yield to_numbers(stored.source.read(stored.start + start, stored.start + stop), dtype, count)
        else:
            yield to_numbers(stored[start:stop], dtype, count)


def _collect(pieces: Iterator[NDArray[Any]], shape: tuple[int, ...], axis: int) -> Channels:
    if not -len(shape) <= axis < len(shape):
        raise UsageError(f"the tensor has {len(shape)} axes, there is no axis {axis}")
    axis %= len(shape)
    inner = 1
    for size in shape[axis + 1 :]:
        inner *= size
    columns = _Columns(check("the number of channels", shape[axis], CHANNELS), inner)
    with np.errstate(over="ignore", invalid="ignore"):  # squares beyond float64 come out as infinite
        for piece in pieces:
            columns.add(piece)
        return columns.finish(axis)


class _Columns:
    """Running statistics; pieces come in C order and may end anywhere."""

    def __init__(self, channels: int, inner: int) -> None:
        self.channels, self.inner, self.at = channels, inner, 0
        self.count, self.nan, self.inf, self.zero, self.finite = (np.zeros(channels, np.int64) for _ in range(5))
        self.low, self.high = np.full(channels, np.inf), np.full(channels, -np.inf)
        self.mean, self.m2 = np.zeros(channels), np.zeros(channels)

    def add(self, piece: NDArray[Any]) -> None:
        """Cut a piece into whole rows of channels, whole channels and parts of one channel."""
        done, row = 0, self.channels * self.inner
        while done < piece.size:
            left, within = piece.size - done, self.at % row
            channel, offset = divmod(within, self.inner)
            if within == 0 and left >= row:
                take = left // row * row
                cut = piece[done : done + take].reshape(-1, self.channels, self.inner)
            elif offset == 0 and left >= self.inner:
                runs = min(left // self.inner, self.channels - channel)
                take = runs * self.inner
                cut = piece[done : done + take].reshape(1, runs, self.inner)
            else:
                take = min(left, self.inner - offset)
                cut = piece[done : done + take].reshape(1, 1, take)
            self._take(cut, slice(channel, channel + cut.shape[1]))
            done += take
            self.at += take

    def _take(self, cut: NDArray[Any], to: slice) -> None:
        x = magnitude(cut) if cut.dtype.kind == "c" else cut.astype(np.float64)
        finite = np.isfinite(x)
        self.count[to] += x.shape[0] * x.shape[2]
        self.zero[to] += (x == 0).sum(axis=(0, 2))
        if finite.all():
            n = np.full(x.shape[1], x.shape[0] * x.shape[2], np.int64)
            low, high = x.min(axis=(0, 2)), x.max(axis=(0, 2))
        else:
            n = finite.sum(axis=(0, 2))
            nan = np.isnan(x).sum(axis=(0, 2))
            self.nan[to] += nan
            self.inf[to] += x.shape[0] * x.shape[2] - n - nan
            low, high = np.where(finite, x, np.inf).min(axis=(0, 2)), np.where(finite, x, -np.inf).max(axis=(0, 2))
            x = np.where(finite, x, 0.0)
        self.low[to], self.high[to] = np.minimum(self.low[to], low), np.maximum(self.high[to], high)
        mean = x.sum(axis=(0, 2)) / np.maximum(n, 1)
        away = np.where(finite, x - mean[None, :, None], 0.0)
        self._merge(to, n, mean, np.square(away).sum(axis=(0, 2)))

    def _merge(self, to: slice, n: Longs, mean: Floats, m2: Floats) -> None:
        before = self.finite[to]
        total = np.maximum(before + n, 1)
        step = mean - self.mean[to]
        self.mean[to] += np.where(n > 0, step * n / total, 0.0)
        self.m2[to] += m2 + np.where(n > 0, step * step * before * (n / total), 0.0)
        self.finite[to] = before + n

    def finish(self, axis: int) -> Channels:
        """The columns as they are after the last piece."""
        none = self.finite == 0
        n = np.maximum(self.finite, 1)

        def known(column: Floats) -> Floats:
            return np.where(none, np.nan, column)

        return Channels(
            axis=axis,
            count=self.count,
            nan=self.nan,
            inf=self.inf,
            zero=self.zero,
            min=known(self.low),
            max=known(self.high),
            mean=known(self.mean),
            std=known(np.sqrt(self.m2 / n)),
            l2=known(np.sqrt(self.m2 + n * np.square(self.mean))),
            absmax=known(np.maximum(self.high, -self.low)),
        )


def _plain(column: NDArray[Any]) -> list[Any]:
    return [x if math.isfinite(x) else None for x in column.tolist()]
