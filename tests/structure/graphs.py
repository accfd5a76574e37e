"""Small graphs built row by row, for tests whose numbers are counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

from core.graph_builder import GraphBuilder
from core.ir import Graph, Model, Tensor


def model_of(*graphs: Graph, tensors: Sequence[Tensor] = (), path: str = "toy.onnx") -> Model:
    stored = tuple(tensors) or tuple(Tensor(f"w{i}", "float32", (8, 8), None) for i in range(64))
    return Model("onnx", "ONNX model", path, (), {}, stored, tuple(graphs), {})


def graph_of(
    rows: Sequence[tuple[str, str, Sequence[str], Sequence[str]]],
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = (),
    scopes: Sequence[str] = (),
    weights: Sequence[str] = (),
    index: int = 0,
) -> Graph:
    """Rows are (op type, node name, input names, output names); ``weights`` are initializers."""
    b = GraphBuilder(index, "main" if index == 0 else "subgraph", "toy")
    b.inputs.extend(b.value(name) for name in inputs)
    for number, name in enumerate(weights):
        b.initializer(b.value(name), number)
    for number, (op, name, taken, made) in enumerate(rows):
        node = b.node(op, name, [b.value(v) for v in taken], [b.value(v) for v in made])
        if scopes:
            b.set_scope(node, scopes[number])
    b.outputs.extend(b.value(name) for name in outputs)
    return b.finish()


def chain(length: int, op: str = "Relu") -> Graph:
    rows = [(op, "", [f"v{i}"], [f"v{i + 1}"]) for i in range(length)]
    return graph_of(rows, inputs=["v0"], outputs=[f"v{length}"])
