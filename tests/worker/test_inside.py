"""Values inside If, Loop, Scan and functions, against hand calculation, numpy and onnxruntime's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from core.opening import open_model
from core.trace.types import RunLimits, TracedValue, TraceResult
from core.trace.values import load_value
from tests.corpus import fetch
from tests.worker.running import default_inputs, plain_options, same, save, trace

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info = helper.make_tensor_value_info
X = np.array([1, -2, 3], np.float32)
BIAS = np.array([10, 20, 30], np.float32)


def within(result: TraceResult, name: str) -> dict[int, TracedValue]:
    """Values of that name inside subgraphs, by step."""
    return {value.step: value for value in result.values if value.name == name and not value.id.startswith("g0.")}


def array(result: TraceResult, name: str, step: int = 0) -> np.ndarray:
    return load_value(result, within(result, name)[step])


def branches(path: Path) -> Path:
    """y = |2x| where ``yes``, else -(x + bias); both take values and stored tensors from around them."""
    bias = numpy_helper.from_array(BIAS, "bias")
    then = helper.make_graph(
        [helper.make_node("Add", ["a", "a"], ["twice"]), helper.make_node("Abs", ["twice"], ["t"])], "then", [],
        [info("t", FLOAT, None)],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Add", ["a", "bias"], ["sum"]), helper.make_node("Neg", ["sum"], ["e"])], "else", [],
        [info("e", FLOAT, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other),
        helper.make_node("Neg", ["y"], ["z"]),
    ]
    return save(path, nodes, [("x", FLOAT, [3]), ("yes", BOOL, [])], [("z", FLOAT, None)], [bias])


@pytest.mark.parametrize("capture", [1 << 20, 1])
def test_the_taken_branch_is_captured_and_the_other_is_not(capture: int, tmp_path: Path) -> None:
    path = branches(tmp_path / "m.onnx")
    for yes, found, absent, y in ((True, "twice", "sum", abs(X + X)), (False, "sum", "twice", -(X + BIAS))):
        traced = trace(path, {"x": X, "yes": np.array(yes)}, tmp_path, RunLimits(capture=capture))
        assert (traced.result.status, traced.result.reason) == ("complete", "")
        value = within(traced.result, found)[0]
        assert value.path == "g0.n1"
        assert value.node.endswith(".n0")
        assert not within(traced.result, absent)
        assert array(traced.result, found).tolist() == (X + X if yes else X + BIAS).tolist()
        assert traced.array("y").tolist() == y.tolist()
        assert traced.array("z").tolist() == (-y).tolist()


def counting(path: Path, rounds: int | None, *, custom: bool = False) -> Path:
    """v goes x, 2x+1, 4x+3, ...; stops by itself when its sum is above 100; ``all`` stacks the doubled ones."""
    body_nodes = [
        helper.make_node("Add", ["v", "v"], ["double"]),
        helper.make_node("Add", ["double", "one"], ["next"]),
        helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0),
        helper.make_node("Less", ["total", "hundred"], ["on"]),
        helper.make_node("Wave" if custom else "Identity", ["double"], ["row"], domain="com.acme" if custom else ""),
    ]
    body = helper.make_graph(
        body_nodes, "body", [info("i", INT, []), info("go", BOOL, []), info("v", FLOAT, [3])],
        [info("on", BOOL, []), info("next", FLOAT, [3]), info("row", FLOAT, [3])],
    )  # fmt: skip
    stored = [
        numpy_helper.from_array(np.float32(1), "one"), numpy_helper.from_array(np.float32(100), "hundred"),
        numpy_helper.from_array(np.array(True), "true"),
    ]  # fmt: skip
    if rounds is not None:
        stored.append(numpy_helper.from_array(np.array(rounds), "rounds"))
    nodes = [helper.make_node("Loop", ["" if rounds is None else "rounds", "true", "x"], ["y", "all"], body=body)]
    opsets = [helper.make_opsetid("com.acme", 1)] if custom else []
    return save(path, nodes, [("x", FLOAT, [3])], [("y", FLOAT, None), ("all", FLOAT, None)], stored, opsets=opsets)


def test_iterations_of_a_loop_by_hand(tmp_path: Path) -> None:
    x = np.array([1, 2, 3], np.float32)  # sums of next: 15, 33, 69, 141: four iterations
    result = trace(counting(tmp_path / "m.onnx", None), {"x": x}, tmp_path).result
    assert result.status == "complete"
    assert sorted(within(result, "double")) == [0, 1, 2, 3]
    v = x
    for step in range(4):
        assert array(result, "i", step).tolist() == step
        assert array(result, "v", step).tolist() == v.tolist()
        assert array(result, "double", step).tolist() == (2 * v).tolist()
        v = 2 * v + 1
        assert array(result, "total", step).tolist() == v.sum()
        assert within(result, "total")[step].path == f"g0.n0[{step}]"
    assert array(result, "on", 3).tolist() is False
    assert not [f for f in result.findings if f.code == "run.iterations"]


def test_chosen_iterations_alone_are_kept(tmp_path: Path) -> None:
    x = np.zeros(3, np.float32)  # v = 2^i - 1, the sum stays below 100 for five iterations
    result = trace(counting(tmp_path / "m.onnx", 5), {"x": x}, tmp_path, iterations=(1, 3)).result
    assert sorted(within(result, "double")) == [1, 3]
    assert array(result, "v", 3).tolist() == [7, 7, 7]
    assert [f.code for f in result.findings] == ["run.iterations"]
    few = trace(counting(tmp_path / "m.onnx", 2), {"x": x}, tmp_path, iterations=(7,)).result
    assert within(few, "double") == {}
    assert few.status == "complete"


def test_an_unknown_operator_inside_a_loop_stops_what_depends_on_it(tmp_path: Path) -> None:
    result = trace(counting(tmp_path / "m.onnx", 5, custom=True), {"x": X}, tmp_path).result
    assert result.status == "partial"
    assert "no operator 'Wave' of domain 'com.acme'" in result.reason
    assert array(result, "double").tolist() == (X + X).tolist()
    assert "Wave" in next(v.reason for v in result.values if v.name == "y")


def scanning(path: Path, axis: int, direction: int) -> Path:
    """Running sums along an axis of a 2 x 3 matrix, forwards or backwards."""
    size = [3 if axis == 0 else 2]
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "row"], ["next"]), helper.make_node("Mul", ["row", "row"], ["square"])], "body",
        [info("sum", FLOAT, size), info("row", FLOAT, size)], [info("next", FLOAT, size), info("square", FLOAT, size)],
    )  # fmt: skip
    node = helper.make_node(
        "Scan", ["start", "x"], ["total", "squares"], body=body, num_scan_inputs=1, scan_input_axes=[axis],
        scan_input_directions=[direction],
    )  # fmt: skip
    return save(
        path, [node], [("start", FLOAT, None), ("x", FLOAT, [2, 3])], [("total", FLOAT, None), ("squares", FLOAT, None)]
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("direction", [0, 1])
def test_iterations_of_a_scan_along_any_axis(axis: int, direction: int, tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    rows = [np.take(x, at, axis) for at in range(x.shape[axis])][:: -1 if direction else 1]
    path = scanning(tmp_path / "m.onnx", axis, direction)
    traced = trace(path, {"start": np.zeros(rows[0].size, np.float32), "x": x}, tmp_path)
    assert traced.result.status == "complete", traced.result.reason
    assert sorted(within(traced.result, "row")) == list(range(len(rows)))
    total = np.zeros(rows[0].size, np.float32)
    for step, row in enumerate(rows):
        assert array(traced.result, "row", step).tolist() == row.tolist()
        assert array(traced.result, "square", step).tolist() == (row * row).tolist()
        total = total + row
        assert array(traced.result, "next", step).tolist() == total.tolist()
    assert traced.array("total").tolist() == total.tolist()


def test_a_branch_inside_a_loop_numbers_its_executions(tmp_path: Path) -> None:
    """v + 1 in even iterations, v * 10 in odd ones."""
    up = helper.make_graph([helper.make_node("Add", ["v", "one"], ["up"])], "up", [], [info("up", FLOAT, None)])
    ten = helper.make_graph([helper.make_node("Mul", ["v", "ten"], ["big"])], "ten", [], [info("big", FLOAT, None)])
    body = helper.make_graph(
        [
            helper.make_node("Mod", ["i", "two"], ["odd"]), helper.make_node("Cast", ["odd"], ["isodd"], to=BOOL),
            helper.make_node("If", ["isodd"], ["w"], then_branch=ten, else_branch=up),
            helper.make_node("Identity", ["go"], ["on"]),
        ], "body", [info("i", INT, []), info("go", BOOL, []), info("v", FLOAT, [])],
        [info("on", BOOL, []), info("w", FLOAT, [])],
    )  # fmt: skip
    stored = [numpy_helper.from_array(np.float32(1), "one"), numpy_helper.from_array(np.float32(10), "ten"),
              numpy_helper.from_array(np.int64(2), "two"), numpy_helper.from_array(np.int64(5), "rounds")]  # fmt: skip
    nodes = [helper.make_node("Loop", ["rounds", "", "x"], ["y"], body=body)]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [])], [("y", FLOAT, None)], stored)
    traced = trace(path, {"x": np.float32(0).reshape(())}, tmp_path)
    assert traced.array("y").tolist() == 111  # 0, 1, 10, 11, 110, 111
    assert [array(traced.result, "up", step).tolist() for step in range(3)] == [1, 11, 111]
    assert [array(traced.result, "big", step).tolist() for step in range(2)] == [10, 110]
    assert within(traced.result, "big")[1].path == "g0.n0[3]/g1.n2"
    keys = [(value.id, value.step) for value in traced.result.values]
    assert len(keys) == len(set(keys))


def test_calls_of_a_function_are_told_apart(tmp_path: Path) -> None:
    """Scale(a) = factor * a + shift, where factor is an attribute with a default and shift an input."""
    factor = helper.make_node("Constant", [], ["f"])
    factor.attribute.append(onnx.AttributeProto(name="value_float", type=1, ref_attr_name="factor"))
    nodes = [factor, helper.make_node("Mul", ["a", "f"], ["scaled"]), helper.make_node("Add", ["scaled", "s"], ["b"])]
    function = helper.make_function(
        "own", "Scale", ["a", "s"], ["b"], nodes, [helper.make_opsetid("", 17)],
        attribute_protos=[helper.make_attribute("factor", 2.0)],
    )  # fmt: skip
    calls = [
        helper.make_node("Scale", ["x", "shift"], ["y"], domain="own"),
        helper.make_node("Scale", ["y", "shift"], ["z"], domain="own", factor=3.0),
    ]
    path = save(
        tmp_path / "m.onnx", calls, [("x", FLOAT, [3])], [("z", FLOAT, [3])],
        [numpy_helper.from_array(np.float32(1), "shift")], opsets=[helper.make_opsetid("own", 1)], functions=[function],
    )  # fmt: skip
    traced = trace(path, {"x": X}, tmp_path)
    assert traced.result.status == "complete", traced.result.reason
    assert array(traced.result, "scaled", 0).tolist() == (2 * X).tolist()
    assert array(traced.result, "scaled", 1).tolist() == (3 * (2 * X + 1)).tolist()
    assert [within(traced.result, "scaled")[step].path for step in (0, 1)] == ["g0.n0", "g0.n1"]
    expected = ort.InferenceSession(path.read_bytes(), plain_options()).run(None, {"x": X})[0]
    assert same(traced.array("z"), expected)


def test_deep_nesting_ends_well(tmp_path: Path) -> None:
    inner = helper.make_graph([helper.make_node("Neg", ["x"], ["o0"])], "b0", [], [info("o0", FLOAT, None)])
    for depth in range(1, 21):
        node = helper.make_node("If", ["yes"], [f"o{depth}"], then_branch=inner, else_branch=inner)
        node.attribute[0].g.CopyFrom(
            helper.make_graph(
                [helper.make_node("Identity", ["x"], [f"e{depth}"])], "e", [], [info(f"e{depth}", FLOAT, None)]
            )
        )
        inner = helper.make_graph([node], f"b{depth}", [], [info(f"o{depth}", FLOAT, None)])
    stored = [numpy_helper.from_array(np.array(True), "yes")]
    path = save(tmp_path / "m.onnx", list(inner.node), [("x", FLOAT, [3])], [("o20", FLOAT, None)], stored)
    traced = trace(path, {"x": X}, tmp_path)
    assert traced.result.status == "complete", traced.result.reason
    assert traced.array("o20").tolist() == (-X).tolist()
    assert within(traced.result, "o10")


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["silero_vad", "openwakeword_silero_vad"])
def test_a_real_branch_is_onnxruntimes_own(name: str, tmp_path: Path) -> None:
    """The branch that silero takes, cut out and run by onnxruntime with all its values as outputs."""
    path = fetch(name)
    model = open_model(path)
    inputs = default_inputs(model)
    model.close()
    traced = trace(path, inputs, tmp_path)
    assert traced.result.status == "complete", traced.result.reason
    proto = onnx.load(path)
    place = next(at for at, node in enumerate(proto.graph.node) if node.op_type == "If")
    node = proto.graph.node[place]
    flag = bool(traced.array(node.input[0]))
    branch = next(a.g for a in node.attribute if a.name == ("then_branch" if flag else "else_branch"))
    expected = outputs_of(proto, branch, inputs)
    inside = {v.name: v for v in traced.result.values if v.path == f"g0.n{place}" and v.stored}
    assert len(inside) > 40
    wrong = [key for key, value in inside.items() if key in expected and not same(load_value(traced.result, value), expected[key])]  # fmt: skip
    assert not wrong
    assert len(inside.keys() & expected.keys()) > 40


def outputs_of(proto: onnx.ModelProto, branch: onnx.GraphProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    whole = onnx.ModelProto()
    whole.CopyFrom(proto)
    del whole.graph.node[:], whole.graph.output[:]
    constants = [node for node in proto.graph.node if node.op_type == "Constant"]
    whole.graph.node.extend([*constants, *branch.node])
    whole.graph.initializer.extend(branch.initializer)
    for node in branch.node:
        if node.op_type != "Constant":
            whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    session = ort.InferenceSession(whole.SerializeToString(), plain_options())
    names = [output.name for output in session.get_outputs()]
    feeds = {item.name: inputs[item.name] for item in session.get_inputs()}
    return dict(zip(names, session.run(names, feeds), strict=True))
