"""Figures of a model at one glance, against what the ``onnx`` library counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from core import open_model, overview
from core.overview import Part, Slot
from tests.corpus import fetch


@pytest.fixture
def two_blocks(tmp_path: Path) -> str:
    """Weights of 400, 40 and 8 bytes under ``a/up``, ``a/down`` and ``b``, the last an int64."""
    weights = {
        "a.up.weight": np.zeros((10, 10), np.float32),
        "a.down.weight": np.zeros(10, np.float32),
        "b.shape": np.array([10], np.int64),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "a.up.weight"], ["t"], name="/a/up/MatMul"),
        helper.make_node("Add", ["t", "a.down.weight"], ["u"], name="/a/down/Add"),
        helper.make_node("Reshape", ["u", "b.shape"], ["y"], name="/b/Reshape"),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 10])
    default = helper.make_tensor_value_info("a.down.weight", TensorProto.FLOAT, [10])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    stored = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [given, default], [result], stored)
    path = tmp_path / "two.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return str(path)


def test_the_signature_leaves_out_inputs_that_are_weights(two_blocks: str) -> None:
    inputs, outputs = overview.signature(open_model(two_blocks))
    assert inputs == (Slot("g0.v0", "x", "float32", ("n", 10)),)
    assert [(slot.name, slot.dtype, slot.shape) for slot in outputs] == [("y", "float32", None)]


def test_bytes_and_types_add_up(two_blocks: str) -> None:
    model = open_model(two_blocks)
    assert overview.weight_bytes(model) == 448
    assert [(row.dtype, row.tensors, row.nbytes, row.elements) for row in overview.dtype_mix(model)] == [
        ("float32", 2, 440, 110), ("int64", 1, 8, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("by", ["module", "operator"])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_every_part_holds_what_lies_in_it(two_blocks: str, by: overview.By, limit: int) -> None:
    parts = overview.parts(open_model(two_blocks), by, limit)
    assert (parts[0].parent, parts[0].nbytes, parts[0].elements, parts[0].tensors) == ("", 448, 111, 3)
    check_sums(parts)
    assert sum(part.tensor >= 0 for part in parts) == min(limit, 3)


def test_parts_follow_the_module_scopes(two_blocks: str) -> None:
    parts = overview.parts(open_model(two_blocks), "operator")
    assert {part.label: part.nbytes for part in parts if part.parent == parts[0].id} == {
        "MatMul": 400, "Add": 40, "Reshape": 8,
    }  # fmt: skip


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["magika", "silero_vad", "rapidocr_rec"])
def test_real_models_count_as_onnx_counts(name: str) -> None:
    path = fetch(name)
    model, proto = open_model(path), onnx.load(path)
    nodes, nbytes = Counter[tuple[str, str]](), 0
    pending = [proto.graph]
    while pending:
        graph = pending.pop()
        nbytes += sum(numpy_helper.to_array(tensor).nbytes for tensor in graph.initializer)
        for node in graph.node:
            nodes[node.op_type, node.domain] += 1
            for attribute in node.attribute:
                pending.extend([attribute.g] if attribute.HasField("g") else attribute.graphs)
                if attribute.HasField("t"):
                    nbytes += numpy_helper.to_array(attribute.t).nbytes
    assert {(kind.op_type, kind.domain): kind.count for kind in overview.operators(model)} == nodes
    assert overview.weight_bytes(model) == nbytes
    for by in ("module", "operator"):
        parts = overview.parts(model, by)
        assert parts[0].nbytes == nbytes
        check_sums(parts)


def check_sums(parts: tuple[Part, ...]) -> None:
    """Plotly draws nothing where children do not add up to their parent."""
    inside = Counter[str]()
    for part in parts:
        inside[part.parent] += part.nbytes
    for part in parts:
        if part.id in inside:
            assert inside[part.id] == part.nbytes, part
    assert len({part.id for part in parts}) == len(parts)
