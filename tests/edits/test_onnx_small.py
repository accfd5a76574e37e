"""Edits where they go wrong: subgraph captures, clashes, shared weights, functions, missing names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from core.edits.kinds import (
    AddOutput,
    ConvertFloat,
    DeleteNodes,
    ExtractSubgraph,
    FixDimension,
    InsertNode,
    InsertQuantization,
    ReconnectInput,
    RemoveAttribute,
    RemoveNode,
    RemoveOutput,
    RenameGraph,
    RenameNode,
    RenameValue,
    ReplaceOperator,
    ReplaceTensor,
    ScaleTensor,
    SetAttribute,
    SetElements,
)
from core.errors import NotFound, Unavailable, UsageError
from tests.edits.nets import conditional, document, edited, proto_of, run, shared, tried, with_function

X = np.array([[1, 2, -9], [0, 5, 1]], np.float32)
YES, NO = np.array(True), np.array(False)


def test_a_renamed_value_is_followed_into_subgraphs(tmp_path: Path) -> None:
    path = conditional(tmp_path)
    made = proto_of(edited(path, RenameValue("sum", "total"), RenameValue("w", "weight"), RenameValue("y", "out")))
    for cond in (YES, NO):
        before, after = run(path, {"x": X, "cond": cond}), run(made, {"x": X, "cond": cond})
        assert after["out"].tobytes() == before["y"].tobytes()
    branch = next(item.g for item in made.graph.node[1].attribute if item.name == "then_branch")
    assert list(branch.node[0].input) == ["total"]
    assert made.graph.initializer[0].name == "weight"


def test_a_name_in_use_anywhere_around_is_refused(tmp_path: Path) -> None:
    path = conditional(tmp_path)
    for taken in ("w", "y", "r", "t"):  # r and t are made inside the branches
        with pytest.raises(UsageError, match="in use"):
            tried(path, RenameValue("sum", taken))
    with pytest.raises(UsageError, match="another node"):
        tried(path, RenameNode("add", "choose"))
    with pytest.raises(NotFound, match="no value 'gone'"):
        tried(path, RenameValue("gone", "here"))


def test_values_inside_a_branch_are_renamed_there_only(tmp_path: Path) -> None:
    path = conditional(tmp_path)
    model = document(path)
    index = next(i for i, graph in enumerate(model.graphs()) if graph.name == "then")
    made = proto_of(
        edited(path, RenameValue("r", "rect", index), RenameGraph("when_true", index), RenameNode("relu", "R"))
    )
    branch = next(item.g for item in made.graph.node[1].attribute if item.name == "then_branch")
    assert (branch.name, branch.node[0].name, list(branch.node[0].output)) == ("when_true", "R", ["rect"])
    assert run(made, {"x": X, "cond": YES})["y"].tobytes() == run(path, {"x": X, "cond": YES})["y"].tobytes()


def test_a_node_inserted_behind_a_captured_value_is_seen_by_the_branch(tmp_path: Path) -> None:
    path = conditional(tmp_path)
    made = proto_of(edited(path, InsertNode("sum", "Neg", {})))
    # else-branch: y = sum, so it is negated; then-branch: relu(-(x + w)) * w
    total = X + np.array([1, -2, 3], np.float32)
    assert np.array_equal(run(made, {"x": X, "cond": NO})["y"], -total)
    assert np.array_equal(
        run(made, {"x": X, "cond": YES})["y"], np.maximum(-total, 0) * np.array([1, -2, 3], np.float32)
    )


def test_a_node_can_be_inserted_before_one_consumer_only(tmp_path: Path) -> None:
    path = shared(tmp_path)
    x = np.ones((2, 4), np.float32)
    made = proto_of(edited(path, InsertNode("a", "Neg", {}, ["g0.n3"])))
    before, after = run(path, {"x": x}), run(made, {"x": x})
    assert np.allclose(after["d"], before["d"] - 2 * before["a"], atol=1e-5)
    assert after["a"].tobytes() == before["a"].tobytes()


def test_an_output_keeps_its_name_when_its_node_is_removed(tmp_path: Path) -> None:
    path = shared(tmp_path)
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    made = proto_of(edited(path, RemoveNode("g0.n3")))  # d = c + a becomes d = c
    w = np.arange(16, dtype=np.float32).reshape(4, 4) / 8 - 1
    assert np.allclose(run(made, {"x": x})["d"], np.maximum(x @ w, 0) @ w, atol=1e-5)
    made = proto_of(edited(path, RemoveNode("g0.n1")))  # the Relu: b becomes a, which stays an output
    assert np.allclose(run(made, {"x": x})["d"], x @ w @ w + x @ w, atol=1e-5)


def test_deleting_cleans_what_only_it_needed_and_refuses_what_is_taken(tmp_path: Path) -> None:
    path = shared(tmp_path)
    with pytest.raises(UsageError, match="still taken"):
        tried(path, DeleteNodes(["g0.n1"]))
    made = proto_of(edited(path, RemoveOutput("d")))
    assert [node.op_type for node in made.graph.node] == ["MatMul"]
    assert [item.name for item in made.graph.initializer] == ["w"]
    one = tmp_path / "one.onnx"
    onnx.save(made, str(one))
    with pytest.raises(UsageError, match="only output"):
        tried(one, RemoveOutput("a"))


def test_extraction_makes_a_model_of_its_own(tmp_path: Path) -> None:
    path = shared(tmp_path)
    made = proto_of(edited(path, ExtractSubgraph(["b", "a"], ["d"])))
    b, a = np.ones((1, 4), np.float32), np.full((1, 4), 2, np.float32)
    w = np.arange(16, dtype=np.float32).reshape(4, 4) / 8 - 1
    assert np.allclose(run(made, {"b": b, "a": a})["d"], b @ w + a, atol=1e-6)
    assert [item.name for item in made.graph.input] == ["b", "a"]
    with pytest.raises(UsageError, match="need 1 more values, 'x'"):
        tried(path, ExtractSubgraph(["b"], ["d"]))


def test_exposing_a_value_gives_it_a_type(tmp_path: Path) -> None:
    path = shared(tmp_path)
    made = proto_of(edited(path, AddOutput("b")))
    kind = made.graph.output[-1].type.tensor_type
    assert (kind.elem_type, [dim.dim_param or dim.dim_value for dim in kind.shape.dim]) == (1, ["n", 4])
    with pytest.raises(UsageError, match="already"):
        tried(path, AddOutput("a"))


def test_half_precision_shares_one_weight_and_keeps_a_node(tmp_path: Path) -> None:
    path = shared(tmp_path)
    x = np.ones((3, 4), np.float32) / 3
    half = proto_of(edited(path, ConvertFloat("float16", [])))
    assert {item.data_type for item in half.graph.initializer} == {onnx.TensorProto.FLOAT16}
    kept = proto_of(edited(path, ConvertFloat("float16", ["g0.n2"])))
    assert sorted(item.data_type for item in kept.graph.initializer) == [1, 10]
    for made in (half, kept):
        before, after = run(path, {"x": x}), run(made, {"x": x})
        assert after["d"].dtype == np.float32
        assert np.allclose(before["d"], after["d"], atol=4e-3)


def test_a_function_is_edited_inside_and_refused_where_it_has_no_types(tmp_path: Path) -> None:
    path = with_function(tmp_path)
    x = np.array([1, 2, 3], np.float32)
    made = proto_of(edited(path, RenameNode("inner", "sum"), RenameValue("p", "taken", 1)))
    assert np.array_equal(run(made, {"x": x})["y"], 2 * x)
    assert list(made.functions[0].input) == ["taken"]
    with pytest.raises(Unavailable, match="function"):
        tried(path, RenameGraph("Thrice", 1))
    with pytest.raises(Unavailable, match="functions"):
        tried(path, ConvertFloat("float16", []))


def test_schemas_say_what_an_attribute_may_be(tmp_path: Path) -> None:
    path = conditional(tmp_path)
    with pytest.raises(UsageError, match=r"Add has no attribute 'axis'; it has: none"):
        tried(path, SetAttribute("add", "axis", 1))
    with pytest.raises(NotFound, match="no attribute"):
        tried(path, RemoveAttribute("add", "axis"))
    with pytest.raises(UsageError, match="takes 1 inputs, it has 2"):
        tried(path, ReplaceOperator("add", "Relu"))
    made = proto_of(edited(path, ReplaceOperator("add", "Sub")))
    assert np.array_equal(run(made, {"x": X, "cond": NO})["y"], X - np.array([1, -2, 3], np.float32))
    made = proto_of(
        edited(shared(tmp_path), ReplaceOperator("g0.n1", "LeakyRelu"), SetAttribute("g0.n1", "alpha", 0.5))
    )
    x = -np.ones((1, 4), np.float32)
    w = np.arange(16, dtype=np.float32).reshape(4, 4) / 8 - 1
    a = x @ w
    assert np.allclose(run(made, {"x": x})["d"], np.where(a > 0, a, a / 2) @ w + a, atol=1e-5)


def test_reconnecting_sorts_the_nodes_and_refuses_a_cycle(tmp_path: Path) -> None:
    path = shared(tmp_path)
    with pytest.raises(UsageError, match="cycle"):
        tried(path, ReconnectInput("g0.n1", 0, "c"))
    made = proto_of(edited(path, ReconnectInput("g0.n3", 1, "b")))
    x = np.ones((1, 4), np.float32)
    w = np.arange(16, dtype=np.float32).reshape(4, 4) / 8 - 1
    b = np.maximum(x @ w, 0)
    assert np.allclose(run(made, {"x": x})["d"], b @ w + b, atol=1e-5)


def test_types_that_no_longer_fit_are_an_error(tmp_path: Path) -> None:
    found = tried(shared(tmp_path), InsertNode("b", "Cast", {"to": onnx.TensorProto.FLOAT16}))
    assert not found.ready
    assert "no longer fit" in found.findings[0].message


def test_tensors_are_scaled_set_and_replaced(tmp_path: Path) -> None:
    path = conditional(tmp_path)
    made = proto_of(edited(path, ScaleTensor("w", -2), SetElements("w", "0, 1:", 7)))
    assert onnx.numpy_helper.to_array(made.graph.initializer[0]).tolist() == [[-2, 7, 7]]
    np.save(tmp_path / "new.npy", np.array([[5, 6, 7]], np.float32))
    made = proto_of(edited(path, ReplaceTensor("w", str(tmp_path / "new.npy"))))
    assert onnx.numpy_helper.to_array(made.graph.initializer[0]).tolist() == [[5, 6, 7]]
    np.save(tmp_path / "wide.npy", np.array([[5, 6, 7]], np.float64))
    with pytest.raises(UsageError, match=r"float32 \[1, 3\], wide.npy holds float64"):
        tried(path, ReplaceTensor("w", str(tmp_path / "wide.npy")))
    np.save(tmp_path / "pickle.npy", np.array([print], object), allow_pickle=True)
    with pytest.raises(Exception, match="without pickles"):
        tried(path, ReplaceTensor("w", str(tmp_path / "pickle.npy")))


def test_a_quantization_rounds_as_its_formula_says(tmp_path: Path) -> None:
    path = shared(tmp_path)
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    made = proto_of(edited(path, InsertQuantization("b", 0.25, 10)))
    w = np.arange(16, dtype=np.float32).reshape(4, 4) / 8 - 1
    a = x @ w
    b = (np.clip(np.rint(np.maximum(a, 0) / 0.25) + 10, 0, 255) - 10) * 0.25
    assert np.allclose(run(made, {"x": x})["d"], b @ w + a, atol=1e-5)
    with pytest.raises(UsageError, match="scale"):
        tried(path, InsertQuantization("b", 0.0, 10))


def test_a_symbol_becomes_a_size_everywhere(tmp_path: Path) -> None:
    made = proto_of(edited(shared(tmp_path), FixDimension("n", 5)))
    for item in (*made.graph.input, *made.graph.output):
        assert item.type.tensor_type.shape.dim[0].dim_value == 5
