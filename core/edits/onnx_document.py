"""An ONNX model being edited: its messages without payloads, and where each payload is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from core.edits.pieces import Made, Piece, Span, Spliced
from core.edits.splice import pieces_of
from core.errors import BrokenFile, NotFound, Unavailable, UsageError
from core.formats.head import Head
from core.formats.onnx_skeleton import skeleton
from core.ir import Model
from core.limits import KIB, MIB, check
from core.source import Source

_ITSELF: Final = "\0"
"""Stands for the opened file in external data; no location of a file can be written like that."""

_MADE: Final = "\0made"
VALUES_BYTES: Final = 256 * MIB
"""Bytes of one tensor that an edit may hold in memory."""

GraphLike = onnx.GraphProto | onnx.FunctionProto


@dataclass(frozen=True)
class OnnxDocument:
    """One state of an edited ONNX model. An edit makes another; none is changed.

    Attributes:
        source: the model as opened.
        proto: every message of it; large payloads are external data that ``payload`` resolves.
        made: payloads that edits compute, by number.
    """

    source: Model
    proto: onnx.ModelProto
    made: Mapping[int, Made]

    @staticmethod
    def of(model: Model) -> OnnxDocument:
        """Begin to edit a model; reads its messages from disk.

        Raises:
            Unavailable: if it is no ONNX model.
            BrokenFile: if it is damaged: what is written again must be what was there.
        """
        if model.format != "onnx":
            raise Unavailable(f"the graph of a {model.kind} cannot be edited; an ONNX model is needed", path=model.path)
        try:
            proto = onnx.ModelProto.FromString(skeleton(model.sources[0], _ITSELF, training=True))
        except DecodeError as error:
            raise BrokenFile(f"cannot be edited: {error}", path=model.path) from None
        return OnnxDocument(model, proto, {})

    def copy(self) -> OnnxDocument:
        """The same state with messages of its own, for an edit to change."""
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        return OnnxDocument(self.source, proto, dict(self.made))

    def with_payload(self, made: Made) -> tuple[OnnxDocument, list[tuple[str, str]]]:
        """The state with one more computed payload, and the external data entries that name it."""
        number = len(self.made)
        entries = [("location", _MADE), ("offset", str(number)), ("length", str(made.nbytes))]
        return replace(self, made={**self.made, number: made}), entries

    # --- graphs and nodes ----------------------------------------------------------------

    def graphs(self) -> list[GraphLike]:
        """Graphs numbered as the reader numbers them: main, its subgraphs breadth first, functions likewise."""
        found: list[GraphLike] = []
        for root in (self.proto.graph, *self.proto.functions):
            level: list[GraphLike] = [root]
            while level:
                found += level
                level = [inner for graph in level for node in graph.node for inner in subgraphs(node)]
        return found

    def graph(self, index: int) -> GraphLike:
        """The graph numbered ``index``.

        Raises:
            NotFound: if there is none.
        """
        graphs = self.graphs()
        if not 0 <= index < len(graphs):
            raise NotFound(f"there is no graph {index}", path=self.source.path)
        return graphs[index]

    def main_graph(self, index: int, what: str) -> onnx.GraphProto:
        """The graph numbered ``index`` where ``what`` needs a graph with types of its own.

        Raises:
            Unavailable: if it is the body of a function.
        """
        graph = self.graph(index)
        if isinstance(graph, onnx.FunctionProto):
            raise Unavailable(f"{what} needs a graph; function {graph.name!r} declares no types", path=self.source.path)
        return graph

    def node(self, given: str) -> tuple[GraphLike, int]:
        """A node by its name or its id such as ``g0.n12``: its graph and its place there.

        Raises:
            NotFound: if there is none. UsageError: if several bear the name.
        """
        graphs = self.graphs()
        named = [(graph, i) for graph in graphs for i, node in enumerate(graph.node) if given and node.name == given]
        if len(named) == 1:
            return named[0]
        if named:
            raise UsageError(
                f"{len(named)} nodes are named {given[:200]!r}",
                path=self.source.path,
                hint="Say it by its id, such as g0.n3.",
            )
        graph, _, place = given.removeprefix("g").partition(".n")
        if given.startswith("g") and graph.isdecimal() and place.isdecimal() and int(graph) < len(graphs):
            found = graphs[int(graph)]
            if int(place) < len(found.node):
                return found, int(place)
        raise NotFound(f"there is no node {given[:200]!r}", path=self.source.path)

    # --- payloads ------------------------------------------------------------------------

    def payload(self, tensor: onnx.TensorProto) -> Piece | None:
        """Where the elements of a tensor are; ``None`` where its message holds them.

        Raises:
            NotFound: if its data file was not found.
        """
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            return None
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location, start = entries.get("location", ""), int(entries.get("offset") or 0)
        if location == _MADE:
            return self.made[start]
        source = self.source.sources[0] if location == _ITSELF else self._data_file(location, tensor.name)
        length = int(entries["length"]) if entries.get("length") else source.size - start
        if start < 0 or length < 0 or start + length > source.size:
            raise BrokenFile(
                "leaves its data file", path=self.source.path, field=f"tensor {tensor.name[:200]!r}",
                expected=f"bytes within {source.size}", found=f"{start} to {start + length}",
            )  # fmt: skip
        return Span(source, start, start + length)

    def values(self, tensor: onnx.TensorProto) -> NDArray[np.generic]:
        """The elements of a tensor as numpy (and ml_dtypes) has them; reads from disk.

        Raises:
            LimitExceeded: beyond ``VALUES_BYTES``.
        """
        whole = onnx.TensorProto()
        whole.CopyFrom(tensor)
        piece = self.payload(tensor)
        if piece is not None:
            nbytes = len(piece) if isinstance(piece, bytes) else piece.nbytes
            check("the bytes of a tensor to edit", nbytes, VALUES_BYTES, path=self.source.path)
            whole.ClearField("external_data")
            whole.ClearField("data_location")
            step = 32 * MIB
            parts = [_part(piece, at, min(at + step, nbytes)) for at in range(0, nbytes, step)]
            for field in ("float_data", "double_data", "int32_data", "int64_data", "uint64_data"):
                whole.ClearField(field)
            whole.raw_data = b"".join(parts)
        return onnx.numpy_helper.to_array(whole)

    def pieces(self) -> list[Piece]:
        """The edited file with every payload embedded; copies none."""
        return pieces_of(self.proto, self.payload)

    def opened(self, mark: str) -> Model:
        """The edited model as a reader sees it, before it is written.

        Args:
            mark: what tells this content from others, such as a revision's id.
        """
        from core.formats import onnx as reader

        origin = self.source.sources[0]
        path = f"{origin.path} (edited {mark[:8]})"
        spliced = Spliced(self.pieces(), path, f"{origin.name} (edited {mark[:8]})", mark)
        return reader.read(Head(path, spliced, spliced.read(0, min(spliced.size, 64 * KIB)), ()))

    def _data_file(self, location: str, name: str) -> Source:
        wanted = location.replace("\\", "/")
        for source in self.source.sources[1:]:
            if source.name.replace("\\", "/") == wanted:
                return source
        raise NotFound(f"tensor {name[:200]!r} names a data file that was not found", path=self.source.path)


def _part(piece: Piece, start: int, stop: int) -> bytes:
    return piece[start:stop] if isinstance(piece, bytes) else piece.read(start, stop)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Graphs that a node holds, in the order of its attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def tensors_of(graph: GraphLike) -> Iterator[onnx.TensorProto]:
    """Tensors that a graph stores itself: initializers and those in attributes of its nodes."""
    if isinstance(graph, onnx.GraphProto):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield sparse.values
            yield sparse.indices
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
