"""Reading ``.npy`` files without pickle: the header by hand, the size checked against the file.

Layout: numpy.lib.format, versions 1.0 to 3.0.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.errors import BrokenFile
from core.limits import ELEMENTS, GIB, KIB, RANK, check
from core.source import Source

MAGIC: Final = b"\x93NUMPY"
HEADER_BYTES: Final = 64 * KIB
ARRAY_BYTES: Final = 1 * GIB
"""Bytes of one input array brought into memory."""

_ITEM: Final = r"'(?:descr|fortran_order|shape)'\s*:\s*(?:'[^'\\]{1,32}'|True|False|\([\d\sL,]*\))"
_HEADER: Final = re.compile(rf"\{{\s*{_ITEM}\s*,\s*{_ITEM}\s*,\s*{_ITEM}\s*,?\s*\}}\s*")
_PLAIN: Final = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|c8|c16|[US][1-9]\d{0,5})")


@dataclass(frozen=True, slots=True)
class NpyHead:
    """What the header of a ``.npy`` file says.

    Attributes:
        descr: numpy type string, e.g. ``<f4``.
        start: byte at which the elements begin.
    """

    descr: str
    shape: tuple[int, ...]
    fortran: bool
    start: int

    @property
    def dtype(self) -> str:
        """The name of the element type as ``core.dtypes`` has it."""
        kind = np.dtype(self.descr)
        return "string" if kind.kind in "US" else kind.newbyteorder("=").name


def npy_head(path: str | os.PathLike[str]) -> NpyHead:
    """Read the header of a ``.npy`` file; reads at most 64 KiB of it from disk.

    Raises:
        UnreadableFile: if the file is missing, not a regular file or may not be read.
        BrokenFile: if it is no ``.npy`` file, holds objects or records, or its size is wrong.
        LimitExceeded: if rank, elements or header are beyond their bounds.
    """
    source = Source(path)
    try:
        return _head(source)
    finally:
        source.close()


def read_npy(path: str | os.PathLike[str], nbytes: int = ARRAY_BYTES) -> NDArray[np.generic]:
    """Read a ``.npy`` file into memory in native byte order; reads all of it from disk.

    Args:
        nbytes: the largest array that is read.

    Raises: as ``npy_head``, and LimitExceeded where the array is larger than ``nbytes``.
    """
    source = Source(path)
    try:
        head = _head(source)
        check("the size of the array", source.size - head.start, nbytes, path=source.path)
        raw = bytearray(source.size - head.start)
        source.read_into(head.start, memoryview(raw))
        return _array(head, raw)
    finally:
        source.close()


def array_of(data: bytes, path: str) -> NDArray[np.generic]:
    """The array of a ``.npy`` file that is in memory already; ``path`` is what messages call it.

    Raises: as ``npy_head``.
    """
    head = _head(_Memory(data, path))
    return _array(head, bytearray(data[head.start :]))


@dataclass(frozen=True, slots=True)
class _Memory:
    """Bytes in memory, read as a ``Source`` is."""

    data: bytes
    path: str

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, stop: int) -> bytes:
        return self.data[start:stop]


def _array(head: NpyHead, raw: bytearray) -> NDArray[np.generic]:
    stored = np.dtype(head.descr)
    flat = np.frombuffer(raw, stored) if raw else np.empty(_elements(head.shape), stored)
    array = flat.reshape(head.shape, order="F" if head.fortran else "C")
    return np.ascontiguousarray(array.astype(stored.newbyteorder("="), copy=False)).reshape(head.shape)


def _head(source: Source | _Memory) -> NpyHead:
    start = source.read(0, min(source.size, 12))
    if not start.startswith(MAGIC):
        found = start[:6].hex(" ") or "an empty file"
        raise BrokenFile("is not a .npy file", path=source.path, byte=0, expected=MAGIC.hex(" "), found=found)
    if len(start) < 12 or start[6] not in (1, 2, 3):
        raise BrokenFile("has a .npy version that is not 1, 2 or 3", path=source.path, byte=6)
    begin = 10 if start[6] == 1 else 12
    length = int.from_bytes(start[8:begin], "little")
    check("the length of the .npy header", length, HEADER_BYTES, path=source.path, byte=8)
    if begin + length > source.size:
        raise BrokenFile("ends inside the .npy header", path=source.path, byte=source.size)
    text = source.read(begin, begin + length).decode("latin-1")
    head = _parsed(text, source.path, begin + length)
    _check_size(head, source)
    return head


def _parsed(text: str, path: str, start: int) -> NpyHead:
    if "'O'" in text or "|O" in text:
        raise BrokenFile("holds Python objects, which are never loaded", path=path, hint="Save plain numbers.")
    if not _HEADER.fullmatch(text):
        raise BrokenFile("has a .npy header that describes no plain array", path=path, byte=10)
    fields = dict(re.findall(r"'(descr|fortran_order|shape)'\s*:\s*('[^']*'|True|False|\([^)]*\))", text))
    descr, order, shape = fields.get("descr", ""), fields.get("fortran_order", ""), fields.get("shape", "")
    if not descr.startswith("'") or order not in ("True", "False") or not shape.startswith("("):
        raise BrokenFile("has a .npy header without descr, fortran_order and shape", path=path, byte=10)
    if not _PLAIN.fullmatch(descr[1:-1]):
        raise BrokenFile(f"holds elements of type {descr}, not plain numbers, booleans or text", path=path)
    sizes = re.findall(r"\d+", shape)
    check("the rank", len(sizes), RANK, path=path, byte=10)
    if any(len(size) > 18 for size in sizes):
        raise BrokenFile("declares a dimension of more than 18 digits", path=path, byte=10)
    return NpyHead(descr[1:-1], tuple(int(size) for size in sizes), order == "True", start)


def _check_size(head: NpyHead, source: Source | _Memory) -> None:
    expected = head.start + _elements(head.shape) * np.dtype(head.descr).itemsize
    if expected != source.size:
        raise BrokenFile(
            "size does not fit its header",
            path=source.path,
            expected=f"{expected} bytes",
            found=f"{source.size} bytes",
            hint="Save it again.",
        )


def _elements(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total = check("the number of elements", total * size, ELEMENTS)
    return total
