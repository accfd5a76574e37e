"""View data against numpy written out again, or figures by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node

from core.errors import UsageError
from core.opening import open_model
from core.trace.types import TracedValue
from core.trace.views.difference import along_depth, difference
from core.trace.views.feature_maps import grid, overlay, picture_of
from core.trace.views.next_tokens import next_tokens
from core.trace.views.offer import Subject, offered
from core.trace.views.profile import channel_profile
from core.trace.views.projection import principal
from core.trace.views.sampling import thin
from core.trace.views.stack import alike, norms
from tests.worker.running import save, trace


def test_a_convolution_output_is_offered_as_maps_and_over_its_image() -> None:
    maps = Subject((1, 8, 6, 6), "float", stored=True, image=(32, 32), channel_axis=1)
    assert offered(maps) == ["overlay", "maps", "heatmap", "histogram", "profile"]
    tokens = Subject((1, 7, 300), "float", stored=True, vocabulary=299, layers=1, channel_axis=2)
    assert offered(tokens)[0] == "tokens"
    assert "maps" not in offered(tokens)
    weights = Subject((1, 2, 5, 5), "float", stored=True, attention=True, channel_axis=1)
    assert offered(weights)[0] == "attention"


def test_only_the_histogram_is_offered_without_elements_and_nothing_of_text() -> None:
    assert offered(Subject((4, 4), "float", stored=False)) == ["histogram"]
    assert offered(Subject((4,), "string", stored=True)) == ["text"]
    assert offered(Subject((0, 4), "float", stored=True)) == []
    assert offered(Subject((1, 50), "float", stored=True, channel_axis=1)) == ["line", "histogram"]


def test_next_tokens_by_hand() -> None:
    logits = np.log(np.array([0.1, 0.6, 0.3], np.float64)).astype(np.float32)
    found = next_tokens(logits, 2, lambda i: "abc"[i])
    assert [(t.rank, t.id, t.piece) for t in found.tokens] == [(1, 1, "b"), (2, 2, "c")]
    assert [t.probability for t in found.tokens] == pytest.approx([0.6, 0.3], rel=1e-6)
    assert found.entropy == pytest.approx(-sum(p * math.log2(p) for p in (0.1, 0.6, 0.3)), rel=1e-6)
    assert next_tokens(np.array([np.nan, np.nan])).tokens == ()
    assert next_tokens(np.array([-np.inf, 1.0])).tokens[0].probability == 1.0


def test_a_grid_orders_and_scales_channels() -> None:
    maps = np.stack([np.full((3, 3), v) * np.array([[0, 1, 1]]) for v in (1.0, -5.0, 2.0)])
    found = grid(maps, 2, order="strongest", norm="each")
    assert found.channels == (1, 2)
    assert list(zip(found.low, found.high, strict=True)) == [(-5.0, 0.0), (0.0, 2.0)]
    together = grid(maps, 3)
    assert (together.low.tolist(), together.high.tolist()) == ([-5.0] * 3, [2.0] * 3)
    big = grid(np.zeros((2, 200, 50)), 1)
    assert big.maps.shape == (1, 67, 50)
    assert "axis 1 every 3rd" in big.words


def test_an_overlay_stretches_to_the_nearest_place() -> None:
    found = overlay(np.zeros((4, 4, 3), np.uint8), np.array([[0.0, 1.0], [2.0, 4.0]]))
    assert found.heat.tolist() == [[0, 0, 0.25, 0.25]] * 2 + [[0.5, 0.5, 1, 1]] * 2
    assert (found.low, found.high) == (0.0, 4.0)


def test_pictures_are_found_in_both_layouts_and_only_there() -> None:
    ramp = np.linspace(0, 1, 3 * 8 * 9, dtype=np.float32).reshape(1, 3, 8, 9)
    found = picture_of(ramp)
    assert found is not None
    assert found.shape == (8, 9, 3)
    assert (found[0, 0, 0], found[-1, -1, -1]) == (0, 255)
    last = picture_of(np.moveaxis(ramp, 1, -1))
    assert last is not None
    assert (last == found).all()
    assert picture_of(np.zeros((1, 5, 8, 8))) is None
    assert picture_of(np.zeros((1, 16))) is None


def test_the_channel_profile_agrees_with_numpy() -> None:
    rng = np.random.default_rng(1)
    array = rng.normal(size=(2, 5, 7)).astype(np.float32)
    array[0, 2, :3] = 0
    array[1, 4, 1] = np.nan
    found = channel_profile(array, 1)
    rows = np.moveaxis(array, 1, 0).reshape(5, -1).astype(np.float64)
    assert found.mean == pytest.approx(np.nanmean(rows, axis=1))
    assert found.std == pytest.approx(np.nanstd(rows, axis=1))
    assert found.high == pytest.approx(np.nanmax(rows, axis=1))
    assert found.zero[2] == pytest.approx(3 / 14)


def test_principal_components_agree_with_the_covariance() -> None:
    rng = np.random.default_rng(2)
    array = rng.normal(size=(1, 40, 6)) * np.array([5, 3, 1, 0.5, 0.2, 0.1])
    found = principal(array, 2)
    rows = array[0] - array[0].mean(axis=0)
    variances, axes = np.linalg.eigh(rows.T @ rows)
    assert found.explained == pytest.approx(tuple(variances[::-1][:2] / variances.sum()))
    assert np.abs(found.points[:, 0]) == pytest.approx(np.abs(rows @ axes[:, -1]))
    assert found.points[np.abs(found.points[:, 1]).argmax(), 1] > 0
    assert len(principal(np.zeros((1, 5, 3))).points) == 5


def test_thinning_says_what_it_left_out() -> None:
    found = thin(np.arange(100).reshape(1, 100), 1, 30)
    assert found.array.ravel().tolist() == list(range(0, 100, 4))
    assert found.words == "thinned: axis 1 every 4th"
    assert thin(np.zeros((3, 3)), 5, 5).words == "every element shown"


def test_differences_by_hand() -> None:
    found = difference(np.array([3.0, 4.0, np.nan]), np.array([3.0, 3.0, 1.0]))
    assert (found.max_abs, found.compared, found.count) == (1.0, 2, 3)
    assert found.relative_l2 == pytest.approx(1 / 5)
    assert found.cosine == pytest.approx((9 + 12) / (5 * math.sqrt(18)))
    assert found.sqnr_db == pytest.approx(20 * math.log10(5))
    same = difference(np.zeros(3), np.zeros(3))
    assert (same.relative_l2, same.sqnr_db) == (0.0, math.inf)
    assert math.isnan(same.cosine)
    with pytest.raises(UsageError, match="cannot be compared"):
        difference(np.zeros(3), np.zeros(4))


def test_two_runs_differ_from_where_their_inputs_do(tmp_path: Path) -> None:
    nodes = [make_node("Abs", ["x"], ["a"]), make_node("Relu", ["x"], ["r"]), make_node("Add", ["a", "r"], ["y"])]
    path = tmp_path / "m.onnx"
    save(path, nodes, [("x", TensorProto.FLOAT, [4])], [("y", TensorProto.FLOAT, [4])])
    one = trace(path, {"x": np.array([1, -2, 3, -4], np.float32)}, tmp_path)
    two = trace(path, {"x": np.array([-1, 2, -3, 4], np.float32)}, tmp_path)

    def array(run: Any) -> Any:
        return lambda value: run.array(value.name)

    drifts = {d.first.name: d for d in along_depth(one.result.values, two.result.values, array(one), array(two))}
    assert drifts["a"].found is not None
    assert drifts["a"].found.sqnr_db == math.inf
    assert drifts["y"].found is not None
    assert drifts["y"].found.max_abs == 4.0  # relu(-4) = 0 becomes relu(4) = 4
    missing = TracedValue("g0.v9", "gone", "", "float32", (4,), None)
    (drift,) = along_depth([missing], two.result.values, array(one), array(two))
    assert drift.reason == "the second run has no such value"


def test_layers_that_play_the_same_part(tmp_path: Path) -> None:
    nodes, stored, before = [], [], "x"
    for n in range(3):
        nodes += [
            make_node("MatMul", [before, f"w{n}"], [f"m{n}"], name=f"/block.{n}/mm"),
            make_node("Relu", [f"m{n}"], [f"r{n}"], name=f"/block.{n}/relu"),
        ]
        stored.append(numpy_helper.from_array(np.eye(4, dtype=np.float32), f"w{n}"))
        before = f"r{n}"
    path = tmp_path / "m.onnx"
    save(path, nodes, [("x", TensorProto.FLOAT, [1, 4])], [("r2", TensorProto.FLOAT, [1, 4])], stored)
    model = open_model(path)
    index = model.graphs[0].value_index
    assert alike(model, f"g0.v{index['m1']}") == tuple(f"g0.v{index[f'm{n}']}" for n in range(3))
    assert alike(model, f"g0.v{index['x']}") == (f"g0.v{index['x']}",)
    model.close()
    layers = norms([np.array([[[3.0, 4.0], [0.0, 0.0]]]), np.array([[[1.0, 1.0], [2.0, 2.0]]])])
    assert layers == pytest.approx(np.array([[math.sqrt(12.5), 0.0], [1.0, 2.0]]))
