"""Small ONNX models with the places where edits go wrong: captures, clashes, shared weights, functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from core.edits.kinds import Edit
from core.edits.onnx_document import OnnxDocument
from core.edits.pieces import stream
from core.edits.verify import Prepared, prepare
from core.opening import open_model

FLOAT = TensorProto.FLOAT
Arrays = dict[str, NDArray[Any]]


def document(path: Path) -> OnnxDocument:
    return OnnxDocument.of(open_model(path))


def edited(path: Path, *edits: Edit) -> OnnxDocument:
    """The document after edits, each of which must be ready to be committed."""
    made = document(path)
    for edit in edits:
        tried = prepare(made, edit)
        assert tried.ready, tried.findings
        made = tried.after
    return made


def tried(path: Path, edit: Edit) -> Prepared:
    return prepare(document(path), edit)


def proto_of(made: OnnxDocument) -> onnx.ModelProto:
    """What would be written, parsed by the onnx library and checked by it."""
    proto = onnx.ModelProto.FromString(b"".join(stream(made.pieces())))
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(model: onnx.ModelProto | Path, inputs: Arrays) -> Arrays:
    """Outputs of a plain onnxruntime run without optimisation."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    given: Any = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session: Any = ort.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def conditional(folder: Path) -> Path:
    """``y = cond ? relu(x + w) * w : x + w`` with ``w`` and ``x + w`` captured by both branches."""
    value = helper.make_tensor_value_info
    then = helper.make_graph(
        [helper.make_node("Relu", ["sum"], ["r"], name="relu"), helper.make_node("Mul", ["r", "w"], ["t"], name="mul")],
        "then", [], [value("t", FLOAT, None)],
    )  # fmt: skip
    other = helper.make_graph([helper.make_node("Identity", ["sum"], ["e"])], "else", [], [value("e", FLOAT, None)])
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["x", "w"], ["sum"], name="add"),
            helper.make_node("If", ["cond"], ["y"], name="choose", then_branch=then, else_branch=other),
        ],
        "main",
        [value("x", FLOAT, [2, 3]), value("cond", TensorProto.BOOL, [])],
        [value("y", FLOAT, [2, 3])],
        [numpy_helper.from_array(np.array([[1, -2, 3]], np.float32), "w")],
    )
    return _saved(graph, folder / "conditional.onnx")


def shared(folder: Path) -> Path:
    """Two MatMuls take one weight; nodes have no names; a value is an output and taken as well."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("MatMul", ["b", "w"], ["c"]),
            helper.make_node("Add", ["c", "a"], ["d"]),
        ],
        "shared",
        [value("x", FLOAT, ["n", 4])],
        [value("d", FLOAT, ["n", 4]), value("a", FLOAT, ["n", 4])],
        [numpy_helper.from_array(np.arange(16, dtype=np.float32).reshape(4, 4) / 8 - 1, "w")],
    )
    return _saved(graph, folder / "shared.onnx")


def with_function(folder: Path) -> Path:
    """A model-local function ``own.Twice`` called once."""
    value = helper.make_tensor_value_info
    twice = helper.make_function(
        "own", "Twice", ["p"], ["q"], [helper.make_node("Add", ["p", "p"], ["q"], name="inner")],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Twice", ["x"], ["y"], name="call", domain="own")],
        "main", [value("x", FLOAT, [3])], [value("y", FLOAT, [3])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[twice], ir_version=8)
    path = folder / "function.onnx"
    onnx.save(model, str(path))
    return path


def _saved(graph: onnx.GraphProto, path: Path) -> Path:
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path
