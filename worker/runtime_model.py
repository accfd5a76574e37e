"""The model as the runtime gets it: nodes named by their ids, weights left where they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import onnx
from google.protobuf.message import DecodeError

from core.errors import BrokenFile, Unavailable
from core.formats.onnx_skeleton import skeleton
from core.ir import Model
from worker.scope import STANDARD, Scope, constant_tensor

RANDOM: Final = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
)
"""Operators of the standard set that draw random numbers; ``Dropout`` only while training."""

_SEED: Final = 1_000_003
_ITSELF: Final = "\0"
"""Stands for the opened file in external data; no location of a file can be written like that."""

_NOWHERE: Final = "data-file-that-was-not-found"


class RuntimeModel(Scope):
    """The main graph of an ONNX model, and what holds for all its graphs.

    Attributes:
        folder: where the runtime finds external data.
        proto: the whole model without payloads.
        seeded: ids of nodes whose random numbers were given a seed here.
    """

    def __init__(self, model: Model) -> None:
        self.folder, self._names = _locations(model)
        try:
            self.proto = onnx.ModelProto.FromString(skeleton(model.sources[0], _ITSELF))
        except DecodeError as error:
            raise BrokenFile(f"cannot be run: {error}", path=model.path) from None
        graph = self.proto.graph
        if graph.sparse_initializer and len(graph.node) == 0:
            raise Unavailable("has no operators to run", path=model.path)
        self.seeded: list[str] = []
        self._opened = model
        self._prepare(graph, 0)
        functions = {(g.domain, g.name): g.index for g in model.graphs if g.kind == "function"}
        for function in self.proto.functions:
            self._prepare_nodes(function.node, functions.get((function.domain, function.name), -1))
        self.become(self.proto)

    def become(self, proto: onnx.ModelProto) -> None:
        """Run this instead, whose nodes bear the ids of those they stand for."""
        self.proto = proto
        frame = onnx.ModelProto(ir_version=proto.ir_version)
        frame.opset_import.extend(proto.opset_import)
        frame.functions.extend(proto.functions)
        super().__init__(self._opened, frame, proto.graph, 0)

    def whole(self) -> onnx.ModelProto:
        """The model as it is, with its own outputs."""
        return self.proto

    def _prepare(self, graph: onnx.GraphProto, index: int) -> None:
        """Name every node by its id, down through the subgraphs, and find all data files."""
        for tensor in graph.initializer:
            self._relocate(tensor)
        self._prepare_nodes(graph.node, index)
        if index != 0:  # the runtime takes no external data in Constant nodes
            moved = {place: t for place, node in enumerate(graph.node) if (t := constant_tensor(node)) is not None}
            graph.initializer.extend(tensor for tensor in moved.values() if tensor.data_location)
            for place in sorted((p for p, t in moved.items() if t.data_location), reverse=True):
                del graph.node[place]

    def _prepare_nodes(self, nodes: Iterable[onnx.NodeProto], index: int) -> None:
        known: Mapping[int, tuple[int, ...]] = {}
        if 0 <= index < len(self._opened.graphs):
            known = self._opened.graphs[index].subgraphs
        for place, node in enumerate(nodes):
            if index >= 0:
                node.name = f"g{index}.n{place}"
            self._prepare_attributes(node, known.get(place, ()))
            if node.op_type in RANDOM and node.domain in STANDARD:
                self._seed(index, place, node)

    def _prepare_attributes(self, node: onnx.NodeProto, subgraphs: Sequence[int]) -> None:
        graphs: list[onnx.GraphProto] = []
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                graphs.append(attribute.g)
            graphs.extend(attribute.graphs)
            if attribute.HasField("t"):
                self._relocate(attribute.t)
            for tensor in attribute.tensors:
                self._relocate(tensor)
        known = subgraphs if len(subgraphs) == len(graphs) else [-1] * len(graphs)
        for graph, index in zip(graphs, known, strict=True):
            self._prepare(graph, index)

    def _seed(self, graph: int, place: int, node: onnx.NodeProto) -> None:
        if any(attribute.name == "seed" for attribute in node.attribute):
            return
        seed = _SEED + 7919 * max(graph, 0) + place
        if node.op_type == "Dropout":
            if len(node.input) < 3 or not node.input[2]:  # no training_mode: it drops nothing
                return
            node.attribute.append(onnx.helper.make_attribute("seed", seed))
        else:
            node.attribute.append(onnx.helper.make_attribute("seed", float(seed)))
        self.seeded.append(node.name)

    def _relocate(self, tensor: onnx.TensorProto) -> None:
        """Point external data at a file of the model below ``folder``, or at nothing."""
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            return
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = self._found(entry.value)

    def _found(self, location: str) -> str:
        if location == _ITSELF:
            return self._names[self._opened.sources[0].path]
        path = os.path.realpath(os.path.join(os.path.dirname(self._opened.path), location.replace("\\", "/")))
        names = {os.path.realpath(source): name for source, name in self._names.items()}
        return names.get(path, _NOWHERE)


def _locations(model: Model) -> tuple[str, dict[str, str]]:
    """A folder that holds every file of the model, and their names within it by path.

    Symbolic links are followed first: the runtime refuses those that lead out of the folder.
    """
    paths = {source.path: os.path.realpath(source.path) for source in model.sources}
    folder = os.path.commonpath([os.path.dirname(path) for path in paths.values()])
    return folder, {given: os.path.relpath(path, folder).replace(os.sep, "/") for given, path in paths.items()}
