"""``NodeProto`` and ``AttributeProto`` taken apart, quickly where they lie in the window."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Final

from core.formats._protobuf import BYTES, VARINT, Damage, Window, fields, signed32
from core.formats.onnx_types import Span
from core.limits import KIB, NAME_BYTES

INLINE: Final = 64 * KIB
"""Messages up to this size may be read whole; of longer ones only the fields."""

REMEMBERED: Final = 128
"""Attributes up to this size are remembered by their bytes."""

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

    KEPT: Final = 20_000

    def __init__(self, window: Window, damage: Damage) -> None:
        self._window, self._damage = window, damage
        self.simple: dict[bytes, str] = {}
        """Names of attributes known to hold no tensor and no graph, by their bytes."""
        self._scopes: dict[bytes, str] = {}

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
        if (
            parts.simple
            and stop - start <= REMEMBERED
            and self._damage.count == before
            and len(self.simple) < self.KEPT
        ):
            self.simple[window.bytes(start, stop)] = parts.name
        return parts

    def read(self, start: int, stop: int) -> NodeParts:
        """Take a node apart; reads from disk."""
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
                parts.scope = self.scope(window.bytes(a, b), parts.scope)
        return parts

    def scope(self, entry: bytes, so_far: str) -> str:
        """The module path after one more metadata entry, as PyTorch's exporter writes them."""
        if entry.startswith(_NAME_SCOPES):
            take = _from_name_scopes
        elif entry.startswith(_NAMESPACE) and not so_far:
            take = _from_namespace
        else:
            return so_far
        scope = self._scopes.get(entry)
        if scope is None:
            scope = take(_value(entry[2 + entry[1] :]))
            if len(self._scopes) < self.KEPT:
                self._scopes[entry] = scope
        return scope or so_far


def _value(rest: bytes) -> str:
    """The value of a metadata entry after its key, where it is the next and last field."""
    if rest[:1] != b"\x12":
        return ""
    p = 2
    while p <= len(rest) and rest[p - 1] >= 0x80:
        p += 1
    return rest[p:].decode("utf-8", "backslashreplace")


_NO_MODULE: Final = "_empty_nn_module_stack"


def _from_name_scopes(text: str) -> str:
    """``['', 'encoder', 'encoder.layer.0', 'add_3']`` names the node last, its module before."""
    try:
        names = ast.literal_eval(text) if len(text) <= 16 * KIB else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):  # pyright: ignore[reportUnknownVariableType]
        return ""
    # torch.export names operators that belong to no module ``_empty_nn_module_stack_from_metadata_hook``.
    modules = [n for n in names[:-1] if isinstance(n, str) and n and not n.startswith(_NO_MODULE)]  # pyright: ignore[reportUnknownVariableType]
    return modules[-1] if modules else ""


def _from_namespace(text: str) -> str:
    """``: Model/encoder: torch.nn.Linear/linear_1: aten.linear`` names the node last as well."""
    parts = [part.split(":", 1)[0].strip() for part in text[: 16 * KIB].split("/")]
    modules = [part for part in parts[:-1] if part]
    return modules[-1] if modules else ""


def _key(name: bytes) -> bytes:
    return b"\x0a" + bytes([len(name)]) + name


_NAME_SCOPES: Final = _key(b"pkg.torch.onnx.name_scopes")
_NAMESPACE: Final = _key(b"namespace")
