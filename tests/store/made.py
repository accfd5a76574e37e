"""Small models with everything the database has to hold, made of columns by hand."""

from __future__ import annotations

from pathlib import Path

from core.graph_builder import GraphBuilder
from core.ir import ByteRange, Finding, Model, Quantization, Tensor
from core.source import Source

NAMES = ("layers.0.weight", "layers.0.bias", "100%_sure", "Ωmega\0null", "\ud800broken", "'; DROP TABLE tensors; --")


def model(folder: Path, name: str = "m.onnx", content: bytes = b"x" * 256) -> Model:
    """Two graphs, six tensors with awkward names, one finding."""
    path = folder / name
    path.write_bytes(content)
    tensors = (
        Tensor(NAMES[0], "float32", (4, 8), ByteRange(0, 0, 128), role="initializer", graph=0),
        Tensor(NAMES[1], "float16", (4,), b"\0" * 8, role="constant", graph=0),
        Tensor(NAMES[2], "int4", (2, 2, 2), None, problem="its data file is missing"),
        Tensor(NAMES[3], "int8", (), ByteRange(0, 10, 11), quantization=Quantization((0.5,))),
        Tensor(NAMES[4], "float32", (0, 3), ByteRange(0, 0, 0), storage=3),
        Tensor(NAMES[5], "float32", (1 << 40, 1 << 40), None, encoding="sparse"),
    )
    return Model(
        "onnx", "ONNX model", str(path), (Source(path),), {}, tensors, (_main(), _inner()), {},
        (Finding("onnx.odd", "warning", "Something is odd."),), producer="hand 1",
    )  # fmt: skip


def _main():
    graph = GraphBuilder(0, "main", "net")
    x, weight, y, z = (graph.value(name) for name in ("x", NAMES[0], "y", "z"))
    graph.inputs.append(x)
    graph.set_type(x, "float32", (1, "batch", None))
    graph.initializer(weight, 0)
    graph.node("MatMul", "first", [x, weight], [y], scope="layers.0")
    graph.node("Clip", "second", [y, -1, x], [z, -1], domain="com.example", scope="layers.0")
    graph.set_type(z, "int4", ())
    graph.outputs.append(z)
    return graph.finish()


def _inner():
    graph = GraphBuilder(1, "subgraph", "then", parent=(0, 1, "then_branch"))
    inside = graph.value("inside")
    graph.node("Constant", "", [], [inside])
    graph.outputs.append(inside)
    return graph.finish()
