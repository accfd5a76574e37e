"""trace: values against onnxruntime itself, inputs, limits, what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from app.cli import main
from tests.corpus import fetch

SAMPLE = Path(__file__).parents[2] / "app" / "sample" / "sample.onnx"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    code = main(["trace", *map(str, arguments), "--json", "--no-latency"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return json.loads(out)


def every_value(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All values of the main graph as onnxruntime gives them with every one exposed and nothing optimised."""
    model = onnx.load(path)
    have = {output.name for output in model.graph.output}
    for node in model.graph.node:
        model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in node.output if n and n not in have)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.corpus
def test_every_value_of_a_real_model_is_written_bit_for_bit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, given = fetch("magika"), tmp_path / "bytes.npy"
    array = np.random.default_rng(5).integers(0, 256, (2, 2048)).astype(np.int32)
    np.save(given, array)
    data = run(capsys, path, "--input", f"bytes={given}", "-o", tmp_path / "out")
    assert data["status"] == "complete"
    assert data["inputs"][0]["source"] == "file bytes.npy"
    written = json.loads((tmp_path / "out" / "trace.json").read_text())
    assert [value["name"] for value in written["values"]] == [value["name"] for value in data["values"]]
    expected = every_value(path, {"bytes": array})
    found = {value["name"]: np.load(tmp_path / "out" / value["file"]) for value in written["values"]}
    assert set(expected) <= set(found)
    for name, wanted in expected.items():
        assert found[name].dtype == wanted.dtype
        assert found[name].shape == wanted.shape
        assert found[name].tobytes() == wanted.tobytes(), name
    for value in data["values"]:
        if value["name"] in expected and expected[value["name"]].dtype == np.float32:
            wide = expected[value["name"]].astype(np.float64)
            assert np.isclose(value["stats"]["mean"], wide.mean(), rtol=1e-9, atol=1e-12), value["name"]
            assert value["stats"]["max"] == wide.max()


def test_the_document_has_the_keys_that_stay_stable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(SAMPLE), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"status", "engine", "provider", "reason", "elapsed_s", "peak_rss_bytes", "inputs", "values", "nodes",
            "findings"} <= set(data)  # fmt: skip
    assert all({"name", "dtype", "shape", "stored", "stats"} <= set(value) for value in data["values"])
    assert all({"name", "op_type", "latency_us"} <= set(node) for node in data["nodes"])
    assert len(data["nodes"]) == 111
    assert any(node["latency_us"] for node in data["nodes"])
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("modelglass-*/*/values.bin"))


def test_open_dimensions_and_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    data = run(capsys, SAMPLE, "--dim", "batch=3", "--ones")
    image = data["inputs"][0]
    assert (image["shape"], image["source"]) == ([3, 1, 32, 32], "ones")
    assert next(v for v in data["values"] if v["name"] == "image")["stats"]["mean"] == 1.0
    one = run(capsys, SAMPLE, "--random", "--seed", "1")
    assert one["inputs"][0]["sha256"] == run(capsys, SAMPLE, "--random", "--seed", "1")["inputs"][0]["sha256"]
    assert one["inputs"][0]["sha256"] != run(capsys, SAMPLE, "--random", "--seed", "2")["inputs"][0]["sha256"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--input", "pixels=x.npy"], "the model has no input 'pixels'"),
        (["--input", "image"], "does not say which"),
        (["--input", "image=gone.npy"], "gone.npy"),
        (["--input", "image=wrong.npy"], "'image'"),
        (["--input", "image=ints.npy"], "float32"),
        (["--dim", "height=3"], "the model has no open dimension 'height'"),
        (["--dim", "batch=x"], "expected a whole number"),
        (["--memory", "lots"], "'lots' is not a size"),
        (["--memory", "1MiB"], "memory limit"),
        (["--provider", "tpu"], "provider"),
        (["--engine", "torch"], "no engine is called 'torch'"),
        (["--iterations", "first"], "expected whole numbers"),
        (["-o", "full"], "is there already"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("wrong.npy", np.zeros((1, 3, 8, 8), np.float32))
    np.save("ints.npy", np.zeros((1, 1, 32, 32), np.int64))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    assert main(["trace", str(SAMPLE), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("modelglass: error: ")
    assert words in err
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_chosen_iterations_by_the_chosen_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = endless(tmp_path, rounds=5)
    for engine in ("onnxruntime", "reference"):
        data = run(capsys, path, "--engine", engine, "--iterations", "0,3", "--zeros")
        assert engine.split("run")[0] in data["engine"]
        inside = [(v["step"], v["path"], v["stats"]["mean"]) for v in data["values"] if v["name"] == "b"]
        twice = [np.cos(np.float32(0)), np.cos(np.cos(np.cos(np.cos(np.float32(0)))))]
        assert [(step, at) for step, at, _ in inside] == [(0, "g0.n0[0]"), (3, "g0.n0[3]")]
        assert np.allclose([mean for _, _, mean in inside], twice, rtol=1e-6)
    assert main(["trace", str(path), "--zeros"]) == 0
    assert "g0.n0[1]" in capsys.readouterr().out


@pytest.mark.slow
def test_limits_end_a_run_with_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = endless(tmp_path)
    assert main(["trace", str(path), "--time", "2s", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "timeout"
    assert err.startswith(f"modelglass: error: {path}: ")
    assert err.count("\n") == 1
    big = tmp_path / "big.onnx"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "n"]) for name in "xy")
    nodes = [helper.make_node("Concat", [a, a], [b], axis=1) for a, b in zip("xabcdefg", "abcdefgy", strict=True)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y])), big)
    assert main(["trace", str(big), "--dim", "n=4000000", "--memory", "400MiB", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "memory"
    assert err.count("\n") == 1


@pytest.mark.slow
def test_ctrl_c_stops_a_run_and_leaves_nothing(tmp_path: Path) -> None:
    path, temporary = endless(tmp_path), tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "app.cli", "trace", path, "-o", tmp_path / "out"],
        env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not list(temporary.glob("*/*/events.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "modelglass: cancelled\n")
    assert not list(temporary.iterdir())
    assert not (tmp_path / "out").exists()


def endless(folder: Path, rounds: int = 1 << 40) -> Path:
    """A loop that takes the cosine again and again."""
    i, on = (helper.make_tensor_value_info(n, t, []) for n, t in (("i", TensorProto.INT64), ("on", TensorProto.BOOL)))
    a, b = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "ab")
    still = helper.make_tensor_value_info("still", TensorProto.BOOL, [])
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["still"]), helper.make_node("Cos", ["a"], ["b"])], "body",
        [i, on, a], [still, b],
    )  # fmt: skip
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    weights = [helper.make_tensor("rounds", TensorProto.INT64, [], [rounds]),
               helper.make_tensor("yes", TensorProto.BOOL, [], [True])]  # fmt: skip
    loop = helper.make_node("Loop", ["rounds", "yes", "x"], ["y"], body=body)
    graph = helper.make_graph([loop], "g", [x], [y], weights)
    path = folder / "endless.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
