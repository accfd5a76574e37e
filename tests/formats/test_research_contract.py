"""What every research format must keep: recognised by content, lazy, values equal, capabilities said."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from app.cli import main
from core import open_model
from core.capabilities import NAMES
from core.tensors.read import blocks, values, values_slice
from tests.formats.research_files import FILES, READ_AS

GOLDEN = Path(__file__).parent / "golden"
SINGLE_FILES = [name for name in FILES if name not in ("sharded", "huggingface")]
TEXT_OR_PACKED = {
    "mlir",
    "npz_compressed",
    "node_data",
}  # their text or packed bytes must be walked to find where a tensor ends


@pytest.mark.parametrize("name", FILES)
def test_tensors_equal_what_was_written(name: str, tmp_path: Path) -> None:
    path, expected = FILES[name](tmp_path)
    model = open_model(path)
    assert model.format == READ_AS[name]
    assert {t.name for t in model.tensors} == set(expected)
    for tensor in model.tensors:
        found = values(model, tensor)
        assert tensor.shape == expected[tensor.name].shape
        np.testing.assert_array_equal(found, expected[tensor.name])
    assert [f for f in model.findings if f.severity == "error"] == []


@pytest.mark.parametrize("name", FILES)
def test_slices_and_pieces_equal_the_whole(name: str, tmp_path: Path) -> None:
    path, expected = FILES[name](tmp_path)
    model = open_model(path)
    for tensor in model.tensors:
        whole = expected[tensor.name]
        np.testing.assert_array_equal(np.concatenate([*blocks(model, tensor, 5)]).reshape(whole.shape), whole)
        if whole.ndim == 2:
            np.testing.assert_array_equal(values_slice(model, tensor, (1, slice(None, None, 2))), whole[1, ::2])


@pytest.mark.parametrize("name", SINGLE_FILES)
def test_content_decides_under_a_wrong_suffix(name: str, tmp_path: Path) -> None:
    path, expected = FILES[name](tmp_path)
    wrong = tmp_path / "model.onnx"
    shutil.copy(path, wrong)
    model = open_model(wrong)
    assert model.format == READ_AS[name]
    assert len(model.tensors) == len(expected)


@pytest.mark.parametrize("name", [name for name in FILES if name not in TEXT_OR_PACKED])
def test_opening_reads_under_one_percent(name: str, tmp_path: Path) -> None:
    path, _ = FILES[name](tmp_path, 6_000_000)
    model = open_model(path)
    assert model.size_bytes > 15_000_000
    assert sum(source.bytes_read for source in model.sources) < model.size_bytes / 100


@pytest.mark.parametrize("name", FILES)
def test_every_capability_that_is_not_there_says_why(name: str, tmp_path: Path) -> None:
    model = open_model(FILES[name](tmp_path)[0])
    assert set(model.capabilities) == set(NAMES)
    for capability in model.capabilities.values():
        if capability.availability != "available":
            assert len(capability.reason) > 20, capability
            assert capability.reason.endswith("."), capability


@pytest.mark.parametrize("name", FILES)
def test_ranges_lie_inside_their_files(name: str, tmp_path: Path) -> None:
    model = open_model(FILES[name](tmp_path)[0])
    for tensor in model.tensors:
        if tensor.data is not None and not isinstance(tensor.data, bytes):
            assert 0 <= tensor.data.start <= tensor.data.stop <= model.sources[tensor.data.source].size


@pytest.mark.parametrize("name", FILES)
def test_info_is_the_golden_one(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Golden documents were checked by hand against what the writers above were told to write."""
    path, expected = FILES[name](tmp_path)
    assert main(["info", str(path), "--json"]) == 0
    text = capsys.readouterr().out.replace(str(tmp_path), "FOLDER")
    found = json.loads(text)
    assert found == json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    assert found["tensors"] == len(expected)
