"""trace --data: ranges over a folder, against numpy; gone on with in the folder it keeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node

from app.cli import main
from tests.worker.running import save

WEIGHT = np.array([[1.0, -1.0], [2.0, 0.0]], np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tensors = [numpy_helper.from_array(WEIGHT, "w")]
    shapes = [("x", TensorProto.FLOAT, ["n", 2])], [("y", TensorProto.FLOAT, ["n", 2])]
    return save(tmp_path / "m.onnx", [make_node("MatMul", ["x", "w"], ["y"])], *shapes, tensors)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(3):
        np.save(folder / f"{number}.npy", np.array([[number, -number]], np.float32))
    return folder


def test_ranges_and_samples_of_a_folder(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(model), "--data", str(data), "--json", "-o", str(tmp_path / "kept")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["samples"], told["done"]) == ("complete", 3, 3)
    values = {value["name"]: value for value in told["values"]}
    y = np.concatenate([np.load(data / f"{n}.npy") @ WEIGHT for n in range(3)])
    assert values["y"]["range"] == [y.min(), y.max()]
    assert values["y"]["samples"] == 3
    assert [top["sample"] for top in told["channels"]["x"][0]["top"]] == ["2.npy", "1.npy", "0.npy"]
    assert main(["trace", str(model), "--data", str(data), "-o", str(tmp_path / "kept")]) == 0
    assert "complete: 3 of 3 samples" in capsys.readouterr().out
    np.save(data / "1.npy", np.ones((1, 2), np.float32))
    assert main(["trace", str(model), "--data", str(data), "-o", str(tmp_path / "kept")]) == 2
    assert "another model, set or limits" in capsys.readouterr().err


def test_an_input_that_is_not_there(model: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(model), "--data", str(data), "--data-input", "z"]) == 2
    assert "has no input 'z'" in capsys.readouterr().err
