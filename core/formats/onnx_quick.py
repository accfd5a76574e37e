"""The quick way through ordinary nodes, value infos and initializers that lie in the window.

One loop with local names instead of a call a field: files of 50,000 operators are opened with it.
Anything unusual is left to ``onnx_graph``, which reads every valid message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from core.dtypes import dtype_of
from core.formats._protobuf import Window
from core.formats.onnx_node import INLINE, NodeReader
from core.formats.onnx_types import ELEMENT_TYPES, TypeReader
from core.graph_builder import GraphBuilder
from core.ir import ByteRange, Tensor
from core.limits import ELEMENTS, KIB, RANK


class Fallback(Protocol):
    """What reads a message that is not ordinary, or not known yet."""

    def node(self, start: int, stop: int) -> None:
        """Read a node."""
        ...

    def value_info(self, number: int, start: int, stop: int) -> None:
        """Read a value info."""
        ...

    def add_initializer(self, tensor: Tensor) -> None:
        """Take an initializer that was read."""
        ...

    def check_count(self) -> None:
        """Check how many nodes there are by now."""
        ...


@dataclass(slots=True)
class Quick:
    """Reads runs of ordinary fields of one graph.

    Attributes:
        tags: tag bytes of the graph's nodes, value infos and initializers (0: has none).
        declared: values that have a type in the file.
    """

    window: Window
    tags: tuple[int, int, int]
    nodes: NodeReader
    types: TypeReader
    builder: GraphBuilder
    declared: set[int]
    fallback: Fallback

    def run(self, at: int, stop: int) -> int:
        """Read fields from ``at`` on; returns the place of the first one that is left to others."""
        window, fallback = self.window, self.fallback
        while at < stop:
            fallback.check_count()
            window.load(at, min(at + 8, stop))
            base, top = window.base, window.top
            after = self._in_window(window.data, base, at - base, min(stop, top) - base, stop - base)
            if after >= 0:
                at = base + after
                continue
            at = base - 1 - after
            if at >= top:  # the window ends between two messages
                continue
            last = _end(window.data, at - base, base)
            whole = last <= top  # it is there as a whole, and left to others
            if whole or window.data[at - base] not in self.tags or not at < last <= min(stop, at + INLINE):
                return at
            window.load(at, last)
        return at

    def _in_window(self, data: bytes, base: int, p: int, end: int, stop: int) -> int:
        """Read whole messages of ``data[p:end]``; returns where it stopped, or -1 minus that place
        where the next one is not whole in the window or is left to others."""
        node_tag, info_tag, tensor_tag = self.tags
        while p + 4 <= end:
            tag, length = data[p], data[p + 1]
            first = p + 2
            if length >= 0x80:
                length = (length & 0x7F) | (data[first] & 0x7F) << 7
                first += 1
                if data[first - 1] >= 0x80:
                    length, first = _longer(data, first, end, length)
                    if first < 0:
                        break
            last = first + length
            if tag == tensor_tag and tag:
                if last > end and last <= stop:
                    self.window.expect(base + last)
                tensor = _tensor(data, base, first, last, end, self.builder.index) if last <= stop else None
                if tensor is None:
                    break
                self.fallback.add_initializer(tensor)
                if last > end:
                    return last
            elif last > end:
                break
            elif tag == node_tag:
                if not _node(data, base, first, last, self.nodes, self.builder):
                    self.fallback.node(base + first, base + last)
                    return last
            elif tag == info_tag:
                if not _value_info(data, first, last, self.types, self.builder, self.declared):
                    self.fallback.value_info(13, base + first, base + last)
                    return last
            else:
                break
            p = last
        return p if p == stop else -1 - p


def _longer(data: bytes, p: int, end: int, length: int) -> tuple[int, int]:
    """The rest of a length of three to five bytes, and where it ends (-1 where that is not to be seen)."""
    for shift in (14, 21, 28):
        if p >= end:
            break
        length |= (data[p] & 0x7F) << shift
        p += 1
        if data[p - 1] < 0x80:
            return length, p
    return 0, -1


def _end(data: bytes, p: int, base: int) -> int:
    """Where the message whose tag is at ``data[p]`` ends in the file, -1 if that is not to be seen."""
    length = shift = 0
    for byte in data[p + 1 : p + 5]:
        p += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return base + p + 1 + length
    return -1


def _node(data: bytes, base: int, p: int, end: int, nodes: NodeReader, builder: GraphBuilder) -> bool:
    """Add the node in ``data[p:end]``; false where ``onnx_graph`` has to read it."""
    ids, names, value, simple = builder.value_ids, builder.value_names, builder.value, nodes.simple
    inputs, outputs = list[int](), list[int]()
    attributes = list[tuple[str, int, int, int]]()
    name = op_type = domain = scope = ""
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
                    if more >= 0x80:
                        return False
                    length |= more << 14
            q = p + length
            if q > end:
                return False
            if tag == 0x0A:
                text = data[p:q].decode()
                found = ids.get(text)
                inputs.append(found if found is not None and text else value(text) if text else -1)
            elif tag == 0x12:
                text = data[p:q].decode()
                found = ids.get(text)
                if found is None and text:
                    found = ids[text] = len(names)
                    names.append(text)
                outputs.append(found if found is not None and text else -1)
            elif tag == 0x2A:
                known = simple.get(data[p:q])
                if known is None:
                    return False
                attributes.append((known, 0, base + p, base + q))
            elif tag == 0x22:
                op_type = data[p:q].decode()
            elif tag == 0x1A:
                name = data[p:q].decode()
            elif tag == 0x4A:
                scope = nodes.scope(data[p:q], scope)
            elif tag == 0x3A:
                domain = data[p:q].decode()
            elif tag != 0x32:  # doc_string
                return False
            p = q
    except (IndexError, UnicodeDecodeError):
        return False
    if p != end or op_type == "Constant":
        return False
    builder.encoded_node(op_type, name, inputs, outputs, domain, scope, attributes)
    return True


def _value_info(data: bytes, p: int, end: int, types: TypeReader, builder: GraphBuilder, declared: set[int]) -> bool:
    """Declare the value in ``data[p:end]``; false where ``onnx_graph`` has to read it."""
    name, info = "", None
    try:
        while p < end:
            tag, length = data[p], data[p + 1]
            p += 2
            if length >= 0x80:
                more = data[p]
                p += 1
                if more >= 0x80:
                    return False
                length = (length & 0x7F) | more << 7
            q = p + length
            if tag == 0x0A:
                name = data[p:q].decode()
            elif tag == 0x12 and info is None:
                info = types.known.get(data[p:q])
                if info is None:
                    return False
            else:
                return False
            p = q
    except (IndexError, UnicodeDecodeError):
        return False
    if p != end or info is None or info.text:
        return False
    value = builder.value(name)
    declared.add(value)
    builder.set_type(value, info.dtype, info.shape)
    return True


def _tensor(data: bytes, base: int, p: int, last: int, end: int, graph: int) -> Tensor | None:
    """The initializer that begins at ``data[p]`` and ends at ``last``, which may lie beyond the window;
    ``None`` where it is not dims, data_type, a name and at its end raw_data of the right size."""
    dims, code, name, elements = list[int](), 0, "", 1
    try:
        while p < last:
            if p + 16 > end and p + 16 <= last:
                return None
            tag, value = data[p], data[p + 1]
            p += 2
            shift = 7
            if value >= 0x80:
                value &= 0x7F
                while True:
                    more = data[p]
                    p += 1
                    value |= (more & 0x7F) << shift
                    shift += 7
                    if more < 0x80:
                        break
                    if shift > 35:
                        return None
            if tag == 0x08:
                dims.append(value)
                elements *= value
            elif tag == 0x10:
                code = value
            elif tag == 0x42 and p + value <= end and value < KIB:
                name = data[p : p + value].decode()
                p += value
            elif tag == 0x4A and p + value == last and p <= end:
                dtype = ELEMENT_TYPES.get(code, "opaque")
                if len(dims) > RANK or elements > ELEMENTS or dtype in ("opaque", "string"):
                    return None
                if dtype_of(dtype).nbytes(elements) != value:
                    return None
                where = ByteRange(0, base + p, base + last)
                return Tensor(name, dtype, tuple(dims), where, role="initializer", graph=graph)
            else:
                return None
    except (IndexError, UnicodeDecodeError):
        return None
    return None
