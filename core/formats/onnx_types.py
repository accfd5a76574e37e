"""ONNX element types and ``TypeProto``: what a value holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.formats._protobuf import BYTES, VARINT, Damage, Window, fields, signed, signed32
from core.ir import Dim
from core.limits import KIB, NESTING, RANK

ELEMENT_TYPES: Final[dict[int, str]] = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    8: "string", 9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
    14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1",
    24: "float8e8m0", 25: "uint2", 26: "int2", 27: "float6e2m3", 28: "float6e3m2",
}  # fmt: skip
"""``TensorProto.DataType`` by number (onnx.proto, IR version 14)."""

Span = tuple[int, int]
"""Start and end of a message; a singular message that occurs twice has two spans."""


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A declared type: a dense tensor, or ``text`` for anything else."""

    dtype: str | None = None
    shape: tuple[Dim, ...] | None = None
    text: str = ""

    def __str__(self) -> str:
        if self.text:
            return self.text
        name = self.dtype or "unknown"
        if self.shape is None:
            return name
        return f"{name}[{', '.join('?' if d is None else str(d) for d in self.shape)}]"


class TypeReader:
    """Reads type messages; equal bytes are decoded once."""

    KEPT: Final = 20_000

    def __init__(self, window: Window, damage: Damage) -> None:
        self._window, self._damage = window, damage
        self.known: dict[bytes, TypeInfo] = {}
        """Types by the bytes of their message."""

    def read(self, spans: list[Span]) -> TypeInfo:
        """The type in these spans of one ``TypeProto``; reads from disk."""
        if len(spans) != 1 or spans[0][1] - spans[0][0] > KIB:
            return self._type(spans, 0)
        data = self._window.bytes(*spans[0])
        found = self.known.get(data)
        if found is None:
            before = self._damage.count
            found = self._type(spans, 0)
            if self._damage.count == before and len(self.known) < self.KEPT:
                self.known[data] = found
        return found

    def _type(self, spans: list[Span], depth: int) -> TypeInfo:
        if depth > NESTING // 2:
            self._damage.add("types are nested too deep", spans[0][0], "TypeProto", f"at most {NESTING // 2}", "more")
            return TypeInfo(text="...")
        kind, inner = 0, list[Span]()
        for start, stop in spans:
            for number, wire, a, b in fields(self._window, start, stop, "TypeProto", self._damage):
                if wire == BYTES and number in (1, 4, 5, 7, 8, 9):
                    inner = [*inner, (a, b)] if number == kind else [(a, b)]
                    kind = number
        if kind in (1, 8):
            tensor = self._tensor(inner)
            return tensor if kind == 1 else TypeInfo(text=f"sparse({tensor})")
        if kind in (4, 9):
            word = "sequence" if kind == 4 else "optional"
            return TypeInfo(text=f"{word}({self._element(inner, 1, depth)})")
        if kind == 5:
            return TypeInfo(text=f"map({self._map_key(inner)}, {self._element(inner, 2, depth)})")
        return TypeInfo(text=self._opaque(inner)) if kind == 7 else TypeInfo()

    def _element(self, spans: list[Span], wanted: int, depth: int) -> TypeInfo:
        inner = [
            (a, b)
            for start, stop in spans
            for number, wire, a, b in fields(self._window, start, stop, "TypeProto", self._damage)
            if number == wanted and wire == BYTES
        ]
        return self._type(inner, depth + 1) if inner else TypeInfo()

    def _map_key(self, spans: list[Span]) -> str:
        key = 0
        for start, stop in spans:
            for number, wire, a, _ in fields(self._window, start, stop, "TypeProto.Map", self._damage):
                if number == 1 and wire == VARINT:
                    key = signed32(a)
        return ELEMENT_TYPES.get(key, "unknown")

    def _opaque(self, spans: list[Span]) -> str:
        parts = {1: "", 2: ""}
        for start, stop in spans:
            for number, wire, a, b in fields(self._window, start, stop, "TypeProto.Opaque", self._damage):
                if wire == BYTES and number in parts:
                    parts[number] = self._window.text(a, min(b, a + KIB))
        return f"opaque({'.'.join(p for p in parts.values() if p)})"

    def _tensor(self, spans: list[Span]) -> TypeInfo:
        element, shape = 0, list[Span]()
        for start, stop in spans:
            for number, wire, a, b in fields(self._window, start, stop, "TypeProto.Tensor", self._damage):
                if number == 1 and wire == VARINT:
                    element = signed32(a)
                elif number == 2 and wire == BYTES:
                    shape.append((a, b))
        return TypeInfo(ELEMENT_TYPES.get(element), self._shape(shape) if shape else None)

    def _shape(self, spans: list[Span]) -> tuple[Dim, ...] | None:
        dims = list[Dim]()
        for start, stop in spans:
            for number, wire, a, b in fields(self._window, start, stop, "TensorShapeProto", self._damage):
                if number == 1 and wire == BYTES:
                    dims.append(self._dim(a, b))
                if len(dims) > RANK:
                    self._damage.add("too many dimensions", start, "TensorShapeProto", f"at most {RANK}", "more")
                    return None
        return tuple(dims)

    def _dim(self, start: int, stop: int) -> Dim:
        dim: Dim = None
        for number, wire, a, b in fields(self._window, start, stop, "Dimension", self._damage):
            if number == 1 and wire == VARINT:
                size = signed(a)
                dim = size if size >= 0 else None
            elif number == 2 and wire == BYTES:
                dim = self._window.text(a, min(b, a + KIB)) or None
        return dim
