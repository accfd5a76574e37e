"""The bundled sample: what its maker writes, and what the runtime makes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "app" / "sample" / "sample.onnx"


def test_the_maker_writes_the_same_bytes_again(tmp_path: Path) -> None:
    again = tmp_path / "again.onnx"
    subprocess.run([sys.executable, ROOT / "tools" / "make_sample.py", again], check=True, capture_output=True)
    assert again.read_bytes() == SAMPLE.read_bytes()
    assert SAMPLE.stat().st_size < 1_000_000


def test_it_is_a_valid_model_with_declared_shapes_that_hold() -> None:
    model = onnx.load(SAMPLE)
    onnx.checker.check_model(model, full_check=True)
    declared = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim][1:] for v in model.graph.value_info}
    model.graph.output.extend(model.graph.value_info)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    image = np.zeros((3, 1, 32, 32), np.float32)
    image[:, 0, 8:24, 8:24] = 1
    names = [o.name for o in session.get_outputs()]
    made = dict(zip(names, session.run(names, {"image": image}), strict=True))
    assert {name: list(made[name].shape[1:]) for name in declared} == declared
    assert np.allclose(made["probabilities"].sum(axis=1), 1, atol=1e-6)
    assert made["probabilities"].std() > 0.02


def test_every_node_has_a_name_that_tells_its_module() -> None:
    nodes = onnx.load(SAMPLE).graph.node
    assert len({node.name for node in nodes}) == len(nodes)
    scopes = {node.name.rsplit("/", 1)[0] for node in nodes}
    assert {"/stem/conv1", "/blocks.0/attn/q", "/blocks.2/mlp/act", "/head"} <= scopes
