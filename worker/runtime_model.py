"""The model as the runtime gets it: nodes named by their ids, weights left where they are, and parts of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import onnx
from google.protobuf.message import DecodeError

from core.errors import BrokenFile, Unavailable
from core.formats.onnx_skeleton import skeleton
from core.ir import Model

RANDOM: Final = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
)
"""Operators of the standard set that draw random numbers; ``Dropout`` only while training."""

_STANDARD: Final = ("", "ai.onnx")
_SEED: Final = 1_000_003
_ITSELF: Final = "\0"
"""Stands for the opened file in external data; no location of a file can be written like that."""

_NOWHERE: Final = "data-file-that-was-not-found"


class RuntimeModel:
    """An ONNX model made ready to be run in parts.

    Attributes:
        folder: where the runtime finds external data.
        proto: the whole model without payloads.
        order: nodes of the main graph that are run (constants are not), each after its producers.
        seeded: ids of nodes whose random numbers were given a seed here.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.folder, self._names = _locations(model)
        try:
            self.proto = onnx.ModelProto.FromString(skeleton(model.sources[0], _ITSELF))
        except DecodeError as error:
            raise BrokenFile(f"cannot be run: {error}", path=model.path) from None
        graph = self.proto.graph
        if graph.sparse_initializer and len(graph.node) == 0:
            raise Unavailable("has no operators to run", path=model.path)
        self.seeded: list[str] = []
        self._prepare(graph, 0)
        for function in self.proto.functions:
            for node in function.node:
                self._prepare_attributes(node, ())
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self.constant_nodes: dict[str, int] = {}
        runs: list[int] = []
        for index, node in enumerate(graph.node):
            tensor = _constant_tensor(node)
            if tensor is not None:
                self.constants[node.output[0]] = tensor
            elif _is_constant(node):
                self.constant_nodes.update((name, index) for name in node.output)
            else:
                runs.append(index)
        self.order = tuple(self._sorted(runs))

    @property
    def inputs(self) -> list[str]:
        """Inputs that must be given."""
        return [item.name for item in self.proto.graph.input if item.name not in self.constants]

    @property
    def outputs(self) -> list[str]:
        """Outputs of the main graph in order."""
        return [item.name for item in self.proto.graph.output]

    @cached_property
    def needs(self) -> dict[int, tuple[str, ...]]:
        """What each node takes by name: its inputs, and what its subgraphs take from around them."""
        graph = self.proto.graph
        return {index: tuple(dict.fromkeys(taken(graph.node[index]))) for index in self.order}

    @cached_property
    def makes(self) -> dict[int, tuple[str, ...]]:
        """What each node makes by name."""
        graph = self.proto.graph
        return {index: tuple(name for name in graph.node[index].output if name) for index in self.order}

    def part(self, nodes: Sequence[int], types: Mapping[str, onnx.TypeProto]) -> onnx.ModelProto:
        """A model of some nodes: takes the values they need, gives every value they make.

        Args:
            types: of the values that come from outside.
        """
        made = {name for index in nodes for name in self.makes[index]}
        needed = dict.fromkeys(name for index in nodes for name in self.needs[index] if name not in made)
        part = self._frame()
        graph, whole = part.graph, self.proto.graph
        for name in needed:
            if name in self.constants:
                graph.initializer.append(self.constants[name])
            elif name in self.sparse:
                graph.sparse_initializer.append(self.sparse[name])
            elif name in self.constant_nodes:
                graph.node.append(whole.node[self.constant_nodes[name]])
            else:
                graph.input.add(name=name).type.CopyFrom(types[name])
        graph.node.extend(whole.node[index] for index in nodes)
        for index in nodes:
            for name in self.makes[index]:
                graph.output.add(name=name)
        return part

    def copy_of(self, name: str) -> onnx.ModelProto:
        """A model that gives a stored tensor as its only output."""
        copy = self._frame()
        if name in self.constant_nodes:
            copy.graph.node.append(self.proto.graph.node[self.constant_nodes[name]])
        else:
            copy.graph.initializer.append(self.constants[name])
        copy.graph.node.add(op_type="Identity", input=[name], output=[f"{name} as output"])
        copy.graph.output.add(name=f"{name} as output")
        return copy

    def whole(self) -> onnx.ModelProto:
        """The model as it is, with its own outputs."""
        return self.proto

    def doing(self, nodes: Sequence[int]) -> str:
        """Words that complete "while ..." for a run of these nodes."""
        if len(nodes) == 1:
            node, original = self.proto.graph.node[nodes[0]], self.model.graphs[0].columns.node_names[nodes[0]]
            return f"running {node.op_type} {original!r}" if original else f"running {node.op_type} ({node.name})"
        return f"running {len(nodes)} operators"

    def _frame(self) -> onnx.ModelProto:
        frame = onnx.ModelProto(ir_version=self.proto.ir_version)
        frame.opset_import.extend(self.proto.opset_import)
        frame.functions.extend(self.proto.functions)
        frame.graph.name = "part"
        return frame

    def _prepare(self, graph: onnx.GraphProto, index: int) -> None:
        """Name every node by its id, down through the subgraphs, and find all data files."""
        for tensor in graph.initializer:
            self._relocate(tensor)
        known: Mapping[int, tuple[int, ...]] = {}
        if 0 <= index < len(self.model.graphs):
            known = self.model.graphs[index].subgraphs
        for place, node in enumerate(graph.node):
            if index >= 0:
                node.name = f"g{index}.n{place}"
            self._prepare_attributes(node, known.get(place, ()))
            if node.op_type in RANDOM and node.domain in _STANDARD:
                self._seed(index, place, node)
        if index != 0:  # the runtime takes no external data in Constant nodes
            moved = {place: t for place, node in enumerate(graph.node) if (t := _constant_tensor(node)) is not None}
            graph.initializer.extend(tensor for tensor in moved.values() if tensor.data_location)
            for place in sorted((p for p, t in moved.items() if t.data_location), reverse=True):
                del graph.node[place]

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
            return self._names[self.model.sources[0].path]
        path = os.path.realpath(os.path.join(os.path.dirname(self.model.path), location.replace("\\", "/")))
        names = {os.path.realpath(source): name for source, name in self._names.items()}
        return names.get(path, _NOWHERE)

    def _sorted(self, nodes: Iterable[int]) -> list[int]:
        """File order where it can run in it, as the format demands; else the first order that can."""
        nodes = list(nodes)
        graph = self.proto.graph
        producer = {name: index for index in nodes for name in graph.node[index].output if name}
        waiting = {
            index: {producer[name] for name in taken(graph.node[index]) if name in producer} - {index}
            for index in nodes
        }
        done: set[int] = set()
        if all(_add(done, index, waiting[index]) for index in nodes):
            return nodes
        return _topological(nodes, waiting)


def taken(node: onnx.NodeProto) -> Iterable[str]:
    """Names that a node takes from its graph, through its subgraphs as well."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield from free_names(attribute.g)
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield from free_names(graph)


def free_names(graph: onnx.GraphProto) -> Iterable[str]:
    """Names that a subgraph takes from around it."""
    own = {item.name for item in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        yield from (name for name in taken(node) if name not in own)
        own.update(node.output)
    yield from (item.name for item in graph.output if item.name not in own)


def _add(done: set[int], index: int, before: set[int]) -> bool:
    done.add(index)
    return before <= done


def _topological(nodes: list[int], waiting: dict[int, set[int]]) -> list[int]:
    users: dict[int, list[int]] = {}
    for index, before in waiting.items():
        for producer in before:
            users.setdefault(producer, []).append(index)
    left = {index: len(before) for index, before in waiting.items()}
    ready = [index for index in nodes if left[index] == 0]
    for index in ready:
        for user in users.get(index, ()):
            left[user] -= 1
            if left[user] == 0:
                ready.append(user)
    return ready


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in _STANDARD


def _constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a ``Constant`` node holds, under the name of its output, where that is a dense tensor."""
    if not _is_constant(node) or len(node.output) != 1:
        return None
    value = next((a.t for a in node.attribute if a.name == "value" and a.HasField("t")), None)
    if value is None:
        return None
    tensor = onnx.TensorProto()
    tensor.CopyFrom(value)
    tensor.name = node.output[0]
    return tensor


def _locations(model: Model) -> tuple[str, dict[str, str]]:
    """A folder that holds every file of the model, and their names within it by path.

    Symbolic links are followed first: the runtime refuses those that lead out of the folder.
    """
    paths = {source.path: os.path.realpath(source.path) for source in model.sources}
    folder = os.path.commonpath([os.path.dirname(path) for path in paths.values()])
    return folder, {given: os.path.relpath(path, folder).replace(os.sep, "/") for given, path in paths.items()}
