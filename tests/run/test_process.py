"""Runs through the real worker process: limits from outside, every way to die, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from core.errors import ApprovalVoid, SourceChanged
from core.limits import MIB
from core.opening import open_model
from core.run import prepare, process
from core.run.process import Run, approve
from core.run.result import reread
from core.run.spool import Spool
from core.trace.types import RunLimits, TraceRequest, TraceResult
from core.trace.values import load_value
from tests.corpus import fetch
from tests.worker.running import all_outputs, default_inputs, same, save

FLOAT = TensorProto.FLOAT
X = np.arange(4, dtype=np.float32)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="holds on Linux only")


def prepared(path: Path, folder: Path, limits: RunLimits | None = None, **more: object) -> tuple[TraceRequest, Spool]:
    model = open_model(path)
    try:
        return prepare.request(model, default_inputs(model), {}, limits, "digest", folder=folder, **more)  # type: ignore[arg-type]
    finally:
        model.close()


def started(path: Path, folder: Path, limits: RunLimits | None = None, **more: object) -> Run:
    request, spool = prepared(path, folder, limits, **more)
    return process.start(request, spool, approve(request, "tester"))


def finished(path: Path, folder: Path, limits: RunLimits | None = None, **more: object) -> TraceResult:
    return started(path, folder, limits, **more).wait(60)


def gone(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


def small(path: Path) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="first"), helper.make_node("Exp", ["a"], ["y"])]
    return save(path, nodes, [("x", FLOAT, [4])], [("y", FLOAT, [4])])


def endless(path: Path) -> Path:
    """A Loop without an end, after one value that is there before it."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["co"]), helper.make_node("Identity", ["v"], ["vo"])],
        "body",
        [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v", FLOAT, [4])],
        [info("co", TensorProto.BOOL, []), info("vo", FLOAT, [4])],
    )
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Loop", ["", "yes", "a"], ["y"], body=body)]
    yes = numpy_helper.from_array(np.array(True), "yes")
    return save(path, nodes, [("x", FLOAT, [4])], [("y", FLOAT, [4])], [yes])


def allocating(path: Path, *, foreseen: bool) -> Path:
    """3 GiB of zeros out of a file under 200 bytes; the size is stored, or known only while it runs."""
    size = numpy_helper.from_array(np.array([3 << 28]), "size")
    nodes = [helper.make_node("ConstantOfShape", ["size"], ["y"], name="bomb")]
    if not foreseen:
        nodes = [
            helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
            helper.make_node("ReduceMax", ["i"], ["m"], keepdims=1),
            helper.make_node("Mul", ["m", "zero"], ["n"]),
            helper.make_node("Add", ["n", "size"], ["s"]),
            helper.make_node("ConstantOfShape", ["s"], ["y"], name="bomb"),
        ]
    zero = numpy_helper.from_array(np.array([0]), "zero")
    return save(path, nodes, [("x", FLOAT, [4])], [("y", FLOAT, None)], [size] if foreseen else [size, zero])


def test_a_run_from_end_to_end(tmp_path: Path) -> None:
    run = started(small(tmp_path / "m.onnx"), tmp_path)
    result = run.wait(60)
    assert (result.status, result.reason) == ("complete", "")
    assert result.engine.startswith("onnxruntime ")
    assert result.provider == "CPUExecutionProvider"
    assert [value.name for value in result.values] == ["x", "a", "y"]
    assert [value.node for value in result.values] == ["", "g0.n0", "g0.n1"]
    assert [(node.id, node.name, node.op_type) for node in result.nodes] == [
        ("g0.n0", "first", "Relu"),
        ("g0.n1", "", "Exp"),
    ]
    assert all(node.latency_us is not None and node.latency_us >= 0 for node in result.nodes)
    assert result.latency_optimisation.startswith("all")
    assert 20 * MIB < result.peak_rss_bytes < 400 * MIB
    assert not run.running
    assert gone(run.pid)
    assert [event["event"] for event in run.poll()][:2] == ["started", "progress"]
    assert not Path(result.spool, "tmp").exists()


def test_what_a_run_leaves_can_be_read_again(tmp_path: Path) -> None:
    result = finished(small(tmp_path / "m.onnx"), tmp_path)
    again = reread(result.spool)
    assert (again.status, again.values, again.nodes) == (result.status, result.values, result.nodes)


@LINUX
def test_the_spool_is_private_and_limits_are_told(tmp_path: Path) -> None:
    result = finished(small(tmp_path / "m.onnx"), tmp_path)
    assert Path(result.spool).stat().st_mode & 0o777 == 0o700
    assert result.held["memory"] == "2 GiB from the start (RLIMIT_DATA)"
    assert result.held["core dumps"] == "off"
    assert "no_new_privs" in result.held["privileges"]


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["magika", "silero_vad", "rapidocr_cls"])
def test_real_models_through_the_process(name: str, tmp_path: Path) -> None:
    path = fetch(name)
    model = open_model(path)
    inputs = default_inputs(model)
    model.close()
    result = finished(path, tmp_path)
    assert result.status == "complete", result.reason
    values = {value.name: value for value in result.values if value.id.startswith("g0.")}
    expected = all_outputs(path, inputs)
    assert not [key for key, array in expected.items() if not same(load_value(result, values[key]), array)]
    assert sum(node.latency_us is not None for node in result.nodes) > len(result.nodes) // 3


@pytest.mark.parametrize("seed", range(20))
def test_a_worker_killed_at_any_moment_leaves_a_result(seed: int, tmp_path: Path) -> None:
    run = started(small(tmp_path / "m.onnx"), tmp_path)
    time.sleep(random.Random(seed).uniform(0, 1.2))
    with contextlib.suppress(ProcessLookupError):
        os.kill(run.pid, signal.SIGKILL)
    result = run.wait(10)
    assert result.status in ("failed", "complete")
    if result.status == "failed":
        assert result.reason.startswith("The worker was killed by signal 9 (SIGKILL)")
    for value in result.values:
        assert load_value(result, value).shape == (4,)
    assert gone(run.pid)


def test_a_killed_worker_says_what_it_was_doing_and_keeps_what_it_had(tmp_path: Path) -> None:
    run = started(endless(tmp_path / "m.onnx"), tmp_path, RunLimits(capture=1))
    _until(lambda: any("running Loop" in str(event.get("doing")) for event in run.poll()))
    os.kill(run.pid, signal.SIGSEGV)
    result = run.wait(10)
    assert result.status == "failed"
    assert result.reason == "The worker was killed by signal 11 (SIGSEGV) while running Loop (g0.n1)."
    assert [value.name for value in result.values if value.id.startswith("g0.")] == ["x", "a"]


def test_a_run_beyond_its_time_is_ended(tmp_path: Path) -> None:
    run = started(endless(tmp_path / "m.onnx"), tmp_path, RunLimits(time=3))
    result = run.wait(10)
    assert result.status == "timeout"
    assert result.reason.startswith("The run was stopped after its 3 s")
    assert 3 <= result.elapsed_s < 4
    assert gone(run.pid)


def test_stopping_takes_less_than_a_second(tmp_path: Path) -> None:
    run = started(endless(tmp_path / "m.onnx"), tmp_path)
    _until(lambda: any("running" in str(event.get("doing")) for event in run.poll()))
    begin = time.monotonic()
    run.cancel()
    result = run.wait(10)
    assert time.monotonic() - begin < 1
    assert (result.status, result.reason) == ("cancelled", "The run was stopped.")
    assert gone(run.pid)
    run.cancel()  # harmless


@LINUX
@pytest.mark.parametrize("foreseen", [True, False])
def test_a_model_that_needs_more_memory_than_it_may_use(foreseen: bool, tmp_path: Path) -> None:
    path = allocating(tmp_path / "m.onnx", foreseen=foreseen)
    assert path.stat().st_size < 300
    limits = RunLimits(memory=512 * MIB)
    result = finished(path, tmp_path, limits)
    assert result.status == "memory"
    expected = "'bomb' would make 3 GiB" if foreseen else "more memory than the 512 MiB it may use while running Const"
    assert expected in result.reason
    assert result.peak_rss_bytes < 1.1 * limits.memory


@LINUX
def test_weights_beyond_the_memory_limit(tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.ones((4, 20 * MIB), np.float32), "w")
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", FLOAT, [1, 4])],
        [("y", FLOAT, None)],
        [weights],
    )
    result = finished(path, tmp_path, RunLimits(memory=256 * MIB))
    assert result.status == "memory", result.reason
    assert result.peak_rss_bytes < 1.1 * 256 * MIB


@LINUX
def test_a_worker_does_not_outlive_its_parent(tmp_path: Path) -> None:
    """A parent killed without warning: the worker sees its input close and ends."""
    _, spool = prepared(endless(tmp_path / "m.onnx"), tmp_path)
    script = (
        "import sys, time; from core.run import process; from core.run.spool import Spool\n"
        "spool = Spool(sys.argv[1]); request, _ = spool.read_request()\n"
        "print(process.start(request, spool, process.approve(request, 'tester')).pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, spool.path], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        _until(lambda: "running" in Path(spool.events_file).read_text() if Path(spool.events_file).exists() else False)
        parent.kill()
    _until(lambda: gone(pid))


def test_the_worker_is_ours_even_in_a_hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("core", "worker", "numpy", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hostile code ran')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "core.py"))
    result = finished(small(tmp_path / "m.onnx"), tmp_path)
    assert result.status == "complete", Path(result.spool, "stderr.log").read_text()


def test_the_runtime_sends_and_notes_nothing_about_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime's official builds keep a device number in the home folder and send usage data since 1.29."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    result = finished(small(tmp_path / "m.onnx"), tmp_path)
    assert result.status == "complete"
    assert list(home.rglob("*")) == []


def test_nothing_starts_without_an_approval_of_exactly_this_run(tmp_path: Path) -> None:
    request, spool = prepared(small(tmp_path / "m.onnx"), tmp_path)
    approval = approve(request, "tester")
    for changed in (
        replace(request, limits=RunLimits(threads=1)),
        replace(request, model_digest="other"),
        replace(request, inputs=(replace(request.inputs[0], sha256="0"),)),
        replace(request, latency=False),
    ):
        with pytest.raises(ApprovalVoid, match="changed since the approval"):
            process.start(changed, spool, approval)
        with pytest.raises(ApprovalVoid, match="not the one that was approved"):
            process.start(changed, spool, approve(changed, "tester"))
    file = Path(spool.file("inputs", request.inputs[0].file))
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    with pytest.raises(ApprovalVoid, match="input 'x' changed"):
        process.start(request, spool, approval)
    assert not Path(spool.events_file).exists()


def test_nothing_starts_when_the_model_changed(tmp_path: Path) -> None:
    path = small(tmp_path / "m.onnx")
    request, spool = prepared(path, tmp_path)
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(SourceChanged, match="changed on disk since the run was prepared"):
        process.start(request, spool, approve(request, "tester"))
    path.unlink()
    with pytest.raises(SourceChanged, match="is gone"):
        process.start(request, spool, approve(request, "tester"))


def test_a_damaged_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = small(tmp_path / "m.onnx")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 4])
    try:
        result = finished(path, tmp_path)
    except prepare.Unavailable:
        return
    assert result.status == "failed"
    assert "\n" not in result.reason


def test_several_parts_make_the_same_values(tmp_path: Path) -> None:
    nodes = [helper.make_node("Sin", ["x"], ["v0"])]
    nodes += [helper.make_node("Sin", [f"v{i}"], [f"v{i + 1}"]) for i in range(5)]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [4])], [("v5", FLOAT, [4])])
    whole, cut = finished(path, tmp_path), finished(path, tmp_path, RunLimits(capture=1))
    assert [load_value(whole, v).tobytes() for v in whole.values] == [load_value(cut, v).tobytes() for v in cut.values]


def _until(holds: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)
