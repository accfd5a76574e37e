"""Protocol buffers read in place: a walk over byte ranges, payloads are stepped over.

Rules as in the Protocol Buffers encoding guide: unknown fields are skipped, groups too, the last
scalar wins, repeated fields concatenate; merging messages is the caller's (it walks all ranges of
a singular message one after the other). Reads go through a ``Window`` of 8 KiB that doubles up to
1 MiB while reading on and starts small again after a stepped-over payload.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.errors import BrokenFile
from core.limits import KIB, MIB, NESTING
from core.source import Source

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5

SMALLEST: Final = 2 * KIB
LARGEST: Final = 1 * MIB
_HEADER: Final = 20
"""Bytes of the longest tag and length together."""

Field = tuple[int, int, int, int]
"""Field number, wire type and two integers: for a varint its unsigned value and where it ends; else
the start and end of the payload."""


class Damage:
    """What was wrong with the bytes; only the first few are kept, all are counted."""

    KEPT: Final = 50

    def __init__(self, path: str) -> None:
        self.path = path
        self.errors: list[BrokenFile] = []
        self.count = 0

    def add(self, message: str, byte: int, field: str, expected: object = None, found: object = None) -> None:
        """Note one contradiction with its place."""
        self.count += 1
        if self.count <= self.KEPT:
            error = BrokenFile(message, path=self.path, byte=byte, field=field, expected=expected, found=found)
            self.errors.append(error)


class Window:
    """The part of a file that is in memory; moves forward as it is asked.

    Over ``bytes`` all of them are in memory from the start.
    """

    __slots__ = ("base", "data", "size", "source", "step", "top")

    def __init__(self, source: Source | bytes) -> None:
        self.source = source if isinstance(source, Source) else None
        self.data = source if isinstance(source, bytes) else b""
        self.size = len(source) if isinstance(source, bytes) else source.size
        self.base, self.top = 0, len(self.data)
        self.step = SMALLEST

    def load(self, start: int, stop: int) -> None:
        """Have bytes ``start`` to ``stop`` in ``data``; reads from disk where they are not.

        Raises:
            BrokenFile: if the range leaves the file.
        """
        if self.base <= start and stop <= self.top:
            return
        if self.source is None or stop > self.size:
            raise BrokenFile(f"bytes {start} to {stop} are asked for, there are {self.size}", byte=start)
        near = self.base <= start <= self.top
        self.step = min(self.step * 2, LARGEST) if near and self.top else SMALLEST
        top = max(stop, min(start + self.step, self.size))
        self.data = self.source.read(start, top)
        self.base, self.top = start, top

    def expect(self, at: int) -> None:
        """Say that the window moves to ``at`` next, beyond what it holds."""
        if self.source is not None and at > self.top:
            self.source.expect(at)

    def bytes(self, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop``; short ones out of the window, long ones from disk."""
        if stop - start > LARGEST and self.source is not None:
            return self.source.read(start, stop)
        self.load(start, stop)
        return self.data[start - self.base : stop - self.base]

    def text(self, start: int, stop: int) -> str:
        """The same as text; bytes that are no UTF-8 are written as ``\\xNN``."""
        return self.bytes(start, stop).decode("utf-8", "backslashreplace")


def fields(  # noqa: PLR0915 - one loop without calls: it runs for every field of a file
    window: Window, start: int, stop: int, message: str, damage: Damage
) -> Iterator[Field]:
    """Walk one message; reads from disk.

    A payload that leaves the message is noted in ``damage`` and comes cut at its end; after any
    other contradiction the walk notes it and ends.
    """
    at = start
    while at < stop:
        data, base = window.data, window.base
        if at < base or (at + _HEADER > window.top and window.top < stop):
            window.load(at, min(at + _HEADER, stop))
            data, base = window.data, window.base
        p, end = at - base, stop - base
        try:
            tag = data[p]
            p += 1
            if tag >= 0x80:
                tag, p = varint(data, p - 1, 5)
            wire, number = tag & 7, tag >> 3
            if number == 0 or tag > 0xFFFFFFFF:
                damage.add("invalid field number", at, message, "1 to 536870911", number)
                return
            if wire == BYTES:
                length = data[p]
                p += 1
                if length >= 0x80:
                    length, p = varint(data, p - 1, 10)
                if p > end:
                    raise IndexError
                first = p + base
                if length > stop - first:
                    _overrun(damage, message, number, at, stop - first, length)
                    yield number, BYTES, first, stop
                    return
                at = first + length
                yield number, BYTES, first, at
                continue
            if wire == VARINT:
                value = data[p]
                p += 1
                if value >= 0x80:
                    value, p = varint(data, p - 1, 10)
                if p > end:
                    raise IndexError
                at = base + p
                yield number, VARINT, value, at
                continue
            if p > end:
                raise IndexError
        except (IndexError, ValueError) as error:
            what = "the message ends within a number" if isinstance(error, IndexError) else str(error)
            damage.add(what, at, message)
            return
        first = p + base
        if wire in (FIXED32, FIXED64):
            last = first + (4 if wire == FIXED32 else 8)
        elif wire == GROUP:
            last = _group(window, first, stop, number, message, damage)
        else:
            damage.add("invalid wire type", at, f"{message} field {number}", "0 to 5", wire)
            return
        if last < 0:
            return
        if last > stop:
            _overrun(damage, message, number, at, stop - first, last - first)
            return
        at = last
        yield number, wire, first, last


def varint(data: bytes, p: int, most: int) -> tuple[int, int]:
    """Decode a varint of at most ``most`` bytes at ``p``: its value modulo 2**64 and where it ends.

    Raises:
        ValueError: if it is longer. IndexError: if the data ends before it.
    """
    value = shift = 0
    for count in range(most):
        byte = data[p + count]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, p + count + 1
        shift += 7
    raise ValueError(f"a number is longer than {most} bytes")


def signed(value: int) -> int:
    """An unsigned 64-bit varint as int64."""
    return value - (1 << 64) if value >> 63 else value


def signed32(value: int) -> int:
    """An unsigned varint as int32: its low 32 bits."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def varints(data: bytes) -> NDArray[np.uint64]:
    """Decode packed varints, each modulo 2**64.

    Raises:
        ValueError: if one is longer than ten bytes or the last one does not end.
    """
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80)
    if raw.size and (not ends.size or ends[-1] != raw.size - 1):
        raise ValueError("the last packed number does not end")
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts + 1
    longest = int(lengths.max()) if lengths.size else 0
    if longest > 10:
        raise ValueError("a packed number is longer than ten bytes")
    values = np.zeros(ends.size, np.uint64)
    for k in range(longest):
        rows = np.flatnonzero(lengths > k)
        values[rows] |= (raw[starts[rows] + k] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * k)
    return values


def _overrun(damage: Damage, message: str, number: int, at: int, room: int, length: int) -> None:
    damage.add("a length leaves its message", at, f"{message} field {number}", f"at most {room} bytes", length)


def _group(window: Window, start: int, stop: int, number: int, message: str, damage: Damage) -> int:
    """Where the group that began before ``start`` ends; -1 after noting damage."""
    open_groups, at = [number], start
    while open_groups:
        try:
            window.load(at, min(at + _HEADER, stop))
            data, base = window.data, window.base
            tag, p = varint(data, at - base, 5)
            wire, inner = tag & 7, tag >> 3
            if wire == VARINT:
                _, p = varint(data, p, 10)
            elif wire == BYTES:
                length, p = varint(data, p, 10)
                p += length
            elif wire in (FIXED32, FIXED64):
                p += 4 if wire == FIXED32 else 8
            elif wire == GROUP and len(open_groups) < NESTING:
                open_groups.append(inner)
            elif wire != END_GROUP or open_groups.pop() != inner:
                raise ValueError("a group does not end")
            if base + p > stop or inner == 0:
                raise IndexError
            at = base + p
        except (IndexError, ValueError) as error:
            what = "a group leaves its message" if isinstance(error, IndexError) else str(error)
            damage.add(what, at, f"{message} field {number}")
            return -1
    return at
