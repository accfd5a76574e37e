"""What an edit changes, in lines a person can read."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import onnx

from core.edits.onnx_document import GraphLike, OnnxDocument
from core.edits.pieces import size_of

MOST = 200
"""Lines of one kind that are listed."""

_SHOWN = 12
"""Entries of a list attribute that are written out."""


@dataclass(frozen=True, slots=True)
class Change:
    """One line that is there before or after only.

    Attributes:
        what: ``node``, ``tensor``, ``input``, ``output``, ``metadata`` or ``graph``.
        before, after: the line, empty where it is not there.
    """

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything that differs between two documents.

    Attributes:
        left_out: changes beyond the bound of a kind.
        bytes_before, bytes_after: of the written file with payloads inside.
    """

    items: tuple[Change, ...]
    left_out: int
    bytes_before: int
    bytes_after: int


def changes(before: OnnxDocument, after: OnnxDocument) -> Changes:
    """Compare two documents line by line; a line that changed is shown beside what it was."""
    items, left_out = list[Change](), 0
    for what, lines in _KINDS.items():
        old, new = list(lines(before)), list(lines(after))
        gone, come = list((Counter(old) - Counter(new)).elements()), list((Counter(new) - Counter(old)).elements())
        pairs = _pairs(gone, come)
        items += [Change(what, first, second) for first, second in pairs[:MOST]]
        left_out += max(0, len(pairs) - MOST)
    sizes = [sum(map(size_of, document.pieces())) for document in (before, after)]
    return Changes(tuple(items), left_out, sizes[0], sizes[1])


def node_line(node: onnx.NodeProto) -> str:
    """A node on one line: name, operator, what it takes and makes, its attributes."""
    attributes = ", ".join(f"{item.name}={_attribute(item)}" for item in node.attribute)
    title = f"{node.name}: " if node.name else ""
    domain = f"{node.domain}." if node.domain else ""
    makes = ", ".join(node.output)
    return f"{title}{makes} = {domain}{node.op_type}({', '.join(node.input)})" + (
        f" {{{attributes}}}" if attributes else ""
    )


def type_text(kind: onnx.TypeProto) -> str:
    """A tensor type as ``float32[batch, 3]``."""
    if not kind.HasField("tensor_type"):
        return kind.WhichOneof("value") or "type unknown"
    name = onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()
    if not kind.tensor_type.HasField("shape"):
        return name
    dims = [
        dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?")
        for dim in kind.tensor_type.shape.dim
    ]
    return f"{name}[{', '.join(dims)}]"


def _pairs(gone: Sequence[str], come: Sequence[str]) -> list[tuple[str, str]]:
    """Lines that went beside lines that came where they begin alike, then the others."""
    waiting: dict[str, list[str]] = {}
    for line in come:
        waiting.setdefault(_key(line), []).append(line)
    pairs = list[tuple[str, str]]()
    for line in gone:
        same = waiting.get(_key(line))
        pairs.append((line, same.pop(0) if same else ""))
    left = Counter(line for lines in waiting.values() for line in lines)
    rest = list[str]()
    for line in come:
        if left[line] > 0:
            left[line] -= 1
            rest.append(line)
    for place, (first, second) in enumerate(pairs):
        if not second and rest and len(gone) == len(come):
            pairs[place] = (first, rest.pop(0))
    return pairs + [("", line) for line in rest]


def _key(line: str) -> str:
    return line.partition(" = ")[0].rpartition(": ")[2].partition(" ")[0]


def _nodes(document: OnnxDocument) -> Iterator[str]:
    for graph in document.graphs():
        yield from (node_line(node) for node in graph.node)


def _tensors(document: OnnxDocument) -> Iterator[str]:
    for graph in document.graphs():
        if isinstance(graph, onnx.GraphProto):
            yield from (_tensor(document, tensor) for tensor in graph.initializer)


def _tensor(document: OnnxDocument, tensor: onnx.TensorProto) -> str:
    name = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
    piece = document.payload(tensor)
    nbytes = size_of(piece) if piece is not None else len(tensor.raw_data)
    mark = "" if piece is not None else f", checksum {zlib.crc32(tensor.SerializeToString()):08x}"
    return f"{tensor.name} {name}{list(tensor.dims)} {nbytes} bytes{mark}"


def _inputs(document: OnnxDocument) -> Iterator[str]:
    return (f"{item.name} {type_text(item.type)}" for item in document.proto.graph.input)


def _outputs(document: OnnxDocument) -> Iterator[str]:
    return (f"{item.name} {type_text(item.type)}" for item in document.proto.graph.output)


def _texts(document: OnnxDocument) -> Iterator[str]:
    yield from (f"{item.key} = {item.value[:300]}" for item in document.proto.metadata_props)
    if document.proto.doc_string:
        yield f"doc = {document.proto.doc_string[:300]}"


def _graphs(document: OnnxDocument) -> Iterator[str]:
    return (_graph(graph) for graph in document.graphs())


def _graph(graph: GraphLike) -> str:
    return f"{graph.name} "


def _attribute(item: onnx.AttributeProto) -> str:
    kind = onnx.AttributeProto
    if item.type == kind.TENSOR:
        return f"{onnx.TensorProto.DataType.Name(item.t.data_type).lower()}{list(item.t.dims)}"
    if item.type in (kind.GRAPH, kind.GRAPHS):
        return "graph"
    value: Any = onnx.helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", "replace")[:80])
    if isinstance(value, list | tuple):
        listed = cast("list[Any]", value)
        shown = ", ".join(str(entry)[:40] for entry in listed[:_SHOWN])
        return f"[{shown}{', …' if len(listed) > _SHOWN else ''}]"
    return str(value)[:80]


_KINDS = {
    "input": _inputs,
    "output": _outputs,
    "node": _nodes,
    "tensor": _tensors,
    "metadata": _texts,
    "graph": _graphs,
}
