"""Edits of real models: what onnxruntime makes of the written file, and what of it was copied as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from core.edits.export import export_onnx
from core.edits.kinds import (
    ConvertFloat,
    Edit,
    ExtractSubgraph,
    FixDimension,
    FoldPreprocessing,
    InsertNode,
    MakeBatchDynamic,
    RenameNode,
    RenameValue,
    SetDimension,
    SetInputType,
    SetLayout,
    SetMetadata,
)
from core.edits.onnx_document import OnnxDocument
from core.errors import Cancelled, ModelError, UsageError
from core.opening import open_model
from tests.corpus import fetch
from tests.edits.nets import Arrays, edited, run

RNG = np.random.default_rng(5)
INPUTS: dict[str, Arrays] = {
    "magika": {"bytes": RNG.integers(0, 256, (2, 2048)).astype(np.int32)},
    "rapidocr_det": {"x": RNG.random((1, 3, 64, 96), np.float32)},
    "rapidocr_rec": {"x": RNG.random((1, 3, 48, 160), np.float32)},
}


def written(name: str, target: Path, *edits: Edit) -> Path:
    export_onnx(edited(fetch(name), *edits), target)
    return target


@pytest.mark.parametrize("name", INPUTS)
def test_renames_change_no_number_and_copy_the_weights(name: str, tmp_path: Path) -> None:
    path, inputs = fetch(name), INPUTS[name]
    graph = onnx.load(str(path)).graph
    value = graph.node[len(graph.node) // 2].output[0]
    made = edited(path, RenameValue(value, "middle"), RenameNode("g0.n3", "third"), SetMetadata("who", "me"))
    result = export_onnx(made, tmp_path / "out.onnx")
    before, after = run(path, inputs), run(tmp_path / "out.onnx", inputs)
    assert [array.tobytes() for array in after.values()] == [array.tobytes() for array in before.values()]
    assert result.reused > 0.9 * path.stat().st_size
    assert result.checked == ""
    back = onnx.load(str(tmp_path / "out.onnx"))
    assert (back.graph.node[3].name, back.metadata_props[-1].value) == ("third", "me")
    assert [item.SerializeToString() for item in back.graph.initializer] == [
        item.SerializeToString() for item in graph.initializer
    ]


@pytest.mark.parametrize(("name", "apart"), [("magika", 2e-3), ("rapidocr_det", 2e-3), ("rapidocr_rec", 2e-2)])
def test_half_precision_halves_the_weights_and_agrees(name: str, apart: float, tmp_path: Path) -> None:
    path, inputs = fetch(name), INPUTS[name]
    made = written(name, tmp_path / "half.onnx", ConvertFloat("float16", []))
    assert made.stat().st_size < 0.52 * path.stat().st_size
    before, after = run(path, inputs), run(made, inputs)
    for key, array in before.items():
        assert after[key].dtype == array.dtype
        assert np.abs(after[key] - array).max() <= apart


def test_an_image_input_takes_raw_channel_last_bytes(tmp_path: Path) -> None:
    x = RNG.integers(0, 256, (1, 64, 96, 3)).astype(np.uint8)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    made = written(
        "rapidocr_det", tmp_path / "o.onnx", FoldPreprocessing("x", mean, std, 1 / 255), SetLayout("x", "NHWC")
    )
    fed = ((x / 255 - mean) / std).astype(np.float32).transpose(0, 3, 1, 2)
    name = onnx.load(str(made)).graph.output[0].name
    before, after = run(fetch("rapidocr_det"), {"x": fed})[name], run(made, {"x": x})[name]
    assert np.abs(before - after).max() < 1e-4


def test_an_input_is_cast_and_a_dimension_fixed(tmp_path: Path) -> None:
    path, inputs = fetch("magika"), INPUTS["magika"]
    made = written("magika", tmp_path / "o.onnx", SetInputType("bytes", "uint8"))
    after = run(made, {"bytes": inputs["bytes"].astype(np.uint8)})
    assert next(iter(after.values())).tobytes() == next(iter(run(path, inputs).values())).tobytes()
    symbol = onnx.load(str(path)).graph.input[0].type.tensor_type.shape.dim[0].dim_param
    fixed = written("magika", tmp_path / "f.onnx", FixDimension(symbol, 2))
    assert next(iter(run(fixed, inputs).values())).tobytes() == next(iter(run(path, inputs).values())).tobytes()
    again = written_from(fixed, tmp_path / "d.onnx", MakeBatchDynamic())
    one = {"bytes": inputs["bytes"][:1]}
    assert np.allclose(next(iter(run(again, one).values())), next(iter(run(path, one).values())), atol=1e-6)


def written_from(path: Path, target: Path, *edits: Edit) -> Path:
    export_onnx(edited(path, *edits), target)
    return target


def test_a_part_of_a_model_computes_what_it_did_within(tmp_path: Path) -> None:
    path, inputs = fetch("rapidocr_rec"), INPUTS["rapidocr_rec"]
    whole = onnx.load(str(path))
    convolutions = [node for node in whole.graph.node if node.op_type == "Conv"]
    start, end = convolutions[5].input[0], convolutions[12].output[0]
    part = written("rapidocr_rec", tmp_path / "part.onnx", ExtractSubgraph([start], [end]))
    for name in (start, end):
        whole.graph.output.append(onnx.ValueInfoProto(name=name))
    values = run(whole, inputs)
    assert run(part, {start: values[start]})[end].tobytes() == values[end].tobytes()


def test_a_layout_of_an_output_and_a_symbol(tmp_path: Path) -> None:
    path, inputs = fetch("rapidocr_det"), INPUTS["rapidocr_det"]
    name = onnx.load(str(path)).graph.output[0].name
    made = written("rapidocr_det", tmp_path / "o.onnx", SetLayout(name, "NHWC"), SetDimension(name, 0, "pages"))
    assert np.array_equal(run(made, inputs)[name], run(path, inputs)[name].transpose(0, 2, 3, 1))


def test_the_edited_model_is_read_before_it_is_written(tmp_path: Path) -> None:
    made = edited(fetch("rapidocr_det"), InsertNode("x", "Identity", {}, None, "begin"))
    export_onnx(made, tmp_path / "o.onnx")
    unwritten, read = made.opened("mark"), open_model(tmp_path / "o.onnx")
    assert unwritten.size_bytes == read.size_bytes
    assert [graph.node_count for graph in unwritten.graphs] == [graph.node_count for graph in read.graphs]
    assert unwritten.sources[0].sha256() == read.sources[0].sha256()


def test_payloads_beside_the_file(tmp_path: Path) -> None:
    path, inputs = fetch("magika"), INPUTS["magika"]
    made = edited(path, RenameNode("g0.n0", "first"))
    result = export_onnx(made, tmp_path / "o.onnx", external=True)
    assert [row[0] for row in result.files] == ["o.onnx.data", "o.onnx"]
    assert (
        next(iter(run(tmp_path / "o.onnx", inputs).values())).tobytes()
        == next(iter(run(path, inputs).values())).tobytes()
    )
    inside = OnnxDocument.of(open_model(tmp_path / "o.onnx"))
    export_onnx(inside, tmp_path / "in.onnx")
    one, two = onnx.load(str(tmp_path / "in.onnx")), onnx.load(str(tmp_path / "o.onnx"))
    assert [onnx.numpy_helper.to_array(item).tobytes() for item in one.graph.initializer] == [
        onnx.numpy_helper.to_array(item).tobytes() for item in two.graph.initializer
    ]


def test_a_stop_a_crash_and_a_full_target_leave_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, target = edited(fetch("magika"), RenameNode("g0.n0", "first")), tmp_path / "o.onnx"
    target.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists"):
        export_onnx(made, target)
    with pytest.raises(Cancelled):
        export_onnx(made, target, overwrite=True, cancelled=lambda: True)
    for step in ("fsync", "replace"):
        calls = []

        def fail(*_: object, step: str = step, calls: list[int] = calls) -> None:
            calls.append(1)
            raise OSError(28, f"no space left in {step}")

        with monkeypatch.context() as patched:
            patched.setattr("os.fsync" if step == "fsync" else "pathlib.Path.replace", fail)
            with pytest.raises((ModelError, OSError)):
                export_onnx(made, target, overwrite=True)
        assert calls
    assert target.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["o.onnx"]
    with pytest.raises(UsageError, match="opened file"):
        export_onnx(made, fetch("magika"), overwrite=True)
