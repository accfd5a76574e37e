"""Statistics of stored tensors, read from disk in blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.dtypes import DType, dtype_of, to_numbers, unpack
from core.errors import NotFound, Unavailable, UsageError
from core.ir import ByteRange, Model, Tensor
from core.limits import MIB
from core.statistics import engine
from core.statistics.arrays import of_array
from core.statistics.feeds import ArrayFeed, Block, FileFeed, PieceFeed, unit_of
from core.statistics.stream import Engine, Feed, Watch, Way, measure
from core.statistics.types import TensorStats

EXACT_BYTES: Final = 64 * MIB
"""Up to this size a tensor of wide numbers is read again until its quantiles are exact."""

SMALL_BYTES: Final = 1 * MIB
"""Up to this size a stored tensor is read at once."""

Progress = Callable[[int, int], object]
"""Gets the bytes done and the bytes to do."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Statistics and, where asked for, the SHA-256 of dtype, shape and elements.

    Attributes:
        digest: over ``dtype``, ``shape`` and the little-endian elements: as stored for plain
            encodings, as decoded for others; empty where not asked for.
    """

    stats: TensorStats
    digest: str = ""


def of_tensor(
    model: Model,
    tensor: Tensor | int,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    bins: int = 64,
    exact: bool | None = None,
) -> TensorStats:
    """Statistics over all elements of a stored tensor; reads it from disk in blocks.

    Memory stays below 16 MB whatever the size. Types of at most 16 bits are exact after one
    pass. Wider ones are read again up to ``EXACT_BYTES`` (once more for float32); larger ones
    only if ``exact`` is true, else ranks of quantiles and histogram are within
    ``TensorStats.error``. Everything else is as in ``arrays.of_array``. Block encodings count
    by what they dequantize to, quantized tensors by their stored integers.

    Args:
        tensor: one of ``model.tensors`` or its index.
        progress: gets bytes done and bytes to do.
        cancelled: asked before every block.

    Raises:
        Unavailable: if the values cannot be decoded, with the reason.
        Cancelled: if ``cancelled`` says so.
        SourceChanged: if the file changed since it was opened.
    """
    return measured(model, tensor, progress=progress, cancelled=cancelled, bins=bins, exact=exact).stats


def measured(
    model: Model,
    tensor: Tensor | int,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    bins: int = 64,
    exact: bool | None = None,
    digest: bool = False,
    using: Engine | None = None,
) -> Measured:
    """As ``of_tensor``, with the content hash taken in the same pass where ``digest`` is set.

    Args:
        using: the engine of a larger scan this is part of.
    """
    if bins < 1:
        raise UsageError(f"a histogram needs at least one bin, not {bins}")
    tensor = tensor_at(model, tensor)
    dtype = dtype_of(tensor.dtype)
    hasher = _hasher(tensor) if digest else None
    if dtype.kind in ("string", "opaque"):
        return Measured(TensorStats(count=tensor.elements))
    stored = stored_range(model, tensor, dtype)
    size = dtype.nbytes(tensor.elements)
    watch = Watch(None if progress is None else lambda done: progress(min(done, size), size), cancelled)
    if isinstance(stored, FileFeed) and size > SMALL_BYTES:
        feed: Feed = stored
    elif stored is not None:
        return _at_once(stored, dtype, tensor.elements, bins, hasher, watch)
    else:
        feed = decoded(model, tensor)
    if hasher is not None and dtype.kind == "complex" and isinstance(stored, FileFeed):
        for block in stored.source.blocks(stored.start, stored.stop):  # the feed gives magnitudes
            hasher.update(block)
    elif hasher is not None:
        feed = _Hashed(feed, hasher)
    way = Way(
        using or engine.for_scan(size), engine.THREADS, exact=size <= EXACT_BYTES if exact is None else exact, bins=bins
    )
    stats = measure(feed, dtype, way, watch)
    return Measured(stats, hasher.hexdigest() if hasher else "")


def tensor_at(model: Model, tensor: Tensor | int) -> Tensor:
    """The tensor itself, looked up where it is an index.

    Raises:
        NotFound: if there is no such index.
    """
    if isinstance(tensor, Tensor):
        return tensor
    if not 0 <= tensor < len(model.tensors):
        raise NotFound(f"there is no tensor {tensor}", path=model.path)
    return model.tensors[tensor]


def stored_range(model: Model, tensor: Tensor, dtype: DType) -> FileFeed | bytes | None:
    """Where contiguous little-endian elements are stored; ``None`` where they must be decoded.

    Raises:
        Unavailable: if the values cannot be decoded.
    """
    from core.tensors.read import decodable

    if reason := tensor.problem or decodable(model, tensor):
        raise Unavailable(f"tensor {tensor.name[:200]!r} has no values: {reason}", path=model.path)
    first = tensor.offset * dtype.bits
    if tensor.encoding != "plain" or tensor.strides is not None or first % 8 or tensor.data is None:
        return None
    start, size = first // 8, dtype.nbytes(tensor.elements)
    if isinstance(tensor.data, ByteRange):
        start += tensor.data.start
        if start + size > tensor.data.stop:
            return None
        return FileFeed(model.sources[tensor.data.source], start, start + size, dtype, tensor.elements)
    return tensor.data[start : start + size] if start + size <= len(tensor.data) else None


def decoded(model: Model, tensor: Tensor) -> Feed:
    """The elements as decoded pieces, for encodings that are not plain."""
    from core.tensors.read import blocks

    dtype = dtype_of(tensor.dtype)
    first = next(iter(blocks(model, tensor)), None)
    if first is None:
        return ArrayFeed(np.zeros(0, np.float32), "float32")
    native = first.dtype.name == dtype.name and not dtype.packed and dtype.bits <= 16
    unit = unit_of(dtype) if native else _number_unit(first)
    return PieceFeed(lambda: blocks(model, tensor), unit, tensor.elements)


def _number_unit(block: Block) -> str:
    if block.dtype.kind == "c":
        return "float64"
    return "float32" if block.dtype.itemsize < 4 else block.dtype.name


def _at_once(stored: FileFeed | bytes, dtype: DType, elements: int, bins: int, hasher: Any, watch: Watch) -> Measured:
    if isinstance(stored, FileFeed):
        stored = stored.source.read(stored.start, stored.stop)
    raw = np.frombuffer(stored, np.uint8)
    for _ in watch.through(iter([raw])):
        if hasher is not None:
            hasher.update(raw)
    if dtype.mini is not None:
        array: Block = unpack(raw, dtype.bits, elements) if dtype.packed else raw
    elif dtype.name == "bfloat16":
        array = raw.view("<u2")
    else:
        array = to_numbers(raw, dtype, elements)
    return Measured(of_array(array, dtype, bins, exact=True), hasher.hexdigest() if hasher is not None else "")


def _hasher(tensor: Tensor) -> Any:
    return hashlib.sha256(f"{tensor.dtype}{list(tensor.shape)}\0".encode())


class _Hashed:
    """A feed whose first pass is hashed by a second thread while the block is measured."""

    def __init__(self, feed: Feed, hasher: Any) -> None:
        self._feed, self._hasher, self._done = feed, hasher, False

    @property
    def unit(self) -> str:
        return self._feed.unit

    @property
    def elements(self) -> int:
        return self._feed.elements

    def parts(self, most: int) -> Sequence[Iterator[Block]]:
        if self._done:
            return self._feed.parts(most)
        self._done = True
        return [self._hashing(self._feed.parts(1)[0])]

    def _hashing(self, blocks: Iterator[Block]) -> Iterator[Block]:
        with ThreadPoolExecutor(1, "digest") as pool:
            for block in blocks:
                hashed = pool.submit(self._hasher.update, block)
                yield block
                hashed.result()
