"""``modelglass edit``: replay a script, check it, write it, compare it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from app.cli import main
from tests.corpus import fetch
from tests.edits.nets import run, shared


def script(folder: Path, *edits: dict[str, object]) -> str:
    path = folder / "script.json"
    path.write_text(json.dumps({"version": 1, "edits": edits}))
    return str(path)


def test_a_script_is_replayed_checked_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = fetch("magika"), tmp_path / "out.onnx"
    text = script(
        tmp_path, {"edit": "rename_node", "node": "g0.n3", "to": "third"}, {"edit": "set_doc", "text": "mine"}
    )
    assert main(["edit", str(path), text, "-o", str(out), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    written = onnx.load(str(out))
    assert (written.graph.node[3].name, written.doc_string) == ("third", "mine")
    assert data["checks"]["onnx_checker"] == "valid"
    assert data["checks"]["comparison"]["verdict"] == "bit-exact"
    assert data["written"] == [
        {"file": "out.onnx", "bytes": out.stat().st_size, "sha256": hashlib.sha256(out.read_bytes()).hexdigest()}
    ]
    assert data["report"]["source"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert data["report"]["bytes_reused"] + data["report"]["bytes_encoded"] == out.stat().st_size
    again = tmp_path / "again.onnx"
    assert main(["edit", str(path), text, "-o", str(again), "--json", "--no-compare"]) == 0
    assert json.loads(capsys.readouterr().out)["revision"] == data["revision"]
    assert again.read_bytes() == out.read_bytes()


def test_outputs_that_change_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = shared(tmp_path), tmp_path / "out.onnx"
    text = script(tmp_path, {"edit": "scale_tensor", "tensor": "w", "factor": 2})
    assert main(["edit", str(path), text, "-o", str(out), "--json"]) == 0
    proof = json.loads(capsys.readouterr().out)["checks"]["comparison"]
    assert proof["verdict"] == "different"
    # a = x @ w doubles: the difference is as large as a itself, so its relative error is one and its SQNR 0 dB.
    error = next(item for item in proof["outputs"] if item["name"] == "a")
    assert error["relative_l2"] == pytest.approx(1)
    assert error["sqnr_db"] == pytest.approx(0, abs=1e-6)
    x = np.ones((1, 4), np.float32)
    assert np.array_equal(run(out, {"x": x})["a"], 2 * run(path, {"x": x})["a"])


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([{"edit": "rename_node", "node": "nobody", "to": "b"}], "there is no node 'nobody'"),
        (
            [{"edit": "insert_node", "value": "b", "op_type": "Cast", "attributes": {"to": 10}}],
            "edit 1 (insert_node) cannot be made: types no longer fit",
        ),
        ([], "has no edits"),
    ],
)
def test_nothing_is_written_where_an_edit_cannot_be_made(
    edits: list[dict[str, object]], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = shared(tmp_path), tmp_path / "out.onnx"
    assert main(["edit", str(path), script(tmp_path, *edits), "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("modelglass: error: ")
    assert not out.exists()
