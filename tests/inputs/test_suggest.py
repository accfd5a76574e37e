"""Proposals by name, shape, metadata and the files beside a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from core.inputs.generic import generate, shared_dims
from core.inputs.produce import own_shapes
from core.inputs.recipe import with_dims
from core.inputs.suggest import Beside, beside, suggest
from core.opening import open_model
from core.run.prepare import input_slots
from tests.corpus import fetch


@dataclass(frozen=True)
class Slot:
    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None


def arrays(slots: list[Slot], files: Beside | None = None) -> dict[str, np.ndarray]:
    """What the proposals make when all inputs are sized together."""
    recipes = {name: proposal.recipe for name, proposal in suggest(slots, None, files).items()}
    dims = shared_dims(slots, recipes, own_shapes(slots, recipes))
    return {slot.name: generate(slot, with_dims(recipes[slot.name], dims)) for slot in slots}


def test_the_inputs_of_a_text_agree_with_each_other() -> None:
    slots = [
        Slot("input_ids", "int64", ("batch", "seq")),
        Slot("attention_mask", "int64", ("batch", "past + seq")),
        Slot("token_type_ids", "int64", ("batch", "seq")),
        Slot("position_ids", "int64", ("batch", "seq")),
        Slot("past_key_values.0.key", "float32", ("batch", 4, "past", 16)),
        Slot("past_key_values.0.value", "float32", ("batch", 4, "past", 16)),
        Slot("use_cache_branch", "bool", (1,)),
    ]
    made = arrays(slots)
    assert {made[name].shape for name in ("input_ids", "attention_mask", "token_type_ids", "position_ids")} == {(1, 16)}
    assert made["attention_mask"].all()
    assert not made["token_type_ids"].any()
    assert made["position_ids"].tolist() == [list(range(16))]
    assert made["past_key_values.0.key"].shape == made["past_key_values.0.value"].shape == (1, 4, 0, 16)
    assert made["use_cache_branch"].tolist() == [False]


@pytest.mark.parametrize(
    ("shape", "dtype", "layout"),
    [
        (("n", 3, 32, 48), "float32", "NCHW"), ((1, 32, 48, 3), "float32", "NHWC"), ((1, 1, 28, 28), "float16", "NCHW"),
        ((1, 3, "h", "w"), "float32", "NCHW"), ((1, 20, 30, 3), "uint8", "NHWC"),
    ],
)  # fmt: skip
def test_a_picture_is_proposed_for_a_shape_of_one(shape, dtype, layout) -> None:  # type: ignore[no-untyped-def]
    slot = Slot("x", dtype, shape)
    proposal = suggest([slot])["x"]
    assert proposal.recipe.kind == "image"
    assert f"({layout})" in proposal.reason
    made = arrays([slot])["x"]
    assert len(np.unique(made)) > 20
    assert made.dtype == dtype


@pytest.mark.parametrize("shape", [(1, 16, 96), (1, 80, 3000), (1, 3, 4, 4), (1, 64, 7, 7), (1, 512), None])
def test_no_picture_where_the_shape_is_none(shape) -> None:  # type: ignore[no-untyped-def]
    assert suggest([Slot("features", "float32", shape)])["features"].recipe.kind == "random"


def test_signed_bytes_are_no_picture() -> None:
    made = arrays([Slot("x", "int8", (1, 3, 16, 16))])["x"]
    assert made.dtype == np.int8


def test_preprocessor_config_is_followed(tmp_path: Path) -> None:
    config = {"do_center_crop": True, "crop_size": {"height": 30, "width": 40}, "size": {"shortest_edge": 50},
              "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.1], "resample": 3}  # fmt: skip
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3, "h", "w"]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    model = open_model(tmp_path / "m.onnx")
    found = beside(model)
    proposal = suggest(input_slots(model), model, found)["x"]
    options = proposal.recipe.options
    assert proposal.recipe.dims == {"h": 30, "w": 40}
    assert (options["mean"], options["std"], options["resample"]) == ((0.5, 0.4, 0.3), (0.2, 0.2, 0.1), "bicubic")
    assert (options["fit"], options["shorter"]) == ("crop", 50)
    assert "preprocessor_config.json" in proposal.reason
    assert "2 classes" in proposal.reason
    assert generate(input_slots(model)[0], proposal.recipe).shape == (1, 3, 30, 40)


@pytest.mark.parametrize(
    "text", ["[" * 5000, "[1]", "{", '{"size": {"height": "x"}, "image_mean": 3, "image_std": [0,0,0]}']
)
def test_a_damaged_preprocessor_config_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "preprocessor_config.json").write_text(text)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3, 8, 8]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    model = open_model(tmp_path / "m.onnx")
    recipe = suggest(input_slots(model), model, beside(model))["x"].recipe
    assert generate(input_slots(model)[0], recipe).shape == (1, 3, 8, 8)


def test_qwen_pixel_values_and_their_grid_agree() -> None:
    slots = [Slot("pixel_values", "float32", ("patches", 1536)), Slot("image_grid_thw", "int64", ("images", 3))]
    made = arrays(slots)
    assert made["pixel_values"].shape == (196, 1536)
    assert made["image_grid_thw"].tolist() == [[1, 14, 14]]


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["magika", "silero_vad", "rapidocr_det", "rapidocr_rec", "rapidocr_cls",
                                  "openwakeword_silero_vad", "openwakeword_embedding_model"])  # fmt: skip
def test_real_models_run_on_what_is_proposed(name: str) -> None:
    path = fetch(name)
    model = open_model(path)
    slots = [slot for slot in input_slots(model) if not slot.optional]
    recipes = {n: proposal.recipe for n, proposal in suggest(slots, model, beside(model)).items()}
    dims = shared_dims(slots, recipes, own_shapes(slots, recipes))
    feeds = {slot.name: generate(slot, with_dims(recipes[slot.name], dims)) for slot in slots}
    outputs = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)
    assert all(np.isfinite(output).all() for output in outputs)
