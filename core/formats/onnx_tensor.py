"""``TensorProto`` and ``SparseTensorProto``: where a stored tensor's bytes are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from core.dtypes import dtype_of
from core.formats._protobuf import BYTES, FIXED32, FIXED64, VARINT, Damage, Window, fields, signed, signed32, varints
from core.formats.onnx_external import ExternalFiles
from core.formats.onnx_types import ELEMENT_TYPES, Span
from core.ir import ByteRange, Tensor, TensorRole
from core.limits import ELEMENTS, KIB, MIB, NAME_BYTES, RANK

TYPED_FIELDS: Final[dict[str, int]] = {
    "float32": 4, "complex64": 4, "string": 6, "int64": 7, "float64": 10, "complex128": 10, "uint32": 11, "uint64": 11,
}  # fmt: skip
"""Field that holds a type's elements where they are not in ``raw_data``; all others in int32_data."""

INT32_DATA: Final = 5
_PLAIN: Final = {4: 4, 10: 8}
"""Typed fields whose packed form is the elements themselves, with their width."""

MERGED_BYTES: Final = MIB


@dataclass(slots=True)
class Parts:
    """The fields of one TensorProto as met.

    Attributes:
        raw: payload of the last ``raw_data``.
        typed: by field number, how many chunks there are and the last one.
    """

    dims: list[int] = field(default_factory=list[int])
    dtype: int = 0
    name: str = ""
    raw: Span | None = None
    typed: dict[int, tuple[int, Span]] = field(default_factory=dict[int, tuple[int, Span]])
    external: dict[str, str] = field(default_factory=dict[str, str])
    located_outside: bool = False
    segmented: bool = False


class TensorReader:
    """Turns tensor messages of a file into ``Tensor``; payloads stay on disk."""

    def __init__(self, window: Window, damage: Damage, external: ExternalFiles) -> None:
        self._window, self._damage, self._external = window, damage, external

    def read(self, spans: list[Span], *, role: TensorRole, graph: int, name: str = "") -> Tensor:
        """The tensor in these spans of one ``TensorProto``; reads its metadata from disk.

        Args:
            name: used where the message has none.
        """
        parts, before = self._parts(spans), self._damage.count
        dtype = ELEMENT_TYPES.get(parts.dtype, "opaque")
        shape, problem = self._shape(parts.dims)
        data: ByteRange | bytes | None = None
        encoding = "plain"
        if dtype == "opaque":
            problem = problem or f"its element type {parts.dtype} is not one of ONNX"
        elif parts.segmented:
            problem = "it is stored in segments, which ONNX runtimes do not read either"
        elif parts.located_outside:
            place = self._external.place(parts.external)
            data, problem = place.data, problem or place.problem
        elif parts.raw is not None:
            data = ByteRange(0, *parts.raw)
            if dtype == "string":
                problem = "strings cannot be raw data"
        else:
            data, encoding = self._typed(spans, parts, dtype, shape)
        problem = problem or _size_problem(data, encoding, dtype, shape)
        if self._damage.count > before:
            problem = problem or "the file is damaged here"
        return Tensor(
            parts.name or name, dtype, shape, data, encoding, role=role, graph=graph, problem=problem
        )  # fmt: skip

    def sparse(self, spans: list[Span], *, role: TensorRole, graph: int, name: str = "") -> Tensor:
        """The tensor in these spans of one ``SparseTensorProto``; reads its metadata from disk."""
        parts = sparse_parts(self._window, self._damage, spans)
        values = self.read(parts.values, role=role, graph=graph) if parts.values else None
        shape, problem = self._shape(parts.dims)
        data: ByteRange | bytes | None = ByteRange(0, *spans[0])
        if len(spans) > 1:
            data = self._merged(spans)
        if values is None:
            problem = problem or "it has no values"
        elif values.problem:
            problem = problem or f"its values: {values.problem}"
        dtype = values.dtype if values else "opaque"
        named = values.name if values else ""
        return Tensor(named or name, dtype, shape, data, "sparse", role=role, graph=graph, problem=problem)

    def _parts(self, spans: list[Span]) -> Parts:
        parts, window = Parts(), self._window
        for start, stop in spans:
            for number, wire, a, b in fields(window, start, stop, "TensorProto", self._damage):
                if number == 1:
                    self._dims(parts, wire, a, b)
                elif number == 2 and wire == VARINT:
                    parts.dtype = signed32(a)
                elif number == 9 and wire == BYTES:
                    parts.raw = (a, b)
                elif number == 8 and wire == BYTES:
                    parts.name = window.text(a, min(b, a + NAME_BYTES))
                elif number in (4, 5, 6, 7, 10, 11):
                    self._chunk(parts, number, wire, a, b)
                elif number == 13 and wire == BYTES:
                    key, value = string_pair(window, a, b, self._damage)
                    if len(parts.external) < 32:
                        parts.external[key] = value
                elif number == 14 and wire == VARINT:
                    if signed32(a) in (0, 1):
                        parts.located_outside = signed32(a) == 1
                elif number == 3 and wire == BYTES:
                    parts.segmented = True
        return parts

    def _chunk(self, parts: Parts, number: int, wire: int, a: int, b: int) -> None:
        scalar = FIXED32 if number == 4 else FIXED64 if number == 10 else VARINT
        if wire == BYTES:
            count = parts.typed[number][0] if number in parts.typed else 0
            parts.typed[number] = (count + 1, (a, b))
        elif wire == scalar and number != 6:  # unpacked: never one plain range
            parts.typed[number] = (2, (b, b))

    def _dims(self, parts: Parts, wire: int, a: int, b: int) -> None:
        if wire == VARINT:
            if len(parts.dims) <= RANK:
                parts.dims.append(signed(a))
        elif wire == BYTES:
            try:
                found = varints(self._window.bytes(a, min(b, a + 16 * KIB)))
            except ValueError as error:
                self._damage.add(str(error), a, "TensorProto field 1")
                return
            parts.dims.extend(found[: RANK + 1 - len(parts.dims)].astype("int64").tolist())

    def _shape(self, dims: list[int]) -> tuple[tuple[int, ...], str]:
        return checked_shape(dims)

    def _typed(
        self, spans: list[Span], parts: Parts, dtype: str, shape: tuple[int, ...]
    ) -> tuple[ByteRange | bytes | None, str]:
        number = TYPED_FIELDS.get(dtype, INT32_DATA)
        if number not in parts.typed:
            return (b"" if 0 in shape else None), "plain"
        chunks, span = parts.typed[number]
        if chunks == 1 and number in _PLAIN:
            return ByteRange(0, *span), "plain"
        if len(spans) == 1:
            return ByteRange(0, *spans[0]), "onnx.typed"
        return self._merged(spans), "onnx.typed"

    def _merged(self, spans: list[Span]) -> bytes | None:
        """One message written in several pieces, joined where small."""
        if sum(b - a for a, b in spans) > MERGED_BYTES:
            return None
        return b"".join(self._window.bytes(a, b) for a, b in spans)


@dataclass(slots=True)
class SparseParts:
    """Spans of the two tensors of a SparseTensorProto, and its dimensions."""

    values: list[Span] = field(default_factory=list[Span])
    indices: list[Span] = field(default_factory=list[Span])
    dims: list[int] = field(default_factory=list[int])


def sparse_parts(window: Window, damage: Damage, spans: list[Span]) -> SparseParts:
    """Take a SparseTensorProto apart; reads from disk."""
    parts = SparseParts()
    for start, stop in spans:
        for number, wire, a, b in fields(window, start, stop, "SparseTensorProto", damage):
            if number == 1 and wire == BYTES:
                parts.values.append((a, b))
            elif number == 2 and wire == BYTES:
                parts.indices.append((a, b))
            elif number == 3 and wire == VARINT and len(parts.dims) <= RANK:
                parts.dims.append(signed(a))
            elif number == 3 and wire == BYTES and len(parts.dims) <= RANK:
                found = varints(window.bytes(a, min(b, a + 16 * KIB)))
                parts.dims.extend(found[: RANK + 1 - len(parts.dims)].astype("int64").tolist())
    return parts


def string_pair(window: Window, start: int, stop: int, damage: Damage) -> tuple[str, str]:
    """A ``StringStringEntryProto``, both texts cut at 1 MiB; reads from disk."""
    key = value = ""
    for number, wire, a, b in fields(window, start, stop, "StringStringEntryProto", damage):
        if wire == BYTES and number in (1, 2):
            text = window.text(a, min(b, a + NAME_BYTES))
            if number == 1:
                key = text
            else:
                value = text
    return key, value


def checked_shape(dims: list[int]) -> tuple[tuple[int, ...], str]:
    """Dimensions that can be counted, and what is wrong with those of the file."""
    if len(dims) > RANK:
        return (0,) * RANK, f"it has more than {RANK} dimensions"
    if any(d < 0 for d in dims):
        return tuple(max(d, 0) for d in dims), f"its shape {dims} has a negative size"
    total = 1
    for size in dims:
        total *= size
    if total > ELEMENTS:
        return (0,) * len(dims), f"its shape {dims} claims {total} elements, allowed are {ELEMENTS}"
    return tuple(dims), ""


def _size_problem(data: ByteRange | bytes | None, encoding: str, dtype: str, shape: tuple[int, ...]) -> str:
    elements = 1
    for size in shape:
        elements *= size
    if data is None:
        return "" if elements == 0 else "it has no data"
    if encoding != "plain" or dtype == "string":
        return ""
    found = data.nbytes if isinstance(data, ByteRange) else len(data)
    needed = dtype_of(dtype).nbytes(elements)
    return "" if found == needed else f"it has {found} bytes of data, its shape {list(shape)} of {dtype} needs {needed}"
