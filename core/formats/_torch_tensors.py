"""Tensors of a torch pickle tied to the bytes of their storages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.dtypes import DTYPES
from core.formats._torch_objects import Found
from core.ir import ByteRange, Finding, Tensor


@dataclass(frozen=True, slots=True)
class StorageBytes:
    """Where the bytes of one storage are.

    Attributes:
        data: its stored bytes; ``None`` with ``problem`` where they cannot be used.
        nbytes: bytes after inflating.
        encoding: ``plain``, ``big`` or ``deflate``.
    """

    data: ByteRange | None
    nbytes: int
    encoding: str = "plain"
    problem: str = ""


def tie(found: Sequence[Found], storages: Mapping[str, StorageBytes], numbers: dict[str, int]) -> list[Tensor]:
    """Tensors in order; those that share a storage carry the same ``storage`` number.

    Args:
        storages: by key, as the pickle names them.
        numbers: storage numbers by key, filled here (shared between the pickles of one file).
    """
    return [_tensor(item, storages, numbers) for item in found]


def findings_of(tensors: Sequence[Tensor]) -> list[Finding]:
    """A finding for every tensor whose values cannot be read."""
    rows = [
        Finding("pytorch.tensor", "error", f"Tensor {t.name[:200]!r}: {t.problem}.", f"tensor {t.name[:200]}")
        for t in tensors
        if t.problem
    ]
    return rows[:200]


def _tensor(item: Found, storages: Mapping[str, StorageBytes], numbers: dict[str, int]) -> Tensor:
    role = "weight" if item.parameter else "buffer" if item.storage is None else "weight"
    shape = item.shape if "too many" not in item.problem else ()
    plain = Tensor(item.name, item.dtype, shape, None, role=role, problem=item.problem)
    if item.problem:
        return plain
    if item.storage is None:
        return _embedded(plain, item)
    key = item.storage.key
    place = storages.get(key)
    if place is None:
        return _with(plain, f"its storage {key[:80]!r} is not in the file")
    if place.data is None:
        return _with(plain, place.problem)
    elements, bits = plain.elements, DTYPES[item.dtype].bits
    last = item.offset + elements - 1
    contiguous = item.strides is None or _contiguous(shape, item.strides)
    if not contiguous:
        last = item.offset + sum((size - 1) * step for size, step in zip(shape, item.strides or (), strict=True))
    needs = ((last + 1) * bits + 7) // 8 if elements else 0
    if needs > place.nbytes:
        count = place.nbytes * 8 // bits
        return _with(plain, f"size {list(shape)} reaches element {last}, its storage {key[:80]!r} has {count} elements")
    number = numbers.setdefault(key, len(numbers))
    return _placed(plain, item, place, number, contiguous, elements)


def _placed(plain: Tensor, item: Found, place: StorageBytes, number: int, contiguous: bool, elements: int) -> Tensor:
    """The view itself: exactly its bytes where it is contiguous, the whole storage where not."""
    assert place.data is not None
    width = DTYPES[item.dtype].bits // 8
    if place.encoding.startswith("deflate"):
        skip = item.offset * width if contiguous else 0
        encoding, data = f"deflate+{skip}", place.data
    elif contiguous and width:
        start = place.data.start + item.offset * width
        encoding, data = place.encoding, ByteRange(place.data.source, start, start + elements * width)
    else:
        encoding, data = place.encoding, place.data
    return Tensor(
        plain.name, plain.dtype, plain.shape, data,
        encoding="plain" if encoding == "big" and width == 1 else encoding,
        strides=None if contiguous else item.strides,
        offset=0 if contiguous and width else item.offset,
        role=plain.role, storage=number,
    )  # fmt: skip


def _embedded(plain: Tensor, item: Found) -> Tensor:
    if item.array is None:
        return _with(plain, "has no bytes in the file")
    needs = DTYPES[item.dtype].nbytes(plain.elements)
    if len(item.array) < needs:
        return _with(plain, f"shape {list(item.shape)} needs {needs} bytes, the pickle holds {len(item.array)}")
    return Tensor(plain.name, plain.dtype, plain.shape, item.array[:needs], strides=item.strides, role=plain.role)


def _with(tensor: Tensor, problem: str) -> Tensor:
    return Tensor(tensor.name, tensor.dtype, tensor.shape, None, role=tensor.role, problem=problem)


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1 and stride != step:
            return False
        step *= size
    return True
