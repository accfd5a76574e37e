"""What can be edited at a node, a value or the model, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from core.ir import Graph, Model, Node, Value

TITLES: Final[Mapping[str, str]] = {
    "rename_node": "Rename",
    "set_attribute": "Set an attribute",
    "remove_attribute": "Remove an attribute",
    "replace_operator": "Replace the operator",
    "remove_node": "Remove and join its neighbours",
    "delete_nodes": "Delete with what only it needs",
    "reconnect_input": "Reconnect an input",
    "set_doc": "Write documentation",
    "rename_value": "Rename",
    "insert_node": "Insert an operator behind it",
    "insert_quantization": "Insert quantize and dequantize",
    "add_output": "Make it a model output",
    "remove_output": "Remove this output",
    "set_dimension": "Set a dimension",
    "set_input_type": "Take another element type",
    "set_layout": "Change the layout",
    "fold_preprocessing": "Fold preprocessing in",
    "scale_tensor": "Scale all elements",
    "set_elements": "Set a slice",
    "replace_tensor": "Replace by a .npy file",
    "rename_graph": "Rename the graph",
    "fix_dimension": "Fix a symbolic dimension",
    "make_batch_dynamic": "Make the batch dynamic",
    "convert_float": "Convert to half precision",
    "extract_subgraph": "Extract a part",
    "set_metadata": "Set metadata",
    "remove_metadata": "Remove metadata",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One edit that a thing offers.

    Attributes:
        kind: name of the edit in a script.
        reason: why it cannot be done there, empty where it can.
        preset: fields that the thing itself gives.
        choices: values that a field can take, where they are few and known.
    """

    kind: str
    reason: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict[str, Any])
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    @property
    def title(self) -> str:
        """The edit in words."""
        return TITLES[self.kind]


def for_node(model: Model, graph: Graph, node: Node) -> list[Choice]:
    """Edits of one operator."""
    name = node_name(graph, node)
    attributes = [item.name for item in node.attributes]
    outputs = [graph.value(index) for index in node.outputs if index >= 0]
    taken = sum(len(value.consumers) for value in outputs) + sum(value.is_output for value in outputs)
    inputs = [index for index in node.inputs if index >= 0]
    return [
        Choice("rename_node", preset={"node": name, "to": node.name}),
        Choice("set_attribute", preset={"node": name}),
        Choice("remove_attribute", "" if attributes else "it has no attributes", {"node": name}, {"name": attributes}),
        Choice("replace_operator", preset={"node": name, "op_type": node.op_type, "domain": node.domain}),
        Choice(
            "remove_node", "" if inputs and outputs else "it has no input that could take its place", {"node": name}
        ),
        Choice("delete_nodes", "what it makes is in use" if taken else "", {"nodes": [name]}),
        Choice("reconnect_input", "" if node.inputs else "it takes no inputs", {"node": name, "index": 0}),
        Choice("set_doc", preset={"node": name}),
    ]


def for_value(model: Model, graph: Graph, value: Value) -> list[Choice]:
    """Edits of one value: what an operator makes, a model input, an output or a stored tensor."""
    at = {"value": value.name, **({"graph": graph.index} if graph.index else {})}
    main = "" if graph.index == 0 else "it lies in a subgraph"
    boundary = main or ("" if value.is_input or value.is_output else "it is no model input or output")
    taken = main or ("" if value.is_input and value.tensor < 0 else "it is no model input")
    rank = len(value.shape) if value.shape is not None else 0
    four = boundary or ("" if rank == 4 else f"it has {rank} dimensions, not four")
    choices = [
        Choice("rename_value", preset={**at, "to": value.name}),
        Choice("insert_node", preset=at, choices={"op_type": ("Identity", "Cast", "Relu", "Clip", "Neg", "Transpose")}),
        Choice("insert_quantization", "" if value.dtype in ("float32", None) else "it is not float32", at,
               {"dtype": ("uint8", "int8")}),
        Choice("add_output", main or ("it is an output already" if value.is_output else ""), {"value": value.name}),
        Choice("remove_output", main or ("" if value.is_output else "it is no output"), {"value": value.name}),
        Choice("set_dimension", boundary or ("" if rank else "it has no dimensions"), {"value": value.name, "axis": 0}),
        Choice("set_input_type", taken, {"value": value.name},
               {"dtype": ("float32", "float16", "float64", "uint8", "int8", "int32", "int64")}),
        Choice("set_layout", four, {"value": value.name}, {"layout": ("NHWC", "NCHW")}),
        Choice("fold_preprocessing", taken or ("" if rank == 4 else f"it has {rank} dimensions, not four"),
               {"value": value.name, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "scale": 1 / 255},
               {"dtype": ("uint8", "float32")}),
    ]  # fmt: skip
    return choices if value.tensor < 0 else [*_stored(model, graph, value), *choices[:1]]


def for_model(model: Model) -> list[Choice]:
    """Edits of the whole model."""
    graph = model.main_graph
    symbols = _symbols(graph) if graph is not None else []
    keys = list(model.metadata)
    return [
        Choice("fix_dimension", "" if symbols else "it has no symbolic dimensions", {}, {"symbol": symbols}),
        Choice("make_batch_dynamic"),
        Choice("convert_float", preset={"keep": []}, choices={"to": ("float16", "bfloat16")}),
        Choice("extract_subgraph"),
        Choice("rename_graph", preset={"to": graph.name if graph is not None else ""}),
        Choice("set_metadata"),
        Choice("remove_metadata", "" if keys else "it has no metadata", {}, {"key": keys}),
        Choice("set_doc", preset={"text": str(model.details.get("doc", ""))}),
    ]


def node_name(graph: Graph, node: Node) -> str:
    """How an edit says a node: its name where that is its alone, else its id."""
    names = graph.columns.node_names
    return node.name if node.name and sum(name == node.name for name in names) == 1 else node.id


def _stored(model: Model, graph: Graph, value: Value) -> list[Choice]:
    tensor = model.tensors[value.tensor]
    at = {"tensor": value.name, **({"graph": graph.index} if graph.index else {})}
    sparse = "it is stored sparse" if tensor.encoding.startswith("sparse") else ""
    texts = sparse or ("it holds texts" if tensor.dtype == "string" else "")
    real = texts or ("" if "float" in tensor.dtype or "complex" in tensor.dtype else f"it holds {tensor.dtype}")
    return [
        Choice("scale_tensor", real, at),
        Choice("set_elements", texts, {**at, "at": ", ".join(":" for _ in tensor.shape)}),
        Choice("replace_tensor", sparse, at),
    ]


def _symbols(graph: Graph) -> list[str]:
    shapes = [graph.shape(index) or () for index in (*graph.inputs, *graph.outputs)]
    return list(dict.fromkeys(dim for shape in shapes for dim in shape if isinstance(dim, str) and dim))
