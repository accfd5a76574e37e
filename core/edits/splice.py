"""Serializing a message whose long payloads are elsewhere: they are spliced in, never copied."""

from __future__ import annotations

import bisect
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import onnx

from core.edits.pieces import Piece, size_of
from core.errors import BrokenFile
from core.formats._protobuf import BYTES, FIXED32, FIXED64, VARINT, varint

_NUMBER: Final = 12
"""Digits of a payload's number behind the token that stands for it."""

ALIGNMENT: Final = 4096
"""Payloads in a data file begin at whole pages, so that a runtime can map them."""

_OTHERS: Final = ("float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data")


def pieces_of(proto: onnx.ModelProto, payload: Callable[[onnx.TensorProto], Piece | None]) -> list[Piece]:
    """The serialized message with the payload of every external tensor embedded as ``raw_data``.

    Args:
        payload: where the elements of a tensor are, ``None`` where the message holds them itself.
    """
    token = secrets.token_hex(16).encode()
    whole = onnx.ModelProto()
    whole.CopyFrom(proto)
    found: list[Piece] = []
    for tensor in all_tensors(whole):
        piece = payload(tensor)
        if piece is None:
            continue
        for field in (*_OTHERS, "external_data", "data_location"):
            tensor.ClearField(field)
        tensor.raw_data = token + str(len(found)).zfill(_NUMBER).encode()
        found.append(piece)
    data = whole.SerializeToString(deterministic=True)
    if not found:
        return [data]
    marks = [match.start() for match in re.finditer(re.escape(token), data)]
    pieces = list(_Splice(data, marks, len(token) + _NUMBER, found).message(0, len(data)))
    return _joined(pieces)


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload and where it begins in the data file."""

    piece: Piece
    offset: int


def external_pieces(
    proto: onnx.ModelProto, payload: Callable[[onnx.TensorProto], Piece | None], location: str
) -> tuple[list[Piece], list[Payload]]:
    """The serialized message whose payloads lie in the file ``location``, and those payloads."""
    whole = onnx.ModelProto()
    whole.CopyFrom(proto)
    placed, end = list[Payload](), 0
    for tensor in all_tensors(whole):
        piece = payload(tensor)
        if piece is None:
            continue
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        end = offset + size_of(piece)
        placed.append(Payload(piece, offset))
        for field in (*_OTHERS, "external_data", "raw_data"):
            tensor.ClearField(field)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", str(offset)), ("length", str(size_of(piece)))):
            tensor.external_data.add(key=key, value=value)
    return [whole.SerializeToString(deterministic=True)], placed


def all_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a model, those of subgraphs, functions and attributes with them."""
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [proto.graph, *proto.functions]
    for training in proto.training_info:
        pending += [training.initialization, training.algorithm]
    while pending:
        graph = pending.pop()
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield sparse.values
                yield sparse.indices
        attributes = [a for node in graph.node for a in node.attribute]
        if isinstance(graph, onnx.FunctionProto):
            attributes += graph.attribute_proto
        for attribute in attributes:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("sparse_tensor"):
                yield attribute.sparse_tensor.values
                yield attribute.sparse_tensor.indices
            if attribute.HasField("g"):
                pending.append(attribute.g)
            pending.extend(attribute.graphs)


class _Splice:
    """Rewrites the lengths of every message that holds a mark, from the inside out."""

    def __init__(self, data: bytes, marks: list[int], length: int, found: list[Piece]) -> None:
        self._data, self._marks, self._length, self._found = data, marks, length, found

    def message(self, start: int, stop: int) -> Iterator[Piece]:
        """The message again, with payloads in place of the marks."""
        at = copied = start
        while at < stop:
            tag, first = varint(self._data, at, 5)
            wire = tag & 7
            if wire != BYTES:
                at = self._after(first, wire)
                continue
            size, first = varint(self._data, first, 10)
            last = first + size
            if self._marked(first, last):
                yield self._data[copied:at]
                inner = [self._payload(first)] if self._is_mark(first, last) else list(self.message(first, last))
                yield _varint(tag) + _varint(sum(size_of(piece) for piece in inner))
                yield from inner
                copied = last
            at = last
        yield self._data[copied:stop]

    def _after(self, at: int, wire: int) -> int:
        if wire == VARINT:
            return varint(self._data, at, 10)[1]
        if wire in (FIXED32, FIXED64):
            return at + (4 if wire == FIXED32 else 8)
        raise BrokenFile("holds a group, which cannot be written again", byte=at)

    def _marked(self, start: int, stop: int) -> bool:
        place = bisect.bisect_left(self._marks, start)
        return place < len(self._marks) and self._marks[place] < stop

    def _is_mark(self, start: int, stop: int) -> bool:
        return stop - start == self._length and self._marks[bisect.bisect_left(self._marks, start)] == start

    def _payload(self, start: int) -> Piece:
        number = self._data[start + self._length - _NUMBER : start + self._length]
        return self._found[int(number)]


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Neighbouring bytes as one piece."""
    joined: list[Piece] = []
    run: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            run.append(piece)
            continue
        joined += [b"".join(run), piece]
        run = []
    return [*joined, b"".join(run)]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
