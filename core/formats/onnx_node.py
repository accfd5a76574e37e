"""``NodeProto`` and ``AttributeProto`` taken apart, quickly where they lie in the window."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Final

from core.formats._protobuf import BYTES, VARINT, Damage, Window, fields, signed32
from core.formats.onnx_types import Span
from core.limits import KIB, NAME_BYTES

INLINE: Final = 64 * KIB
"""Nodes up to this size are read whole; of longer ones (weights in attributes) only the fields."""

ATTRIBUTE_TYPES: Final = range(15)


@dataclass(slots=True)
class NodeParts:
    """The fields of one NodeProto as met; ``attributes`` are spans."""

    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    attributes: list[Span] = field(default_factory=list[Span])
    name: str = ""
    op_type: str = ""
    domain: str = ""
    overload: str = ""
    scope: str = ""


@dataclass(slots=True)
class AttributeParts:
    """The fields of one AttributeProto that are not numbers or text, as spans."""

    name: str = ""
    type: int = 0
    tensor: list[Span] = field(default_factory=list[Span])
    graph: list[Span] = field(default_factory=list[Span])
    sparse: list[Span] = field(default_factory=list[Span])
    tensors: list[Span] = field(default_factory=list[Span])
    graphs: list[Span] = field(default_factory=list[Span])
    sparses: list[Span] = field(default_factory=list[Span])

    @property
    def simple(self) -> bool:
        """Whether it holds no tensor and no graph."""
        return not (self.tensor or self.graph or self.sparse or self.tensors or self.graphs or self.sparses)


class NodeReader:
    """Reads nodes and attributes of one file."""

    KEPT: Final = 50_000

    def __init__(self, window: Window, damage: Damage) -> None:
        self._window, self._damage = window, damage
        self._simple: dict[bytes, str] = {}
        self._scopes: dict[bytes, str] = {}

    def read(self, start: int, stop: int) -> NodeParts:
        """The node in this span; reads from disk."""
        if stop - start <= INLINE:
            self._window.load(start, stop)
            parts = NodeParts()
            if self._fast(start, stop, parts):
                return parts
        return self._slow(start, stop)

    def simple_attribute(self, start: int, stop: int) -> str | None:
        """Name of an attribute already known to hold no tensor and no graph."""
        window = self._window
        if stop - start > 96 or start < window.base or stop > window.top:
            return None
        return self._simple.get(window.data[start - window.base : stop - window.base])

    def attribute(self, start: int, stop: int) -> AttributeParts:
        """Take an attribute apart; reads from disk."""
        parts, window, before = AttributeParts(), self._window, self._damage.count
        lists = {
            5: parts.tensor, 6: parts.graph, 22: parts.sparse,
            10: parts.tensors, 11: parts.graphs, 23: parts.sparses,
        }  # fmt: skip
        for number, wire, a, b in fields(window, start, stop, "AttributeProto", self._damage):
            if wire == BYTES and number == 1:
                parts.name = window.text(a, min(b, a + NAME_BYTES))
            elif wire == BYTES and number in lists:
                lists[number].append((a, b))
            elif wire == VARINT and number == 20 and signed32(a) in ATTRIBUTE_TYPES:
                parts.type = signed32(a)
        if parts.simple and stop - start <= 96 and self._damage.count == before and len(self._simple) < self.KEPT:
            self._simple[window.bytes(start, stop)] = parts.name
        return parts

    def _fast(self, start: int, stop: int, parts: NodeParts) -> bool:
        """Fill ``parts`` from the window; false for anything unusual, which ``_slow`` then reads."""
        window = self._window
        data, base = window.data, window.base
        p, end = start - base, stop - base
        inputs, outputs, attributes = parts.inputs, parts.outputs, parts.attributes
        try:
            while p < end:
                tag, length = data[p], data[p + 1]
                p += 2
                if length >= 0x80:
                    more = data[p]
                    p += 1
                    length = (length & 0x7F) | (more & 0x7F) << 7
                    if more >= 0x80:
                        more = data[p]
                        p += 1
                        length |= more << 14
                        if more >= 0x80:
                            return False
                q = p + length
                if tag == 0x0A:
                    inputs.append(data[p:q].decode())
                elif tag == 0x12:
                    outputs.append(data[p:q].decode())
                elif tag == 0x2A:
                    attributes.append((p + base, q + base))
                elif tag == 0x22:
                    parts.op_type = data[p:q].decode()
                elif tag == 0x1A:
                    parts.name = data[p:q].decode()
                elif tag == 0x4A:
                    self._metadata(data[p:q], parts)
                elif tag == 0x3A:
                    parts.domain = data[p:q].decode()
                elif tag == 0x42:
                    parts.overload = data[p:q].decode()
                elif tag != 0x32:  # doc_string
                    return False
                p = q
        except (IndexError, UnicodeDecodeError):
            return False
        return p == end

    def _slow(self, start: int, stop: int) -> NodeParts:
        parts, window = NodeParts(), self._window
        for number, wire, a, b in fields(window, start, stop, "NodeProto", self._damage):
            if wire != BYTES:
                continue
            if number == 5:
                parts.attributes.append((a, b))
            elif number in (1, 2, 3, 4, 7, 8):
                text = window.text(a, min(b, a + NAME_BYTES))
                if b - a > NAME_BYTES:
                    self._damage.add("a name is cut", a, f"NodeProto field {number}", f"at most {NAME_BYTES}", b - a)
                if number <= 2:
                    (parts.inputs if number == 1 else parts.outputs).append(text)
                elif number == 3:
                    parts.name = text
                elif number == 4:
                    parts.op_type = text
                elif number == 7:
                    parts.domain = text
                else:
                    parts.overload = text
            elif number == 9 and b - a <= INLINE:
                self._metadata(window.bytes(a, b), parts)
        return parts

    def _metadata(self, entry: bytes, parts: NodeParts) -> None:
        """Take the module path out of a metadata entry as PyTorch's exporter writes it."""
        for key, take in _SCOPE_KEYS.items():
            if entry.startswith(key):
                scope = self._scopes.get(entry)
                if scope is None:
                    scope = take(_value(entry[len(key) :]))
                    if len(self._scopes) < self.KEPT:
                        self._scopes[entry] = scope
                if take is _from_name_scopes or not parts.scope:
                    parts.scope = scope
                return


def _value(rest: bytes) -> str:
    """The value of a metadata entry after its key, where it is the next and last field."""
    if rest[:1] != b"\x12":
        return ""
    p = 2
    while p <= len(rest) and rest[p - 1] >= 0x80:
        p += 1
    return rest[p:].decode("utf-8", "backslashreplace")


def _from_name_scopes(text: str) -> str:
    """``['', 'encoder', 'encoder.layer.0', 'add_3']`` names the node last, its module before."""
    try:
        names = ast.literal_eval(text) if len(text) <= 16 * KIB else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):  # pyright: ignore[reportUnknownVariableType]
        return ""
    modules = [n for n in names[:-1] if isinstance(n, str) and n]  # pyright: ignore[reportUnknownVariableType]
    return modules[-1] if modules else ""


def _from_namespace(text: str) -> str:
    """``: Model/encoder: torch.nn.Linear/linear_1: aten.linear`` names the node last as well."""
    parts = [part.split(":", 1)[0].strip() for part in text[: 16 * KIB].split("/")]
    modules = [part for part in parts[:-1] if part]
    return modules[-1] if modules else ""


def _key(name: bytes) -> bytes:
    return b"\x0a" + bytes([len(name)]) + name


_SCOPE_KEYS: Final = {
    _key(b"pkg.torch.onnx.name_scopes"): _from_name_scopes,
    _key(b"namespace"): _from_namespace,
}
