import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from core.errors import BrokenFile, Unavailable
from core.ir import ByteRange, Model, Quantization, Tensor
from core.opening import open_model
from core.source import Source
from core.statistics import affine, blocks
from tests.statistics import oracle

RANDOM = np.random.default_rng(11)


def dequantize(path, stored, scale, zero=None, **attributes):
    """A model whose one operator dequantizes its weight, and what ONNX's reference makes of it."""
    tensors = [numpy_helper.from_array(stored, "w"), numpy_helper.from_array(scale, "s")]
    if zero is not None:
        tensors.append(numpy_helper.from_array(zero, "z"))
    node = helper.make_node("DequantizeLinear", [t.name for t in tensors], ["y"], **attributes)
    graph = helper.make_graph(
        [node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, stored.shape)], tensors
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, path)
    return open_model(path), ReferenceEvaluator(model).run(None, {})[0]


CASES = {
    "one scale": ((6, 10), np.float32(0.25), np.int8(3), {}),
    "rows": ((6, 10), RANDOM.random(6, np.float32), RANDOM.integers(-9, 9, 6).astype(np.int8), {"axis": 0}),
    "columns by default": ((6, 10, 2), RANDOM.random(10, np.float32), None, {}),
    "negative axis": ((6, 10), RANDOM.random(10, np.float32), None, {"axis": -1}),
    "blocks along the last axis": ((6, 12), RANDOM.random((6, 3), np.float32), None, {"axis": 1, "block_size": 4}),
    "blocks along the first axis": ((12, 5, 3), RANDOM.random((3, 5, 3), np.float32),
                                    RANDOM.integers(-9, 9, (3, 5, 3)).astype(np.int8), {"axis": 0, "block_size": 4}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_onnx(name, tmp_path) -> None:
    shape, scale, zero, attributes = CASES[name]
    stored = RANDOM.integers(-128, 128, shape).astype(np.int8)
    zero = None if zero is None else np.asarray(zero)
    model, expected = dequantize(tmp_path / "m.onnx", stored, np.asarray(scale), zero, **attributes)
    found = affine.affine_of(model, 0)
    assert found is not None
    assert found.source == "g0.n0"
    np.testing.assert_array_equal(np.concatenate(list(affine.pieces(model, 0, found))).reshape(shape), expected)
    oracle.check(affine.of_tensor(model, 0), expected, 2.0**-126)


def test_weights_of_quantized_operators(tmp_path) -> None:
    w, scale = RANDOM.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8), RANDOM.random(4, np.float32)
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    one, none = np.float32(0.5), np.int8(0)
    stored = dict(zip(names[1:], (one, none, w, scale, np.zeros(4, np.int8), one, none), strict=True))
    graph = helper.make_graph(
        [helper.make_node("QLinearConv", names, ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in stored.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "conv.onnx")
    model = open_model(tmp_path / "conv.onnx")
    index = next(i for i, t in enumerate(model.tensors) if t.name == "w")
    oracle.check(affine.of_tensor(model, index), w.astype(np.float32) * scale[:, None, None, None], 2.0**-126)
    with pytest.raises(Unavailable, match="no scale"):
        affine.of_tensor(model, next(i for i, t in enumerate(model.tensors) if t.name == "ws"))


def test_a_tensor_that_says_it_itself(tmp_path) -> None:
    (tmp_path / "w").write_bytes(np.arange(12, dtype=np.uint8).tobytes())
    quantization = Quantization((0.5, 2.0, 3.0), (1,), axis=0)
    tensor = Tensor("w", "uint8", (3, 4), ByteRange(0, 0, 12), quantization=quantization)
    wrong = Tensor("w", "uint8", (4, 3), ByteRange(0, 0, 12), quantization=quantization)
    model = Model("t", "t", str(tmp_path / "w"), (Source(tmp_path / "w"),), {}, (tensor, wrong), (), {})
    expected = (np.arange(12).reshape(3, 4) - 1) * np.array([[0.5], [2], [3]], np.float32)
    oracle.check(affine.of_tensor(model, 0), expected.astype(np.float32))
    with pytest.raises(BrokenFile, match="3 scales and 1 zero points"):
        affine.of_tensor(model, 1)


@pytest.mark.parametrize("most", [5, 1000])
@pytest.mark.parametrize("axis", [0, 1])
def test_onnx_blocks(axis, most, tmp_path) -> None:
    stored = RANDOM.integers(-128, 128, (12, 20)).astype(np.int8)
    scale = RANDOM.random((3, 20) if axis == 0 else (12, 5), np.float32)
    model, numbers = dequantize(tmp_path / "m.onnx", stored, scale, axis=axis, block_size=4)
    found = blocks.of_tensor(model, 0, most=most)
    rows = numbers.reshape(3, 4, 20).transpose(0, 2, 1).reshape(60, 4) if axis == 0 else numbers.reshape(60, 4)
    assert (found.size, found.blocks, found.step, found.axis) == (4, 60, 12 if most == 5 else 1, axis)
    shown = rows[:: found.step].astype(np.float64)
    np.testing.assert_array_equal(found.min, shown.min(1))
    np.testing.assert_array_equal(found.absmax, np.abs(shown).max(1))
    np.testing.assert_allclose(found.std, shown.std(1), rtol=1e-12)
    np.testing.assert_array_equal(found.scale, scale.reshape(-1)[:: found.step])


def test_no_blocks(tmp_path) -> None:
    model, _ = dequantize(tmp_path / "m.onnx", np.zeros((2, 3), np.int8), np.ones(3, np.float32))
    with pytest.raises(Unavailable, match="not quantized in blocks"):
        blocks.of_tensor(model, 0)
