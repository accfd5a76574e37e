from pathlib import Path

import gguf
import numpy as np
import onnx
import pytest
from gguf.constants import GGMLQuantizationType
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

from core.errors import UsageError
from core.ir import ByteRange, Model, Tensor
from core.opening import open_model
from core.source import Source
from core.statistics import survey, texts
from core.statistics.copies import NearCopy
from core.statistics.scan import scan

RANDOM = np.random.default_rng(4)


def codes(path: Path, name: str) -> list[str]:
    model = open_model(path)
    index = next(i for i, t in enumerate(model.tensors) if t.name == name)
    return [f.code for f in survey.of_tensor(model, index)]


def test_everything_that_is_wrong_with_a_weight(tmp_path: Path) -> None:
    good = RANDOM.standard_normal((64, 48)).astype(np.float32)
    dead_row, loud_column = good.copy(), good.copy()
    dead_row[7] = 0
    loud_column[:, 5] *= 50
    flat = (RANDOM.standard_normal((64, 2)) @ RANDOM.standard_normal((2, 48))).astype(np.float32)
    holes = good.copy()
    holes[0, 0] = np.nan
    weights = {"good": good, "dead": dead_row, "loud": loud_column, "flat": flat, "holes": holes,
               "tiny": (good * np.float32(1e-40)).astype(np.float32)}  # fmt: skip
    save_file(weights, tmp_path / "m.safetensors")
    found = {name: codes(tmp_path / "m.safetensors", name) for name in weights}
    assert found == {
        "good": [], "dead": ["values.dead_channels"], "loud": ["values.outlier_channels"],
        "flat": ["values.rank_collapse"], "holes": ["values.non_finite"], "tiny": ["values.subnormal"],
    }  # fmt: skip
    model = open_model(tmp_path / "m.safetensors")
    flat_index = next(i for i, t in enumerate(model.tensors) if t.name == "flat")
    norm = np.linalg.svd(flat.astype(np.float64), compute_uv=False)[0]
    assert f"spectral norm {norm:.4g}" in survey.of_tensor(model, flat_index)[0].message
    whole = survey.of_model(model, dict(scan(model)))
    assert [(f.code, f.at) for f in whole] == [
        ("values.non_finite", "tensor holes"), ("values.subnormal", "tensor tiny"),
    ]  # fmt: skip


def test_scales_of_blocks(tmp_path: Path) -> None:
    numbers = RANDOM.standard_normal((40, 64)).astype(np.float32)

    def found(scaled: np.ndarray) -> list[str]:
        raw = gguf.quantize(np.ascontiguousarray(scaled), GGMLQuantizationType.Q8_0)
        (tmp_path / "w").write_bytes(raw.tobytes())
        tensor = Tensor("w", "float32", scaled.shape, ByteRange(0, 0, raw.size), encoding="ggml.q8_0")
        model = Model("gguf", "GGUF", str(tmp_path / "w"), (Source(tmp_path / "w"),), {}, (tensor,), (), {})
        return [f.message for f in survey.of_tensor(model, 0) if f.code == "values.suspicious_scale"]

    assert found(numbers) == []
    numbers[3, 32:] *= 5000  # one block of 80
    numbers[9, :32] *= 1e-3  # its scale is below the smallest normal float16, 2**-14
    assert [message.split(" scales ")[0] for message in found(numbers)] == ["1 of 80", "1 of 80"]
    assert "subnormal" in found(numbers)[0]
    assert "more than 1000 times the median" in found(numbers)[1]


def test_scales_of_channels() -> None:
    def found(*scales: float) -> list[tuple[str, str]]:
        return [(f.severity, f.message) for f in survey.from_scales("w", np.array(scales), 2.0**-126)]

    assert found(0.1, 0.2, 0.3) == []
    assert found(0.1, np.inf, np.nan) == [("error", "2 of 3 scales are not finite.")]
    assert found(0.1, -0.2) == [("warning", "1 of 2 scales are negative.")]
    assert found(0.0)[0][1] == "1 of 1 scales are zero: everything they scale becomes zero."
    assert "subnormal" in found(1e-39, 0.1)[0][1]
    assert survey.from_scales("w", np.array([0.1, -0.2]), 2.0**-126, signed=True) == []


def test_scales_of_an_operator(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["y"], axis=0)], "g", [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(np.arange(6, dtype=np.int8).reshape(2, 3), "w"),
         numpy_helper.from_array(np.array([0.5, np.inf], np.float32), "s")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    assert "values.suspicious_scale" in codes(tmp_path / "m.onnx", "w")


def test_tied_weights() -> None:
    both = ByteRange(0, 0, 64)
    tensors = [
        Tensor("embed", "float32", (4, 4), both), Tensor("head", "float32", (4, 4), both),
        Tensor("a", "float32", (2,), ByteRange(0, 64, 72), storage=5),
        Tensor("b", "float32", (1, 2), ByteRange(0, 64, 72), storage=5),
        Tensor("alone", "float32", (2,), ByteRange(0, 72, 80)),
        Tensor("s", "float32", (), ByteRange(0, 80, 84)), Tensor("t", "float32", (), ByteRange(0, 80, 84)),
    ]  # fmt: skip
    found = survey.tied(tensors)
    assert [(f.code, f.at) for f in found] == [("values.tied", "tensor embed"), ("values.tied", "tensor a")]
    assert found[0].message == "It shares its 64 stored bytes with 'head': a change of one is a change of all."


def test_near_copies_as_findings() -> None:
    found = survey.from_copies({0: "a", 1: "b"}, [NearCopy(0, 1, 0.999, 0.0125), NearCopy(0, 1, 1.0, 0.0)])
    assert [f.message for f in found] == ["It differs from 'b' by 1.25% of its norm (cosine 0.999000)."]


def test_strings(tmp_path: Path) -> None:
    words = np.array([["cat", "dog", ""], ["cat", "zebra", "été"]], object)
    tensor = helper.make_tensor("words", TensorProto.STRING, words.shape, [w.encode() for w in words.ravel()])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["words"], ["y"])], "g", [],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [2, 3])], [tensor],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    model = open_model(tmp_path / "m.onnx")
    found = texts.of_tensor(model, 0)
    assert (found.count, found.empty, found.different, found.all_told) == (6, 1, 5, True)
    assert (found.shortest, found.longest, found.mean) == (0, 5, 17 / 6)
    assert found.frequent[0] == ("cat", 2)
    assert survey.of_tensor(model, 0) == []
    with pytest.raises(UsageError, match="not strings"):
        texts.of_tensor(model, Tensor("x", "float32", (1,), bytes(4)))
