"""The header of one GGUF file: key/value pairs and tensor infos, walked without copying arrays."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from core.errors import BrokenFile
from core.ir import Finding
from core.limits import KIB, METADATA_BYTES, MIB, NAME_BYTES, TENSORS, check
from core.source import Source

Scalar = bool | int | float | str

STRING: Final = 8
ARRAY: Final = 9
_CODES: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_NAMES: Final = {
    0: "uint8", 1: "int8", 2: "uint16", 3: "int16", 4: "uint32", 5: "int32", 6: "float32", 7: "bool",
    8: "string", 9: "array", 10: "uint64", 11: "int64", 12: "float64",
}  # fmt: skip
_WIDTHS: Final = {kind: struct.calcsize("<" + code) for kind, code in _CODES.items()}
_STEP: Final = 4096
"""A string array remembers where every this many-th string begins, so that a page is found quickly."""

KEYS: Final = 1_000_000
DIMS: Final = 8


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """A metadata array that stays in the file.

    Attributes:
        start, stop: its bytes, type and count not included.
        marks: where items 0, 4096, 8192, ... begin, for strings.
    """

    type_id: int
    count: int
    start: int
    stop: int
    big_endian: bool
    wide: bool
    marks: tuple[int, ...] = ()

    @property
    def type_name(self) -> str:
        """Name of the item type."""
        return _NAMES[self.type_id]

    def items(self, source: Source, start: int, limit: int) -> tuple[Scalar, ...]:
        """Items from ``start`` on, at most ``limit``; reads their bytes.

        Raises:
            BrokenFile: if the array holds arrays.
        """
        limit = max(0, min(limit, self.count - start))
        if self.type_id in _CODES:
            width = _WIDTHS[self.type_id]
            raw = source.read(self.start + start * width, self.start + (start + limit) * width)
            return struct.unpack(f"{'>' if self.big_endian else '<'}{limit}{_CODES[self.type_id]}", raw)
        if self.type_id != STRING:
            raise BrokenFile("is an array of arrays, which is not shown", path=source.path, byte=self.start)
        cursor = Cursor(source, self.marks[start // _STEP] if self.marks else self.start, self.big_endian, self.wide)
        for _ in range(start % _STEP):
            cursor.skip_string()
        return tuple(cursor.string("array item") for _ in range(limit))


@dataclass(frozen=True, slots=True)
class Info:
    """One tensor info as written: ``dims`` fastest first, ``offset`` from the start of the data."""

    name: str
    dims: tuple[int, ...]
    type_id: int
    offset: int


@dataclass(frozen=True)
class Header:
    """Everything before the tensor data.

    Attributes:
        values: metadata in file order, arrays as ranges.
        data_start: first byte of the tensor data, aligned.
    """

    version: int
    big_endian: bool
    values: dict[str, Scalar | ArrayValue]
    tensors: tuple[Info, ...]
    data_start: int
    alignment: int
    findings: tuple[Finding, ...] = ()
    _offsets: list[int] = field(default_factory=list[int])

    def next_offset(self, info: Info) -> int:
        """Offset of the tensor after ``info``; a very large number for the last."""
        later = [other.offset for other in self.tensors if other.offset > info.offset]
        return min(later, default=1 << 62)


class Cursor:
    """Walks a file forward through a window of bytes."""

    def __init__(self, source: Source, at: int, big_endian: bool, wide: bool) -> None:
        self.source, self.order, self.wide = source, ">" if big_endian else "<", wide
        self._from = at
        self._at, self._data, self._window = 0, b"", 8 * KIB
        self._length = struct.Struct(self.order + ("Q" if wide else "I"))

    @property
    def position(self) -> int:
        """Byte of the file that comes next."""
        return self._from + self._at

    def take(self, length: int, field_name: str) -> bytes:
        """The next ``length`` bytes.

        Raises:
            BrokenFile: if the file ends before.
        """
        if self._at + length > len(self._data):
            self._fill(length, field_name)
        start = self._at
        self._at = start + length
        return self._data[start : self._at]

    def number(self, code: str, field_name: str) -> int | float | bool:
        """The next number of that struct code."""
        width = struct.calcsize("<" + code)
        return struct.unpack(self.order + code, self.take(width, field_name))[0]

    def count(self, field_name: str) -> int:
        """The next length: 8 bytes, or 4 in version 1."""
        return self._length.unpack(self.take(self._length.size, field_name))[0]

    def string(self, field_name: str) -> str:
        """The next string.

        Raises:
            BrokenFile: if it is longer than the rest of the file.
            LimitExceeded: if it is longer than ``limits.METADATA_BYTES``.
        """
        at, length = self.position, self.count(f"length of {field_name}")
        self._check_room(length, field_name, at)
        check(f"the length of {field_name}", length, METADATA_BYTES, path=self.source.path, byte=at)
        return self.take(length, field_name).decode("utf-8", "replace")

    def skip_string(self) -> None:
        """Step over the next string."""
        at, length = self.position, self.count("length of an array item")
        self._check_room(length, "array item", at)
        self.skip(length)

    def skip(self, length: int) -> None:
        """Step over bytes without reading them where they lie outside the window."""
        if self._at + length <= len(self._data):
            self._at += length
            return
        self._from, self._at, self._data = self.position + length, 0, b""

    def skip_strings(self, count: int) -> tuple[int, ...]:
        """Step over ``count`` strings; where every ``_STEP``-th begins.

        Raises:
            BrokenFile: if one is longer than the rest of the file.
        """
        marks: list[int] = []
        unpack, width, done = self._length.unpack_from, self._length.size, 0
        while done < count:
            data, at, end = self._data, self._at, len(self._data) - width
            base = self._from
            while at <= end and done < count:
                if done % _STEP == 0:
                    marks.append(base + at)
                after = at + width + unpack(data, at)[0]
                if after > len(data):
                    break
                at = after
                done += 1
            self._at = at
            if done < count:
                if marks and done % _STEP == 0 and marks[-1] == base + at:
                    marks.pop()
                self._one_more(done, marks)
                done += 1
        return tuple(marks)

    def _one_more(self, done: int, marks: list[int]) -> None:
        """Step over one string that the window does not hold whole."""
        if done % _STEP == 0:
            marks.append(self.position)
        self.skip_string()

    def _check_room(self, length: int, field_name: str, at: int) -> None:
        room = self.source.size - self.position
        if length > room:
            raise BrokenFile(
                "is impossible", path=self.source.path, byte=at, field=f"length of {field_name}",
                expected=f"at most {room}", found=length,
            )  # fmt: skip

    def _fill(self, length: int, field_name: str) -> None:
        start = self.position
        if length > self.source.size - start:
            raise BrokenFile(
                "is cut off", path=self.source.path, byte=start, field=field_name,
                expected=f"{length} bytes", found=self.source.size - start,
            )  # fmt: skip
        stop = min(self.source.size, start + max(length, self._window))
        self._data, self._from, self._at = self.source.read(start, stop), start, 0
        self._window = min(2 * self._window, MIB)


def read_header(source: Source) -> Header:
    """Read magic, version, metadata and tensor infos.

    Raises:
        BrokenFile: if one of them is damaged before the first tensor info is complete.
        LimitExceeded: for impossible counts.
    """
    fixed = source.read(0, min(8, source.size))
    if fixed[:4] != b"GGUF" or len(fixed) < 8:
        raise BrokenFile("is wrong", path=source.path, byte=0, field="magic", expected="GGUF", found=repr(fixed[:4]))
    little, big = int.from_bytes(fixed[4:], "little"), int.from_bytes(fixed[4:], "big")
    big_endian = not 1 <= little <= 3 and 1 <= big <= 3
    version = big if big_endian else little
    if not 1 <= version <= 3:
        raise BrokenFile("is unknown", path=source.path, byte=4, field="version", expected="1 to 3", found=version)
    cursor = Cursor(source, 8, big_endian, version > 1)
    tensor_count, key_count = cursor.count("tensor count"), cursor.count("key count")
    check("the number of metadata keys", key_count, min(KEYS, source.size // 8), path=source.path, byte=16)
    check("the number of tensors", tensor_count, min(TENSORS, source.size // 8), path=source.path, byte=8)
    findings: list[Finding] = []
    values = _values(cursor, key_count, findings)
    alignment = _alignment(values, findings)
    tensors = _infos(cursor, tensor_count, findings)
    start = -(-cursor.position // alignment) * alignment
    return Header(version, big_endian, values, tensors, start, alignment, tuple(findings))


def _values(cursor: Cursor, count: int, findings: list[Finding]) -> dict[str, Scalar | ArrayValue]:
    values: dict[str, Scalar | ArrayValue] = {}
    budget = METADATA_BYTES
    for index in range(count):
        at = cursor.position
        key = cursor.string(f"key {index}")
        check(f"the length of key {index}", len(key), NAME_BYTES, path=cursor.source.path, byte=at)
        value = _value(cursor, int(cursor.number("I", f"type of {key[:80]!r}")), key)
        budget -= len(key) + (len(value) if isinstance(value, str) else 8)
        check("the bytes of metadata text left", budget, METADATA_BYTES, path=cursor.source.path, byte=at)
        if key in values:
            findings.append(
                Finding("gguf.key", "error", f"Key {key[:200]!r} is there twice; the first counts.", f"byte {at}")
            )
        values.setdefault(key, value)
    return values


def _value(cursor: Cursor, type_id: int, key: str) -> Scalar | ArrayValue:
    if type_id in _CODES:
        return cursor.number(_CODES[type_id], f"value of {key[:80]!r}")
    if type_id == STRING:
        return cursor.string(f"value of {key[:80]!r}")
    if type_id == ARRAY:
        return _array(cursor, key, 0)
    name, at = f"type of {key[:80]!r}", cursor.position - 4
    raise BrokenFile("is unknown", path=cursor.source.path, byte=at, field=name, expected="0 to 12", found=type_id)


def _array(cursor: Cursor, key: str, depth: int) -> ArrayValue:
    shown = f"array {key[:80]!r}"
    at = cursor.position
    type_id, count = int(cursor.number("I", f"item type of {shown}")), cursor.count(f"length of {shown}")
    room = cursor.source.size - cursor.position
    width = _WIDTHS.get(type_id, 4)
    if count * width > room:
        name, bound = f"length of {shown}", f"at most {room // width}"
        raise BrokenFile("is impossible", path=cursor.source.path, byte=at, field=name, expected=bound, found=count)
    start, marks = cursor.position, tuple[int, ...]()
    if type_id in _CODES:
        cursor.skip(count * width)
    elif type_id == STRING:
        marks = cursor.skip_strings(count)
    elif type_id == ARRAY and depth < 4:
        check(f"the length of {shown}", count, 1_000_000, path=cursor.source.path, byte=at)
        for _ in range(count):
            _array(cursor, key, depth + 1)
    else:
        raise BrokenFile(
            "is unknown or nested too deeply",
            path=cursor.source.path,
            byte=at,
            field=f"item type of {shown}",
            found=type_id,
        )
    return ArrayValue(type_id, count, start, cursor.position, cursor.order == ">", cursor.wide, marks)


def _alignment(values: dict[str, Scalar | ArrayValue], findings: list[Finding]) -> int:
    alignment = values.get("general.alignment", 32)
    if type(alignment) is int and 0 < alignment <= MIB and alignment & (alignment - 1) == 0:
        return alignment
    text = f"general.alignment is {str(alignment)[:40]}, expected a power of two; 32 is used."
    findings.append(Finding("gguf.alignment", "error", text))
    return 32


def _infos(cursor: Cursor, count: int, findings: list[Finding]) -> tuple[Info, ...]:
    infos: list[Info] = []
    try:
        infos.extend(_info(cursor, index) for index in range(count))
    except BrokenFile as error:
        # Keys and the infos before the damage are still worth showing.
        text = f"Only {len(infos)} of {count} tensor infos can be read: {error.message}."
        findings.append(Finding("gguf.truncated", "error", text, f"byte {error.byte}"))
    return tuple(infos)


def _info(cursor: Cursor, index: int) -> Info:
    at = cursor.position
    name = cursor.string(f"name of tensor {index}")
    check(f"the length of the name of tensor {index}", len(name), NAME_BYTES, path=cursor.source.path, byte=at)
    rank = int(cursor.number("I", f"rank of {name[:80]!r}"))
    if rank > DIMS:
        field_name = f"rank of {name[:80]!r}"
        raise BrokenFile(
            "is impossible", path=cursor.source.path, byte=at, field=field_name, expected=f"at most {DIMS}", found=rank
        )
    dims = tuple(cursor.count(f"dimension of {name[:80]!r}") for _ in range(rank))
    type_id = int(cursor.number("I", f"type of {name[:80]!r}"))
    return Info(name, dims, type_id, int(cursor.number("Q", f"offset of {name[:80]!r}")))
