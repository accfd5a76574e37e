"""Bad files and wrong usage: exit code 2, one line on standard error, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from app.cli import main
from app.cli_text import parse_size, parse_time, printable
from core.errors import UsageError

SAMPLE = Path(__file__).parents[2] / "app" / "sample" / "sample.onnx"


def missing(folder: Path) -> Path:
    return folder / "missing.onnx"


def empty(folder: Path) -> Path:
    (folder / "empty.onnx").touch()
    return folder / "empty.onnx"


def text(folder: Path) -> Path:
    path = folder / "text.onnx"
    path.write_text("this is not a model\n" * 20)
    return path


def device(_: Path) -> Path:
    return Path(os.devnull)


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.onnx")
    return folder / "pipe.onnx"


BAD = [(missing, "does not exist"), (empty, "is empty"), (text, "text file"), (device, "file"), (pipe, "file")]


@pytest.mark.parametrize(("make", "words"), BAD, ids=[make.__name__ for make, _ in BAD])
@pytest.mark.parametrize("verb", ["info", "tensors", "graph", "trace"])
def test_an_unusable_file_is_one_sentence(
    make: object, words: str, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    assert main([verb, str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"modelglass: error: {path}: ")
    assert words in err
    assert err.count("\n") == 1


def test_a_model_cut_off_says_so_and_shows_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(SAMPLE.read_bytes()[:200_000])
    assert main(["info", str(path)]) == 0
    assert "error: " in capsys.readouterr().out
    path.write_bytes(SAMPLE.read_bytes()[:3])
    assert main(["info", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname", "gone.bin"])
def test_external_data_outside_or_missing_is_a_finding(
    location: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outside.bin").write_bytes(bytes(16))
    folder = tmp_path / "model"
    folder.mkdir()
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [tensor])
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    assert main(["info", str(path)]) == 0
    assert location in capsys.readouterr().out
    assert main(["stats", str(path), "w"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["trace", str(path)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("modelglass: error: ")
    assert err.count("\n") == 1, out


@pytest.mark.parametrize("arguments", [["stats", "FILE"], ["graph", "FILE", "--level", "moon"], ["info"],
                                       ["trace", "FILE", "--threads", "x"], ["--nothing"]])  # fmt: skip
def test_wrong_usage_is_one_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([str(SAMPLE) if word == "FILE" else word for word in arguments])
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("modelglass: error: ")
    assert err.count("\n") == 1


def test_output_cut_off_by_its_reader_is_no_error() -> None:
    command = f"{sys.executable} -P -m app.cli tensors {SAMPLE} --json | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[\n", "")


@pytest.mark.slow
def test_ctrl_c_while_measuring_exits_130_and_says_one_word(tmp_path: Path) -> None:
    path = tmp_path / "big.onnx"
    big = TensorProto(name="w", data_type=TensorProto.DOUBLE, dims=[1 << 28], data_location=TensorProto.EXTERNAL)
    big.external_data.add(key="location", value="big.bin")
    with (tmp_path / "big.bin").open("wb") as file:
        file.truncate(1 << 31)
    x = helper.make_tensor_value_info("x", TensorProto.DOUBLE, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [x], [big])
    onnx.save(helper.make_model(graph), path)
    process = subprocess.Popen([sys.executable, "-P", "-m", "app.cli", "stats", path, "w"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "modelglass: cancelled\n")


def test_sizes_and_times() -> None:
    assert [parse_size(text) for text in ("2GiB", "512 mib", "1kB", "7", "1.5g")] == [
        2 << 30, 512 << 20, 1000, 7, 1_500_000_000,
    ]  # fmt: skip
    assert [parse_time(text) for text in ("60s", "2min", "500ms", "1.5")] == [60.0, 120.0, 0.5, 1.5]
    for wrong in ("", "GiB", "-1", "3 parsecs", "1e9"):
        with pytest.raises(UsageError):
            parse_size(wrong)


def test_printable_writes_every_harmful_mark_out() -> None:
    assert printable("a\x1b[0m\u202e\ud800\U000e0001é") == "a\\x1b[0m\\u202e\\ud800\\U000e0001é"
    assert printable("x" * 50, 10) == "x" * 9 + "…"
