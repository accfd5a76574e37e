"""input: what is written and printed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.cli import main
from core.inputs.kinds import KINDS

SAMPLE = Path(__file__).parents[2] / "app" / "sample" / "sample.onnx"


def test_a_picture_becomes_an_array(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 5, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    target = tmp_path / "x.npy"
    arguments = [
        str(tmp_path / "a.png"),
        "--layout",
        "HWC",
        "--normalise=-1..1",
        "--dtype",
        "float64",
        "-o",
        str(target),
    ]
    assert main(["input", "image", *arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"path": str(target), "dtype": "float64", "shape": [6, 5, 3]}.items() <= data.items()
    assert data["source"].startswith("image a.png")
    assert data["fidelity"]
    unit = (pixels.astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.5)
    np.testing.assert_array_equal(np.load(target), unit)


def test_it_says_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["input", "series", "--wave", "chirp", "--end-frequency", "900", "-o", str(tmp_path / "x.npy")]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == ["path", "dtype", "shape", "source", "fidelity"]
    assert "chirp 440 Hz at 16000 Hz" in out


def test_help_names_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["input", "--help"])
    out = capsys.readouterr().out
    assert caught.value.code == 0
    assert all(f"\n  {name} " in out for name in KINDS)
    assert "FILE" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pickle"], "no input recipe is called 'pickle'"),
        (["image", "gone.png"], "gone.png: cannot be read"),
        (["image", "text.png"], "text.png: is no picture"),
        (["image", "big.png"], "big.png: has 9000 × 9000 pixels"),
        (["image", "a", "b"], "image reads one file, 2 were given"),
        (["zeros", "x.png"], "zeros reads no file"),
        (["zeros", "--shape", "1,x"], "shape of zeros is '1,x', expected at most 64 whole numbers"),
        (["zeros", "--height", "3"], "zeros takes no 'height'. It takes shape, dtype"),
        (["zeros", "--shape", "1000000,1000000"], "allowed are 134217728"),
        (["table", "text.csv"], "column 'b' holds text, not numbers"),
        (["npy", "pickled.npy"], "holds Python objects, which are never loaded"),
        (["npy", "huge.npy"], "size does not fit its header"),
        (["ids", "--pattern", "values", "--values", "9", "--vocabulary", "9"], "id 9 is not below the vocabulary of 9"),
        (["zeros", "-o", "there.npy"], "is there already"),
        (["zeros", "-o", "no/x.npy"], "cannot be written"),
    ],
)
def test_what_is_refused_is_one_sentence(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.png").write_text("hello")
    Path("text.csv").write_text("a,b\n1,x\n")
    Path("there.npy").touch()
    Image.new("1", (9000, 9000)).save("big.png")
    np.save("pickled.npy", np.array([{}], object))
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2684354560,), }"
    Path("huge.npy").write_bytes(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + bytes(64))
    before = sorted(tmp_path.iterdir())
    output = [] if "-o" in arguments else ["-o", "x.npy"]
    assert main(["input", *arguments, *output]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_trace_takes_an_archive_of_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = np.random.default_rng(1).random((2, 1, 32, 32), np.float32)
    np.savez(tmp_path / "in.npz", image=image)
    assert main(["trace", str(SAMPLE), "--inputs", str(tmp_path / "in.npz"), "--json", "--no-latency"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["inputs"][0]["shape"], data["inputs"][0]["source"]) == ([2, 1, 32, 32], "file in.npz")
    mean = next(value for value in data["values"] if value["name"] == "image")["stats"]["mean"]
    assert mean == pytest.approx(image.astype(np.float64).mean(), rel=1e-12)
    np.savez(tmp_path / "other.npz", pixels=image)
    assert main(["trace", str(SAMPLE), "--inputs", str(tmp_path / "other.npz")]) == 2
    assert "the model has no input 'pixels'" in capsys.readouterr().err
