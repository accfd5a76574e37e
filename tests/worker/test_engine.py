"""The engine on small models made here, against onnxruntime by itself, numpy and hand calculation."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from core.errors import NotFound, RunError, Unavailable
from core.formats.onnx_skeleton import LARGE
from core.limits import MIB
from core.trace.types import RunLimits
from core.trace.values import load_value
from tests.worker.running import all_outputs, same, save, trace

FLOAT = TensorProto.FLOAT
X = np.linspace(-3, 3, 13, dtype=np.float32)


@pytest.mark.parametrize(
    ("number", "name", "oracle"),
    [
        (TensorProto.BFLOAT16, "bfloat16", ml_dtypes.bfloat16),
        (TensorProto.FLOAT8E4M3FN, "float8e4m3fn", ml_dtypes.float8_e4m3fn),
        (TensorProto.FLOAT8E5M2, "float8e5m2", ml_dtypes.float8_e5m2),
        (TensorProto.FLOAT8E4M3FNUZ, "float8e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
        (TensorProto.FLOAT16, "float16", np.float16),
        (TensorProto.INT4, "int4", np.int8),
    ],
)
def test_types_that_numpy_lacks_are_captured_as_declared(number: int, name: str, oracle: type, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["small"], to=number),
        helper.make_node("Cast", ["small"], ["back"], to=FLOAT),
    ]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, ["n"])], [("back", FLOAT, None)], opset=21)
    traced = trace(path, {"x": X}, tmp_path)
    value = traced.values["small"]
    assert (traced.result.status, value.dtype, value.shape) == ("complete", name, (13,))
    expected = np.trunc(X + np.copysign(0.5, X)).astype(np.int8) if name == "int4" else X.astype(oracle)
    np.testing.assert_array_equal(traced.array("small").astype(np.float32), expected.astype(np.float32))
    assert value.stats is not None
    assert value.stats.max == float(expected.max())
    assert value.stop - value.start == (7 if name == "int4" else X.size * expected.itemsize)


def test_int4_is_stored_two_in_a_byte(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT4)]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [3])], [("y", TensorProto.INT4, [3])], opset=21)
    traced = trace(path, {"x": np.array([1, -2, 7], np.float32)}, tmp_path)
    assert traced.raw("y") == bytes([0xE1, 0x07])  # low half first: 1, then -2 (0xE), then 7


def test_inputs_of_types_that_numpy_lacks(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["a"], ["a32"], to=FLOAT),
        helper.make_node("Cast", ["b"], ["b32"], to=FLOAT),
        helper.make_node("Cast", ["c"], ["c32"], to=FLOAT),
    ]
    inputs = [("a", TensorProto.BFLOAT16, [2]), ("b", TensorProto.INT4, [3]), ("c", TensorProto.FLOAT8E5M2, [2])]
    path = save(tmp_path / "m.onnx", nodes, inputs, [(f"{n}32", FLOAT, None) for n in "abc"], opset=21)
    given = {
        "a": np.array([1.5, -2], ml_dtypes.bfloat16).view(np.uint16),
        "b": np.array([-8, 7, 3], np.int8),
        "c": np.array([0.5, -4], ml_dtypes.float8_e5m2).view(np.uint8),
    }
    traced = trace(path, given, tmp_path)
    assert traced.array("a32").tolist() == [1.5, -2]
    assert traced.array("b32").tolist() == [-8, 7, 3]
    assert traced.array("c32").tolist() == [0.5, -4]


def test_text_goes_in_and_comes_out(tmp_path: Path) -> None:
    nodes = [helper.make_node("StringConcat", ["a", "a"], ["twice"])]
    path = save(
        tmp_path / "m.onnx", nodes, [("a", TensorProto.STRING, [2])], [("twice", TensorProto.STRING, [2])], opset=20
    )
    traced = trace(path, {"a": np.array(["é", "b\n"], object)}, tmp_path)
    assert traced.array("twice").tolist() == ["éé", "b\nb\n"]
    stats = traced.values["twice"].stats
    assert stats is not None
    assert (stats.count, stats.min) == (2, None)


def test_text_that_is_not_utf8_is_said_so(tmp_path: Path) -> None:
    stored = TensorProto(name="t", data_type=TensorProto.STRING, dims=[1], string_data=[b"\xff"])
    nodes = [helper.make_node("Identity", ["t"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    outputs = [("y", TensorProto.STRING, None), ("z", FLOAT, None)]
    traced = trace(save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [1])], outputs, [stored]), {"x": X[:1]}, tmp_path)
    assert traced.result.status == "complete"
    assert traced.values["y"].reason == "its text is not UTF-8"


def test_sequences_and_optionals_are_summed_up_and_passed_on(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0, keepdims=1),
        helper.make_node("SequenceAt", ["parts", "one"], ["second"]),
        helper.make_node("Optional", ["x"], ["maybe"]),
        helper.make_node("Optional", [], ["nothing"], type=helper.make_tensor_type_proto(FLOAT, None)),
        helper.make_node("OptionalHasElement", ["nothing"], ["has"]),
        helper.make_node("OptionalGetElement", ["maybe"], ["got"]),
    ]
    path = save(
        tmp_path / "m.onnx", nodes, [("x", FLOAT, [3, 2])], [("second", FLOAT, None), ("got", FLOAT, None)],
        [numpy_helper.from_array(np.array(1), "one")], opset=18,
    )  # fmt: skip
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    for limits in (RunLimits(), RunLimits(capture=1)):  # one part, and every node on its own
        traced = trace(path, {"x": x}, tmp_path, limits)
        assert traced.result.status == "complete", traced.result.reason
        parts = traced.values["parts"]
        assert (parts.dtype, parts.shape, parts.stored) == ("sequence(float32)", (3,), False)
        assert parts.reason == "it is a sequence of 3 float32: 1 x 2, 1 x 2, 1 x 2"
        assert traced.array("second").tolist() == [[2, 3]]
        assert traced.values["nothing"].reason == "it is empty"
        assert traced.array("has").tolist() is False
        assert same(traced.array("got"), x)


def custom(tmp_path: Path) -> Path:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Wavelet", ["r"], ["w"], name="wave", domain="com.acme"),
        helper.make_node("Neg", ["w"], ["after"]),
        helper.make_node("Exp", ["r"], ["beside"]),
    ]
    return save(
        tmp_path / "m.onnx", nodes, [("x", FLOAT, [3])], [("after", FLOAT, [3]), ("beside", FLOAT, [3])],
        opsets=[helper.make_opsetid("com.acme", 1)],
    )  # fmt: skip


def test_an_unknown_operator_stops_only_what_depends_on_it(tmp_path: Path) -> None:
    traced = trace(custom(tmp_path), {"x": X[-3:]}, tmp_path)
    result = traced.result
    assert result.status == "partial"
    assert "has no operator 'Wavelet' of domain 'com.acme'; 2 values could not be made." in result.reason
    assert same(traced.array("r"), X[-3:])
    assert traced.values["beside"].stored
    for name in ("w", "after"):
        assert not traced.values[name].stored
        assert "Wavelet" in traced.values[name].reason
    assert [(f.code, f.at) for f in result.findings] == [("run.unsupported", "node g0.n1")]
    with pytest.raises(NotFound, match="Wavelet"):
        traced.array("after")


def test_a_refused_node_is_named_and_the_rest_runs(tmp_path: Path) -> None:
    nodes = [  # the runtime has no Max for int16
        helper.make_node("Identity", ["a"], ["first"]),
        helper.make_node("Max", ["a", "first"], ["largest"], name="pick"),
        helper.make_node("Cast", ["first"], ["last"], to=FLOAT),
    ]
    kind = TensorProto.INT16
    path = save(tmp_path / "m.onnx", nodes, [("a", kind, [2])], [("largest", kind, [2]), ("last", FLOAT, [2])])
    traced = trace(path, {"a": np.array([1, 2], np.int16)}, tmp_path, engine="onnxruntime")
    assert traced.result.status == "partial"
    assert traced.result.reason.startswith("Max 'pick' is refused by the runtime: Could not find an implementation")
    assert traced.array("last").tolist() == [1, 2]


def test_a_node_that_fails_while_it_runs(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["picked"], name="pick"),
        helper.make_node("Neg", ["picked"], ["after"]),
        helper.make_node("Neg", ["x"], ["beside"]),
    ]
    path = save(
        tmp_path / "m.onnx", nodes, [("x", FLOAT, [3]), ("i", TensorProto.INT64, [1])], [("after", FLOAT, None)]
    )
    traced = trace(path, {"x": X[:3], "i": np.array([9])}, tmp_path)
    assert traced.result.status == "failed"
    assert traced.result.reason.startswith("Gather 'pick' failed: indices element out of data bounds, idx=9")
    assert traced.result.reason.endswith("2 values could not be made.")
    assert traced.array("beside").tolist() == (-X[:3]).tolist()


def test_a_version_the_runtime_does_not_know_is_one_sentence(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", FLOAT, [1])], [], opset=99)
    with pytest.raises(Unavailable, match=r"cannot run this model: .*Opset 99"):
        trace(path, {"x": X[:1]}, tmp_path)


def test_random_numbers_repeat_and_are_said_to_be_seeded_here(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("RandomNormal", [], ["noise"], shape=[4]),
        helper.make_node("RandomUniform", [], ["own"], shape=[4], seed=3.0),
        helper.make_node("Add", ["x", "noise"], ["y"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [4])], [("y", FLOAT, [4]), ("own", FLOAT, [4])])
    one, two = (trace(path, {"x": X[:4]}, tmp_path, RunLimits(capture=size)) for size in (MIB, 1))
    assert same(one.array("noise"), two.array("noise"))
    assert same(one.array("y"), X[:4] + one.array("noise"))
    assert same(one.array("own"), all_outputs(path, {"x": X[:4]})["own"])
    finding = next(f for f in one.result.findings if f.code == "run.random")
    assert "g0.n0 draw random numbers without a seed" in finding.message


def test_the_budget_keeps_what_was_asked_for_then_outputs_then_the_first(tmp_path: Path) -> None:
    names = [f"v{i}" for i in range(6)]
    nodes = [helper.make_node("Neg", [a], [b]) for a, b in zip(["x", *names], names, strict=False)]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [256])], [("v5", FLOAT, [256])])
    model_ids = {v.name: v.id for v in trace(path, {"x": np.zeros(256, np.float32)}, tmp_path).result.values}
    x = np.arange(256, dtype=np.float32)
    traced = trace(path, {"x": x}, tmp_path, RunLimits(store=4 * 1024), keep=[model_ids["v3"]])
    assert [name for name, value in traced.values.items() if value.stored] == ["x", "v0", "v3", "v5"]
    assert traced.values["v1"].reason == "the 0.00391 MiB for stored values are used up"
    assert all(value.stats is not None and value.stats.count == 256 for value in traced.values.values())
    assert same(traced.array("v3"), x)
    assert Path(traced.result.spool, "values.bin").stat().st_size == 4 * 1024


def test_outputs_that_are_stored_in_the_file(tmp_path: Path) -> None:
    stored = numpy_helper.from_array(X, "weight")
    nodes = [
        helper.make_node("Constant", [], ["held"], value=numpy_helper.from_array(np.arange(3))),
        helper.make_node("Constant", [], ["number"], value_float=2.5),
        helper.make_node("Mul", ["x", "number"], ["y"]),
    ]
    outputs = [("weight", FLOAT, [13]), ("held", TensorProto.INT64, [3]), ("number", FLOAT, []), ("y", FLOAT, None)]
    traced = trace(save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [13])], outputs, [stored]), {"x": X}, tmp_path)
    assert same(traced.array("weight"), X)
    assert traced.array("held").tolist() == [0, 1, 2]
    assert traced.array("number").tolist() == 2.5
    assert same(traced.array("y"), X * np.float32(2.5))


def test_an_input_with_a_stored_default_may_be_left_out_or_given(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["y"])]
    stored = numpy_helper.from_array(np.ones(3, np.float32), "b")
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [3]), ("b", FLOAT, [3])], [("y", FLOAT, [3])], [stored])
    zeros = np.zeros(3, np.float32)
    assert trace(path, {"x": zeros}, tmp_path).array("y").tolist() == [1, 1, 1]
    assert trace(path, {"x": zeros, "b": zeros}, tmp_path).array("y").tolist() == [0, 0, 0]


def test_functions_of_the_model_run(tmp_path: Path) -> None:
    twice = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    nodes = [helper.make_node("Twice", ["x"], ["y"], domain="own"), helper.make_node("Neg", ["y"], ["z"])]
    path = save(
        tmp_path / "m.onnx", nodes, [("x", FLOAT, [13])], [("z", FLOAT, [13])],
        opsets=[helper.make_opsetid("own", 1)], functions=[twice],
    )  # fmt: skip
    for limits in (RunLimits(), RunLimits(capture=1)):
        traced = trace(path, {"x": X}, tmp_path, limits)
        assert same(traced.array("y"), X + X)
        assert same(traced.array("z"), -(X + X))


def test_nodes_in_an_order_that_cannot_run_are_sorted(tmp_path: Path) -> None:
    nodes = [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Abs", ["x"], ["a"])]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [13])], [("y", FLOAT, [13])])
    traced = trace(path, {"x": X}, tmp_path, RunLimits(capture=1))
    assert same(traced.array("y"), -np.abs(X))


def with_weights(path: Path, weights: np.ndarray, *, external: str = "") -> Path:
    """A MatMul whose weights are long past the size that is embedded, at an odd byte of the file."""
    tensor = numpy_helper.from_array(weights, "w")
    body = helper.make_graph([helper.make_node("MatMul", ["x", "inner"], ["t"])], "then", [], [_float("t")])
    body.node.insert(0, helper.make_node("Constant", [], ["inner"], value=numpy_helper.from_array(weights)))
    other = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["e"])], "else", [], [_float("e")])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], doc_string="odd" * 3),
        helper.make_node("If", ["yes"], ["z"], then_branch=body, else_branch=other),
    ]
    yes = numpy_helper.from_array(np.array(True), "yes")
    save(path, nodes, [("x", FLOAT, [2, 128])], [("y", FLOAT, None), ("z", FLOAT, None)], [tensor, yes])
    if external:
        model = onnx.load(path)
        onnx.save_model(model, path, save_as_external_data=True, location=external, size_threshold=1024)
    return path


def _float(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, None)


@pytest.mark.parametrize("external", ["", "weights.bin"])
def test_large_weights_stay_where_they_are(external: str, tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((128, 128)).astype(np.float32)
    assert weights.nbytes > LARGE
    path = with_weights(tmp_path / "m.onnx", weights, external=external)
    x = np.random.default_rng(1).standard_normal((2, 128)).astype(np.float32)
    expected = all_outputs(path, {"x": x})
    for limits in (RunLimits(), RunLimits(capture=1)):
        traced = trace(path, {"x": x}, tmp_path, limits, latency=True)
        assert traced.result.status == "complete", traced.result.reason
        assert same(traced.array("y"), expected["y"])
        assert same(traced.array("z"), expected["z"])
        timed = {node.id: node.latency_us for node in traced.result.nodes}
        assert timed["g0.n0"] is not None


def test_a_model_reached_through_a_link_runs(tmp_path: Path) -> None:
    weights = np.eye(128, dtype=np.float32)
    (tmp_path / "blobs").mkdir()
    with_weights(tmp_path / "blobs" / "a1b2", weights)
    link = tmp_path / "model.onnx"
    link.symlink_to(tmp_path / "blobs" / "a1b2")
    x = np.ones((2, 128), np.float32)
    assert same(trace(link, {"x": x}, tmp_path).array("y"), x)


def test_data_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(128 * 128 * 4))
    folder = tmp_path / "model"
    folder.mkdir()
    path = with_weights(folder / "m.onnx", np.eye(128, dtype=np.float32), external="weights.bin")
    model = onnx.load(path, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = "../secret.bin"
    path.write_bytes(model.SerializeToString())
    traced = trace(path, {"x": np.ones((2, 128), np.float32)}, tmp_path)
    assert traced.result.status in ("failed", "partial")
    assert not traced.values["y"].stored


def test_stored_values_are_read_only_while_they_are_there(tmp_path: Path) -> None:
    path = save(
        tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", FLOAT, [13])], [("y", FLOAT, None)]
    )
    traced = trace(path, {"x": X}, tmp_path)
    file = Path(traced.result.spool, "values.bin")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RunError, match="cut off"):
        traced.array("y")
    file.unlink()
    with pytest.raises(RunError, match="are gone"):
        load_value(traced.result, traced.values["y"])
