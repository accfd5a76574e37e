"""The engines that can be chosen: what runs where, said aloud, and equal to each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from core.errors import Unavailable, UsageError
from core.opening import open_model
from tests.corpus import fetch
from tests.worker.running import all_outputs, default_inputs, same, save, trace
from tests.worker.test_engine import with_weights
from worker.engines.normalize import OPSET

FLOAT, INT16 = TensorProto.FLOAT, TensorProto.INT16
A = np.array([1, 5], np.int16)


def refused(path: Path) -> Path:
    """The runtime has no Max for int16; the reference evaluator has."""
    nodes = [
        helper.make_node("Neg", ["a"], ["less"]),
        helper.make_node("Max", ["a", "less"], ["largest"], name="pick"),
        helper.make_node("Cast", ["largest"], ["last"], to=FLOAT),
    ]
    return save(path, nodes, [("a", INT16, [2])], [("last", FLOAT, [2])])


def test_automatic_falls_back_and_says_so(tmp_path: Path) -> None:
    traced = trace(refused(tmp_path / "m.onnx"), {"a": A}, tmp_path, latency=True)
    result = traced.result
    assert result.status == "complete", result.reason
    assert traced.array("last").tolist() == [1, 5]
    assert result.engine.startswith("onnxruntime ")
    assert "onnx reference" in result.engine
    finding = next(f for f in result.findings if f.code == "run.reference" and f.at == "node g0.n1")
    assert "Max 'pick' was run by onnx reference" in finding.message


def test_an_explicit_engine_does_not_fall_back(tmp_path: Path) -> None:
    strict = trace(refused(tmp_path / "m.onnx"), {"a": A}, tmp_path, engine="onnxruntime")
    assert strict.result.status in ("partial", "failed")
    assert not strict.values["last"].stored
    with pytest.raises(UsageError, match="no engine is called 'torch'"):
        trace(refused(tmp_path / "m.onnx"), {"a": A}, tmp_path, engine="torch")


@pytest.mark.parametrize("engine", ["reference", "normalized"])
def test_the_reference_evaluator_gives_every_value(engine: str, tmp_path: Path) -> None:
    path = fetch("openwakeword_alexa")
    inputs = default_inputs(open_model(path))
    traced = trace(path, inputs, tmp_path, engine=engine)
    assert traced.result.status == "complete", traced.result.reason
    assert traced.result.engine.startswith(f"onnx reference {onnx.__version__}")
    expected = all_outputs(path, inputs)
    assert set(expected) <= set(traced.values) or engine == "normalized"
    shared = expected.keys() & traced.values.keys()
    assert len(shared) > 0.9 * len(expected)
    for name in shared:
        np.testing.assert_allclose(traced.array(name), expected[name], rtol=1e-4, atol=1e-5)
    names = ReferenceEvaluator(str(path)).run(None, inputs)
    assert same(traced.array(next(iter(onnx.load(path).graph.output)).name), names[0]) or engine == "normalized"


@pytest.mark.parametrize("engine", ["reference", "normalized"])
def test_weights_that_stay_in_the_file_reach_the_reference(engine: str, tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((128, 128)).astype(np.float32)
    x = np.random.default_rng(1).standard_normal((2, 128)).astype(np.float32)
    traced = trace(with_weights(tmp_path / "m.onnx", weights, external="w.bin"), {"x": x}, tmp_path, engine=engine)
    assert traced.result.status == "complete", traced.result.reason
    np.testing.assert_allclose(traced.array("z"), x @ weights, rtol=1e-4, atol=1e-4)


def test_the_normal_form_has_the_stated_opset(tmp_path: Path) -> None:
    """Softmax of opset 11 flattens to two dimensions first, which newer opsets have to spell out."""
    path = save(
        tmp_path / "m.onnx", [helper.make_node("Softmax", ["x"], ["y"])], [("x", FLOAT, [2, 2, 2])],
        [("y", FLOAT, [2, 2, 2])], opset=11,
    )  # fmt: skip
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    traced = trace(path, {"x": x}, tmp_path, engine="normalized")
    assert f"opset {OPSET}" in traced.result.engine
    exp = np.exp(x - x.max(axis=(1, 2), keepdims=True))
    np.testing.assert_allclose(traced.array("y"), exp / exp.sum(axis=(1, 2), keepdims=True), rtol=1e-6)


def test_a_model_without_a_normal_form_is_one_sentence(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [helper.make_node("Upsample", ["x", "s"], ["y"])], [("x", FLOAT, [1]),
                ("s", FLOAT, [1])], [("y", FLOAT, None)], opset=5)  # fmt: skip
    with pytest.raises(Unavailable, match=f"cannot be converted to opset {OPSET}"):
        trace(path, {"x": np.ones(1, np.float32), "s": np.ones(1, np.float32)}, tmp_path, engine="normalized")
