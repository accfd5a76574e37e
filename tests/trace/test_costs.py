"""Multiplications and bytes by hand, on real shapes of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node

from core.opening import open_model
from core.trace.answers.reading import Reading
from core.trace.costs import NO_BLOCK, blocks, costs
from tests.worker.running import save, trace


def test_multiplications_and_bytes_by_hand(tmp_path: Path) -> None:
    nodes = [
        make_node("Conv", ["x", "k"], ["c"], pads=[1] * 4, group=2, name="conv"),
        make_node("Flatten", ["c"], ["f"]),
        make_node("Gemm", ["f", "g"], ["h"], transB=1, name="gemm"),
        make_node("MatMul", ["h", "m"], ["y"], name="mm"),
    ]
    arrays = {"k": (6, 2, 3, 3), "g": (5, 6 * 8 * 8), "m": (5, 7)}
    tensors = [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in arrays.items()]
    path = tmp_path / "m.onnx"
    save(path, nodes, [("x", TensorProto.FLOAT, ["n", 4, 8, 8])], [("y", TensorProto.FLOAT, None)], tensors)
    run = trace(path, {"x": np.ones((2, 4, 8, 8), np.float32)}, tmp_path)
    model = open_model(path)
    found = costs(Reading(model, run.result.values, lambda value: run.array(value.name)))
    conv, flatten, gemm, matmul = (found[f"g0.n{n}"] for n in range(4))
    assert conv.macs == 2 * 6 * 8 * 8 * (2 * 3 * 3)
    assert conv.nbytes == 4 * (2 * 4 * 8 * 8 + 6 * 2 * 3 * 3 + 2 * 6 * 8 * 8)
    assert flatten.macs is None
    assert gemm.macs == 2 * 5 * (6 * 8 * 8)
    assert matmul.macs == 2 * 7 * 5
    assert matmul.nbytes == 4 * (10 + 35 + 14)
    model.close()


def test_every_operator_is_in_one_block(tmp_path: Path) -> None:
    nodes, tensors, before = [], [], "x"
    for n in range(3):
        nodes += [
            make_node("MatMul", [before, f"w{n}"], [f"m{n}"], name=f"/block.{n}/mm"),
            make_node("Relu", [f"m{n}"], [f"r{n}"], name=f"/block.{n}/act"),
            make_node("Add", [f"r{n}", before], [f"s{n}"], name=f"/block.{n}/add"),
        ]
        tensors.append(numpy_helper.from_array(np.eye(4, dtype=np.float32), f"w{n}"))
        before = f"s{n}"
    path = tmp_path / "m.onnx"
    save(path, nodes, [("x", TensorProto.FLOAT, [1, 4])], [(before, TensorProto.FLOAT, [1, 4])], tensors)
    model = open_model(path)
    found = blocks(model)
    assert sorted(node for block in found for node in block.nodes) == sorted(f"g0.n{n}" for n in range(9))
    assert len([block for block in found if block.label != NO_BLOCK]) == 3
    model.close()
