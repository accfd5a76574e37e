"""Nodes: their attributes and operators, inserting, removing and reconnecting them."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Final, TypeVar

import onnx
from onnx import helper

from core.edits.kinds import (
    DeleteNodes,
    InsertNode,
    InsertQuantization,
    ReconnectInput,
    RemoveAttribute,
    RemoveNode,
    ReplaceOperator,
    SetAttribute,
)
from core.edits.onnx_document import GraphLike, OnnxDocument, subgraphs
from core.edits.onnx_names import all_names, made_in, need_value, new_name, output_names, rewire, root_of, used_in
from core.edits.onnx_schema import attribute, count_problem, opsets_of, schema_of
from core.errors import NotFound, UsageError

T = TypeVar("T")
_ZERO_TYPES: Final = {"uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8}


def set_attribute(document: OnnxDocument, edit: SetAttribute) -> None:
    """Set or add an attribute, checked against the operator's schema."""
    graph, place = document.node(edit.node)
    node = graph.node[place]
    made = attribute(_schema(document, graph, node), node.op_type, edit.name, edit.value)
    for item in node.attribute:
        if item.name == edit.name:
            item.CopyFrom(made)
            return
    node.attribute.append(made)


def remove_attribute(document: OnnxDocument, edit: RemoveAttribute) -> None:
    """Remove an attribute that the operator does not need."""
    graph, place = document.node(edit.node)
    node = graph.node[place]
    kept = [item for item in node.attribute if item.name != edit.name]
    if len(kept) == len(node.attribute):
        raise NotFound(f"node {edit.node!r} has no attribute {edit.name!r}")
    keep(node.attribute, kept)
    _refuse(count_problem(_schema(document, graph, node), node))


def replace_operator(document: OnnxDocument, edit: ReplaceOperator) -> None:
    """Let a node be another operator; attributes that it does not know are dropped."""
    graph, place = document.node(edit.node)
    node = graph.node[place]
    opsets = _opsets(document, graph)
    schema = schema_of(opsets, edit.op_type, edit.domain)
    if schema is None:
        raise UsageError(f"there is no operator {edit.op_type!r} in opset {opsets.get(edit.domain, 'none')}")
    if edit.domain and edit.domain not in opsets:
        raise UsageError(f"the model does not import the operator set {edit.domain!r}")
    node.op_type, node.domain = edit.op_type, edit.domain
    keep(node.attribute, [item for item in node.attribute if item.name in schema.attributes])
    _refuse(count_problem(schema, node))


def insert_node(document: OnnxDocument, edit: InsertNode) -> None:
    """Insert a unary operator behind a value."""
    graph = document.graph(edit.graph)
    need_value(graph, edit.value)
    taken = all_names(root_of(document, edit.graph))
    schema = schema_of(_opsets(document, graph), edit.op_type, "")
    if schema is None:
        raise UsageError(f"there is no operator {edit.op_type!r} in the model's opset")
    made = new_name(taken, f"{edit.value}_{edit.op_type}")
    node = onnx.NodeProto(op_type=edit.op_type, name=edit.name or _free_node_name(graph, made))
    node.input.append(edit.value)
    node.output.append(made)
    node.attribute.extend(attribute(schema, edit.op_type, name, value) for name, value in edit.attributes.items())
    _refuse(count_problem(schema, node))
    _behind(document, edit.graph, edit.value, [node], edit.consumers)


def insert_quantization(document: OnnxDocument, edit: InsertQuantization) -> None:
    """Insert a QuantizeLinear and a DequantizeLinear behind a value."""
    graph = document.main_graph(edit.graph, "inserting a quantization")
    need_value(graph, edit.value)
    kind = _ZERO_TYPES.get(edit.dtype)
    low, high = (0, 255) if edit.dtype == "uint8" else (-128, 127)
    if kind is None:
        raise UsageError(f"values are quantized to {' or '.join(_ZERO_TYPES)}, not {edit.dtype!r}")
    if not edit.scale > 0 or edit.scale == float("inf") or not low <= edit.zero_point <= high:
        raise UsageError(f"scale {edit.scale} must be above 0 and zero point {edit.zero_point} within {low} to {high}")
    taken = all_names(root_of(document, edit.graph))
    scale, zero, quantized, real = (
        new_name(taken, f"{edit.value}_{end}") for end in ("scale", "zero_point", "quantized", "dequantized")
    )
    graph.initializer.append(helper.make_tensor(scale, onnx.TensorProto.FLOAT, (), [edit.scale]))
    graph.initializer.append(helper.make_tensor(zero, kind, (), [edit.zero_point]))
    nodes = [
        helper.make_node(
            "QuantizeLinear", [edit.value, scale, zero], [quantized], name=_free_node_name(graph, quantized)
        ),
        helper.make_node("DequantizeLinear", [quantized, scale, zero], [real], name=_free_node_name(graph, real)),
    ]
    _behind(document, edit.graph, edit.value, nodes, None)


def remove_node(document: OnnxDocument, edit: RemoveNode) -> None:
    """Remove a node and join what it was between."""
    graph, place = document.node(edit.node)
    node = graph.node[place]
    inputs, outputs = [name for name in node.input if name], [name for name in node.output if name]
    if not inputs or not outputs:
        raise UsageError(f"node {edit.node!r} has no input that could take the place of its output")
    used = set(used_in(graph))
    extra = [name for name in outputs[1:] if name in used]
    if extra:
        raise UsageError(f"node {edit.node!r} cannot be left out: its output {extra[0]!r} is taken too")
    before, after = inputs[0], outputs[0]
    del graph.node[place]
    if after not in output_names(graph):
        rewire(graph, lambda name: before if name == after else name, {after}, keep=set())
        return
    producer = next((n for n in graph.node if before in n.output), None)
    if producer is None or before in output_names(graph):
        # The name of an output stays: an Identity keeps it where the input cannot take it over.
        identity = helper.make_node("Identity", [before], [after], name=_free_node_name(graph, f"{after}_identity"))
        nodes = list(graph.node)
        nodes.insert(place, identity)
        keep(graph.node, nodes)
        return
    producer.output[list(producer.output).index(before)] = after
    rewire(graph, lambda name: after if name == before else name, {before}, keep=set())
    _forget(graph, {before})


def delete_nodes(document: OnnxDocument, edit: DeleteNodes) -> None:
    """Delete nodes and what only they needed."""
    found = [document.node(name) for name in edit.nodes]
    if not found:
        raise UsageError("no node is given")
    graph = found[0][0]
    if any(other is not graph for other, _ in found):
        raise UsageError("the nodes lie in different graphs; delete them one graph at a time")
    gone = {place for _, place in found}
    made = {name for place in gone for name in graph.node[place].output if name}
    keep(graph.node, [node for place, node in enumerate(graph.node) if place not in gone])
    wanted = made & set(used_in(graph))
    if wanted:
        raise UsageError(f"{len(wanted)} of their outputs are still taken, {sorted(wanted)[0]!r} among them")
    clean(graph)


def reconnect_input(document: OnnxDocument, edit: ReconnectInput) -> None:
    """Let an input of a node take another value."""
    graph, place = document.node(edit.node)
    node = graph.node[place]
    if not 0 <= edit.index < len(node.input):
        raise UsageError(f"node {edit.node!r} has {len(node.input)} inputs, there is no input {edit.index}")
    if edit.value and edit.value not in all_names(root_of(document, document.graphs().index(graph))):
        raise NotFound(f"there is no value {edit.value[:200]!r}")
    node.input[edit.index] = edit.value
    in_order(graph)


def clean(graph: GraphLike) -> None:
    """Remove nodes and initializers whose results nothing takes; inputs of the graph stay."""
    while True:
        used = set(used_in(graph))
        kept = [node for node in graph.node if any(name in used for name in node.output)]
        if len(kept) == len(graph.node):
            break
        keep(graph.node, kept)
    if isinstance(graph, onnx.GraphProto):
        used = set(used_in(graph))
        inputs = {item.name for item in graph.input}
        keep(graph.initializer, [item for item in graph.initializer if item.name in used | inputs])
        keep(graph.sparse_initializer, [item for item in graph.sparse_initializer if item.values.name in used])
        made = made_in(graph)
        keep(graph.value_info, [item for item in graph.value_info if item.name in made])


def in_order(graph: GraphLike) -> None:
    """Sort nodes so that each follows its producers, as the format demands; the order is kept where it can be.

    Raises:
        UsageError: if the nodes form a cycle.
    """
    maker = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    needs = [{maker[name] for name in _takes(node) if name in maker} for node in graph.node]
    if all(max(before, default=-1) < place for place, before in enumerate(needs)):
        return
    users: dict[int, list[int]] = {}
    for place, before in enumerate(needs):
        for other in before:
            users.setdefault(other, []).append(place)
    left = [len(before) for before in needs]
    ready = [place for place, count in enumerate(left) if count == 0]
    for place in ready:
        for user in users.get(place, ()):
            left[user] -= 1
            if left[user] == 0:
                ready.append(user)
    if len(ready) < len(needs):
        raise UsageError("the nodes would form a cycle")
    nodes = list(graph.node)
    keep(graph.node, [nodes[place] for place in ready])


def _takes(node: onnx.NodeProto) -> set[str]:
    names = {name for name in node.input if name}
    for inner in subgraphs(node):
        names |= set(used_in(inner)) - made_in(inner)
    return names


def _behind(
    document: OnnxDocument, index: int, value: str, nodes: list[onnx.NodeProto], consumers: list[str] | None
) -> None:
    """Put a chain of nodes, the first of which takes ``value``, between it and what takes it."""
    graph = document.graph(index)
    last = nodes[-1].output[0]
    outputs = output_names(graph)
    producer = next((place for place, node in enumerate(graph.node) if value in node.output), -1)
    if consumers is not None:
        chosen = [document.node(name) for name in consumers]
        takers = [(owner, place) for owner, place in chosen if value in owner.node[place].input]
        if not chosen or len(takers) < len(chosen):
            raise UsageError(f"not every consumer given takes the value {value!r}")
        for owner, place in takers:
            node = owner.node[place]
            for i, name in enumerate(node.input):
                node.input[i] = last if name == value else name
    elif value in outputs and producer >= 0:
        # The model's output keeps its name: the value before the new nodes gets another.
        inner = new_name(
            all_names(root_of(document, index)) | {name for node in nodes for name in node.output}, f"{value}_before"
        )
        made = graph.node[producer].output
        made[list(made).index(value)] = inner
        for node in nodes:
            _swap(node.input, value, inner)
        _swap(nodes[-1].output, last, value)
    else:
        if value in outputs:
            raise UsageError(f"{value!r} is an input and an output at once; nothing can be inserted behind it")
        rewire(graph, lambda name: last if name == value else name, {value}, keep=set())
    all_nodes = list(graph.node)
    all_nodes[producer + 1 : producer + 1] = nodes
    keep(graph.node, all_nodes)


def _swap(names: MutableSequence[str], old: str, new: str) -> None:
    for place, name in enumerate(names):
        if name == old:
            names[place] = new


def _forget(graph: GraphLike, names: set[str]) -> None:
    """Drop declared types of values that are there no more."""
    keep(graph.value_info, [item for item in graph.value_info if item.name not in names])


def _free_node_name(graph: GraphLike, wanted: str) -> str:
    return new_name({node.name for node in graph.node}, wanted)


def _schema(document: OnnxDocument, graph: GraphLike, node: onnx.NodeProto) -> onnx.defs.OpSchema | None:
    return schema_of(_opsets(document, graph), node.op_type, node.domain)


def _opsets(document: OnnxDocument, graph: GraphLike) -> dict[str, int]:
    imports = graph.opset_import if isinstance(graph, onnx.FunctionProto) else document.proto.opset_import
    return opsets_of(imports)


def _refuse(problem: str) -> None:
    if problem:
        raise UsageError(problem)


def keep(repeated: MutableSequence[T], items: Iterable[T]) -> None:
    """Let a repeated field hold these of its items, in this order."""
    kept = list(items)
    del repeated[:]
    repeated.extend(kept)
