"""An ONNX file without its payloads: large stored tensors become external data in that same file.

The runtime maps external data at a byte offset, so weights embedded anywhere in the file reach it
without a copy and without protobuf's bound of 2 GB. Only messages that are large are taken apart;
everything else is copied as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from core.errors import BrokenFile
from core.formats._protobuf import BYTES, FIXED32, FIXED64, GROUP, VARINT, Damage, Field, Window, fields
from core.limits import KIB, NESTING
from core.source import Source

LARGE: Final = 16 * KIB
"""Payloads below this are embedded: the runtime reads shapes and small constants while it loads."""

# Message fields that may hold large tensors further down (onnx.proto, IR version 14).
_INSIDE: Final[dict[tuple[str, int], str]] = {
    ("ModelProto", 7): "GraphProto",
    ("ModelProto", 25): "FunctionProto",
    ("FunctionProto", 7): "NodeProto",
    ("GraphProto", 1): "NodeProto",
    ("GraphProto", 5): "TensorProto",
    ("NodeProto", 5): "AttributeProto",
    ("AttributeProto", 5): "TensorProto",
    ("AttributeProto", 6): "GraphProto",
    ("AttributeProto", 10): "TensorProto",
    ("AttributeProto", 11): "GraphProto",
}
_TRAINING: Final = ("ModelProto", 20)

# Fields of TensorProto whose payload is the little-endian elements themselves, with the element
# types for which that is so; ``None`` for any.
_PLAIN: Final[dict[int, frozenset[int] | None]] = {9: None, 4: frozenset({1, 14}), 10: frozenset({11, 15})}


def skeleton(source: Source, location: str, *, training: bool = False) -> bytes:
    """The serialized ``ModelProto`` of ``source`` with payloads of ``LARGE`` bytes and more left out.

    Reads the file's messages, steps over the payloads.

    Args:
        location: the name under which payloads are found in the file.
        training: whether to keep training information.

    Raises:
        BrokenFile: if the file is damaged: what is run must be exactly what was written.
    """
    damage = Damage(source.path)
    rebuilt = b"".join(_Rebuild(source, location.encode(), damage, training).message("ModelProto", 0, source.size, 0))
    if damage.errors:
        raise damage.errors[0]
    return rebuilt


class _Rebuild:
    def __init__(self, source: Source, location: bytes, damage: Damage, training: bool) -> None:
        self._source, self._window = source, Window(source)
        self._location, self._damage, self._training = location, damage, training

    def message(self, kind: str, start: int, stop: int, depth: int) -> Iterator[bytes]:
        """The message again, piece by piece."""
        if depth > NESTING:
            raise BrokenFile("messages are nested too deep", path=self._damage.path, byte=start, field=kind)
        if kind == "TensorProto":
            yield from self._tensor(start, stop)
            return
        for field in fields(self._window, start, stop, kind, self._damage):
            number, wire, first, last = field
            inside = _INSIDE.get((kind, number)) if wire == BYTES and last - first >= LARGE else None
            if (kind, number) == _TRAINING and not self._training:
                continue
            if inside is None:
                yield self._copy(field)
            else:
                yield _delimited(number, b"".join(self.message(inside, first, last, depth + 1)))

    def _tensor(self, start: int, stop: int) -> Iterator[bytes]:
        found = list(fields(self._window, start, stop, "TensorProto", self._damage))
        element = next((a for number, wire, a, _ in reversed(found) if number == 2 and wire == VARINT), 0)
        payloads = [field for field in found if field[0] in _PLAIN and field[1] == BYTES]
        large = payloads[0] if len(payloads) == 1 and payloads[0][3] - payloads[0][2] >= LARGE else None
        if large is not None and not _is_plain(large[0], element):
            large = None
        for field in found:
            if field is not large:
                yield self._copy(field)
        if large is not None:
            entries = ((b"location", self._location), (b"offset", large[2]), (b"length", large[3] - large[2]))
            for key, value in entries:
                text = value if isinstance(value, bytes) else str(value).encode()
                yield _delimited(13, _delimited(1, key) + _delimited(2, text))
            yield _varint(14 << 3 | VARINT) + b"\x01"

    def _copy(self, field: Field) -> bytes:
        number, wire, first, last = field
        if wire == VARINT:
            return _varint(number << 3 | VARINT) + _varint(first)
        if wire == BYTES:
            return _varint(number << 3 | BYTES) + _varint(last - first) + self._all(first, last)
        if wire in (FIXED32, FIXED64):
            return _varint(number << 3 | wire) + self._window.bytes(first, last)
        assert wire == GROUP  # its range holds the end tag
        return _varint(number << 3 | GROUP) + self._all(first, last)

    def _all(self, start: int, stop: int) -> bytes:
        if stop - start <= KIB:
            return self._window.bytes(start, stop)
        return b"".join(self._source.blocks(start, stop))


def _is_plain(number: int, element: int) -> bool:
    types = _PLAIN[number]
    return types is None or element in types


def _delimited(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | BYTES) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
