"""Attributes of an ONNX model, decoded one by one when asked for."""

from __future__ import annotations

import struct

import numpy as np

from core.formats._protobuf import BYTES, FIXED32, VARINT, Damage, Window, fields, signed, signed32, varints
from core.formats.onnx_node import ATTRIBUTE_TYPES
from core.formats.onnx_types import Span, TypeReader
from core.ir import AttributeRef, AttributeValue, EncodedAttribute, Model, TypeText
from core.limits import ATTRIBUTE_BYTES, check

_FLOAT, _INT, _STRING, _FLOATS, _INTS, _STRINGS, _TYPE, _TYPES = 1, 2, 3, 6, 7, 8, 13, 14


def decode_attribute(model: Model, attribute: EncodedAttribute) -> AttributeValue:
    """Decode one attribute that is numbers, text, a type or a reference; reads it from disk.

    Texts that are no UTF-8 come as ``bytes``. Without a ``type`` (IR versions before 3) the field
    that is there decides.

    Raises:
        BrokenFile: if its bytes contradict themselves.
        LimitExceeded: if it is longer than ``limits.ATTRIBUTE_BYTES``.
    """
    source = model.sources[attribute.source]
    start, stop = attribute.start, attribute.stop
    check("the length of an attribute", stop - start, ATTRIBUTE_BYTES, path=source.path, byte=start)
    damage = Damage(source.path)
    found = _Found(Window(source), damage)
    found.read(start, stop)
    if damage.errors:
        raise damage.errors[0]
    return found.value()


class _Found:
    """The fields of one AttributeProto."""

    def __init__(self, window: Window, damage: Damage) -> None:
        self._window, self._damage = window, damage
        self.type = 0
        self.reference = ""
        self.float: float | None = None
        self.int: int | None = None
        self.string: bytes | None = None
        self.floats: list[float] = []
        self.ints: list[int] = []
        self.strings: list[bytes] = []
        self.types: list[list[Span]] = []
        self.single_type: list[Span] = []

    def read(self, start: int, stop: int) -> None:
        window = self._window
        for number, wire, a, b in fields(window, start, stop, "AttributeProto", self._damage):
            if wire == VARINT:
                self._varint(number, a)
            elif wire == FIXED32:
                if number == 2:
                    self.float = struct.unpack("<f", window.bytes(a, b))[0]
                elif number == 7:
                    self.floats.append(struct.unpack("<f", window.bytes(a, b))[0])
            elif wire == BYTES:
                self._bytes(number, a, b)

    def _varint(self, number: int, value: int) -> None:
        if number == 3:
            self.int = signed(value)
        elif number == 8:
            self.ints.append(signed(value))
        elif number == 20 and signed32(value) in ATTRIBUTE_TYPES:
            self.type = signed32(value)

    def _bytes(self, number: int, a: int, b: int) -> None:
        window = self._window
        if number == 4:
            self.string = window.bytes(a, b)
        elif number == 9:
            self.strings.append(window.bytes(a, b))
        elif number == 7:
            if (b - a) % 4:
                self._damage.add("packed numbers are cut", a, "AttributeProto.floats", "a multiple of 4 bytes", b - a)
                return
            self.floats.extend(np.frombuffer(window.bytes(a, b), "<f4").tolist())
        elif number == 8:
            try:
                self.ints.extend(varints(window.bytes(a, b)).view(np.int64).tolist())
            except ValueError as error:
                self._damage.add(str(error), a, "AttributeProto.ints")
        elif number == 14:
            self.single_type.append((a, b))
        elif number == 15:
            self.types.append([(a, b)])
        elif number == 21:
            self.reference = window.text(a, b)

    def value(self) -> AttributeValue:
        if self.reference:
            return AttributeRef(self.reference)
        kind = self.type or self._guess()
        if kind == _FLOAT:
            return self.float or 0.0
        if kind == _INT:
            return self.int or 0
        if kind == _STRING:
            return _text(self.string or b"")
        if kind == _FLOATS:
            return tuple(self.floats)
        if kind == _INTS:
            return tuple(self.ints)
        if kind == _STRINGS:
            return tuple(_text(s) for s in self.strings)
        if kind in (_TYPE, _TYPES):
            reader = TypeReader(self._window, self._damage)
            if kind == _TYPE:
                return TypeText(str(reader.read(self.single_type))) if self.single_type else None
            return tuple(TypeText(str(reader.read(spans))) for spans in self.types)
        return () if kind in (9, 10, 12) else None

    def _guess(self) -> int:
        there = (
            (_FLOAT, self.float is not None), (_INT, self.int is not None), (_STRING, self.string is not None),
            (_FLOATS, bool(self.floats)), (_INTS, bool(self.ints)), (_STRINGS, bool(self.strings)),
            (_TYPE, bool(self.single_type)), (_TYPES, bool(self.types)),
        )  # fmt: skip
        return next((kind for kind, is_there in there if is_there), 0)


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
