"""Answers on models built to have exactly one thing wrong, run by the worker's engine; expectations by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, numpy_helper
from onnx.helper import make_node

from core.ir import Finding
from core.opening import open_model
from core.statistics.arrays import of_array
from core.trace.answers import attention, reading, shares, table
from core.trace.types import RunLimits
from tests.corpus import fetch
from tests.worker.running import default_inputs, save, trace

Stored = Sequence[tuple[str, Any]]


def ask(folder: Path, nodes: list[NodeProto], x: NDArray[Any], stored: Stored = (), **more: Any) -> list[Finding]:
    """Findings about one run of a model with input ``x`` and output ``y``."""
    path = folder / "model.onnx"
    tensors = [numpy_helper.from_array(np.asarray(a, np.float32), name) for name, a in stored]
    save(path, nodes, [("x", TensorProto.FLOAT, list(x.shape))], [("y", TensorProto.FLOAT, None)], tensors)
    run = trace(path, {"x": x.astype(np.float32)}, folder, more.get("limits"))
    assert run.result.status == "complete", run.result.reason
    model = open_model(path)
    try:
        return table.of_result(model, run.result)
    finally:
        model.close()


def codes(found: list[Finding]) -> list[str]:
    return [finding.code for finding in found]


def about(found: list[Finding], code: str) -> Finding:
    (one,) = [finding for finding in found if finding.code == code]
    return one


def test_the_first_nan_is_named_with_the_ranges_that_made_it(tmp_path: Path) -> None:
    nodes = [
        make_node("Mul", ["x", "two"], ["doubled"], name="double"),
        make_node("Sqrt", ["doubled"], ["root"], name="the root"),
        make_node("Add", ["root", "doubled"], ["y"], name="late"),
    ]
    found = ask(tmp_path, nodes, np.array([[4.0, -1.0, 9.0]]), [("two", 2.0)])
    nan = about(found, "run.first_nan")
    assert nan.severity == "error"
    assert "'root': 1 of 3 elements" in nan.message
    assert "'the root' (Sqrt) made it from 'doubled' from -2 to 18" in nan.message
    assert reading.place(nan) == ("g0.v2", 0) or reading.place(nan)[0].startswith("g0.v")


def test_the_first_infinity_shows_a_stored_operand_too(tmp_path: Path) -> None:
    nodes = [make_node("Div", ["x", "zero"], ["q"], name="by zero"), make_node("Neg", ["q"], ["y"])]
    found = ask(tmp_path, nodes, np.array([[1.0, 2.0]]), [("zero", [0.0, 4.0])])
    inf = about(found, "run.first_inf")
    assert inf.severity == "warning"
    assert "'q': 1 of 2 elements" in inf.message
    assert "'x' from 1 to 2, 'zero' from 0 to 4" in inf.message
    assert "run.first_nan" not in codes(found)


def test_a_mask_of_minus_infinity_is_no_alarm(tmp_path: Path) -> None:
    nodes = [
        make_node("Greater", ["x", "zero"], ["over"]),
        make_node("Where", ["over", "zero", "low"], ["mask"], name="mask"),
        make_node("Add", ["x", "mask"], ["s"]),
        make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    found = ask(tmp_path, nodes, np.array([[1.0, -1.0, 2.0]]), [("zero", 0.0), ("low", -math.inf)])
    assert about(found, "run.mask").severity == "info"
    assert "run.first_inf" not in codes(found)


@pytest.mark.parametrize("store", [None, 0])
def test_fp16_overflow_is_counted_exactly_or_bounded(tmp_path: Path, store: int | None) -> None:
    x = np.linspace(-1, 1, 1000).reshape(10, 100)
    limits = RunLimits() if store is None else RunLimits(store=store)
    found = ask(tmp_path, [make_node("Mul", ["x", "k"], ["y"])], x, [("k", 1e5)], limits=limits)
    words = about(found, "run.fp16_overflow").message
    share = 100 * float((np.abs(x.astype(np.float32) * np.float32(1e5)) >= 65520).mean())
    assert "'y' reaches 1e+05" in words
    if store is None:
        assert f"{share:.3g} % of it would be infinite" in words
    else:
        low, high = (float(word) for word in words.split(": ")[1].split(" % of it")[0].split(" % to "))
        assert low <= share <= high
        assert high - low < 5


def test_the_lowest_float_of_a_mask_is_only_noted(tmp_path: Path) -> None:
    nodes = [make_node("Less", ["x", "zero"], ["off"]), make_node("Where", ["off", "low", "zero"], ["y"])]
    found = ask(tmp_path, nodes, np.array([[1.0, -1.0]]), [("zero", 0.0), ("low", float(np.finfo(np.float32).min))])
    assert codes(found) == ["run.mask"]
    assert "goes down to -3.4e+38" in found[0].message


def test_numbers_that_fit_fp16_are_left_alone(tmp_path: Path) -> None:
    found = ask(tmp_path, [make_node("Mul", ["x", "k"], ["y"])], np.ones((4, 50)), [("k", 65504.0)])
    assert "run.fp16_overflow" not in codes(found)


def test_one_outlier_takes_the_range_of_int8(tmp_path: Path) -> None:
    x = np.linspace(0.1, 0.2, 1000).reshape(1, 1000)
    x[0, 7] = 100.0  # a step is 100 / 127: all but this one are below half of it
    found = ask(tmp_path, [make_node("Add", ["x", "x"], ["y"])], x)
    assert "99.9 % of 'y' would round to zero" in about(found, "run.int8_range").message


def test_dead_and_constant_channels_are_named(tmp_path: Path) -> None:
    weight = np.ones((4, 1, 1, 1), np.float32)
    weight[2] = 0  # constant before the rectifier: its bias
    nodes = [make_node("Conv", ["x", "w", "b"], ["c"]), make_node("Relu", ["c"], ["y"])]
    x = np.arange(36.0).reshape(1, 1, 6, 6)
    found = ask(tmp_path, nodes, x, [("w", weight), ("b", [0.0, -100.0, 3.0, 0.0])])
    assert "1 of 4 units of 'y' (Relu) never fired: 1." in about(found, "run.dead").message
    assert "1 of 4 channels of 'c' (Conv) are constant: 2." in about(found, "run.constant").message


def test_features_of_a_matrix_product_are_on_the_last_axis(tmp_path: Path) -> None:
    nodes = [make_node("MatMul", ["x", "w"], ["h"]), make_node("Relu", ["h"], ["y"])]
    weight = np.eye(3, dtype=np.float32)
    weight[1, 1] = -1
    found = ask(tmp_path, nodes, np.arange(1.0, 31.0).reshape(1, 10, 3), [("w", weight)])
    assert "1 of 3 units of 'y' (Relu) never fired: 1." in about(found, "run.dead").message


def test_saturated_units(tmp_path: Path) -> None:
    x = np.stack([np.full(40, 9.0), np.linspace(-2, 2, 40), np.full(40, -9.0)], axis=1)  # sigmoid(9) = 0.99988
    nodes = [make_node("MatMul", ["x", "w"], ["h"]), make_node("Sigmoid", ["h"], ["y"])]
    found = ask(tmp_path, nodes, x, [("w", np.eye(3))])
    assert "2 of 3 units of 'y' (Sigmoid) sit within 1 % of an end: 0, 2." in about(found, "run.saturated").message


def test_an_explosion_and_a_collapse(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 64).reshape(8, 8)
    found = ask(tmp_path, [make_node("Mul", ["x", "k"], ["y"])], x, [("k", 5000.0)])
    assert "'y' (Mul)" in about(found, "run.explosion").message
    assert "5,000 times as much" in about(found, "run.explosion").message
    assert "run.collapse" not in codes(found)
    found = ask(tmp_path, [make_node("Add", ["x", "far"], ["y"])], x, [("far", 1e4)])
    assert "'y' (Add) collapses" in about(found, "run.collapse").message


def test_attention_entropy_and_sinks() -> None:
    even = np.full((4, 8), 1 / 8)  # entropy 3 bits, no sink
    sink = np.full((4, 8), 0.3 / 7)
    sink[:, 5] = 0.7
    heads = attention.measure(np.stack([even, sink])[None])
    by_hand = -(0.7 * math.log2(0.7) + 0.3 * math.log2(0.3 / 7))
    assert heads.entropy.tolist() == pytest.approx([3.0, by_hand])
    assert heads.fullest.tolist() == pytest.approx([1.0, by_hand / 3])
    assert (heads.sink[1], heads.mass[1]) == (5, pytest.approx(0.7))
    assert heads.mass[0] == pytest.approx(1 / 8)


def test_a_causal_first_row_is_no_sink() -> None:
    causal = np.tril(np.ones((6, 6)))
    heads = attention.measure((causal / causal.sum(axis=1, keepdims=True))[None, None])
    # queries 3 to 5 see 4 to 6 keys: key 0 takes (1/4 + 1/5 + 1/6) / 3
    assert heads.mass.tolist() == pytest.approx([(1 / 4 + 1 / 5 + 1 / 6) / 3])


def test_attention_is_found_in_a_model(tmp_path: Path) -> None:
    """Queries far along one key: every head of the attention sends almost all to key 2."""
    heads, tokens, size = 2, 6, 4
    keys = np.zeros((1, heads, tokens, size), np.float32)
    keys[:, :, 2] = 5
    nodes = [
        make_node("MatMul", ["x", "wq"], ["q"]),
        make_node("Reshape", ["q", "split"], ["q4"]),
        make_node("Transpose", ["q4"], ["qt"], perm=[0, 2, 1, 3]),
        make_node("MatMul", ["x", "wk"], ["k"]),
        make_node("Reshape", ["k", "split"], ["k4"]),
        make_node("Transpose", ["k4"], ["kt"], perm=[0, 2, 3, 1]),
        make_node("MatMul", ["x", "wv"], ["v"]),
        make_node("Reshape", ["v", "split"], ["v4"]),
        make_node("Transpose", ["v4"], ["vt"], perm=[0, 2, 1, 3]),
        make_node("MatMul", ["qt", "kt"], ["scores"]),
        make_node("Softmax", ["scores"], ["weights"], axis=-1),
        make_node("MatMul", ["weights", "vt"], ["mix"]),
        make_node("Transpose", ["mix"], ["mt"], perm=[0, 2, 1, 3]),
        make_node("Reshape", ["mt", "join"], ["flat"]),
        make_node("MatMul", ["flat", "wo"], ["y"]),
    ]
    x = np.full((1, tokens, heads * size), 0.1, np.float32)
    x[0, 2] = 9
    path = tmp_path / "attention.onnx"
    eye = np.eye(heads * size, dtype=np.float32)
    stored = [numpy_helper.from_array(eye, name) for name in ("wq", "wk", "wv", "wo")]
    stored.append(numpy_helper.from_array(np.array([1, tokens, heads, size]), "split"))
    stored.append(numpy_helper.from_array(np.array([1, tokens, heads * size]), "join"))
    save(path, nodes, [("x", TensorProto.FLOAT, list(x.shape))], [("y", TensorProto.FLOAT, None)], stored)
    run = trace(path, {"x": x}, tmp_path)
    model = open_model(path)
    found = table.of_result(model, run.result)
    expected = run.array("weights")[0, :, :, 2].mean()
    words = about(found, "run.attention_sink").message
    assert words.startswith("2 of 2 heads of 'weights'")
    assert f"head 0 key 2 ({100 * expected:.0f} %)" in words
    assert "over 6 keys" in about(found, "run.attention").message
    model.close()


def test_shares_without_elements_bracket_the_truth() -> None:
    rng = np.random.default_rng(0)
    array = rng.normal(size=5000).astype(np.float32)
    stats = of_array(array)
    for bound in (0.5, 1.0, 2.5, 3.0):
        truth = float((np.abs(array.astype(np.float64)) >= bound).mean())
        exact, bounded = shares.beyond(stats, bound, array), shares.beyond(stats, bound)
        assert exact == shares.Share(truth, truth)
        assert bounded.low <= truth <= bounded.high
    assert shares.beyond(stats, 100.0) == shares.Share(0.0, 0.0)
    assert shares.below(stats, 1.0, array).low == pytest.approx(float((np.abs(array) < 1).mean()))


@pytest.mark.corpus
def test_a_healthy_real_model_raises_no_alarm(tmp_path: Path) -> None:
    model = open_model(fetch("magika"))
    run = trace(fetch("magika"), default_inputs(model), tmp_path)
    found = table.of_result(model, run.result)
    assert not [f for f in found if f.severity == "error"]
    assert all(reading.place(f)[0] in {v.id for v in run.result.values} for f in found)
    model.close()
