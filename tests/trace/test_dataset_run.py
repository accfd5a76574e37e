"""A data set through the worker's engine, in this process: the same figures as onnxruntime's own outputs give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node

from core.ir import Model
from core.opening import open_model
from core.run import dataset
from core.run.result import collect
from core.trace.dataset import DataSetStats
from core.trace.types import RunLimits, TraceRequest
from tests.worker.running import all_outputs, save
from worker.engines import ort_sessions
from worker.report import Report
from worker.run import run

NAMES = [f"{n}.png" for n in range(6)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    weight = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    weight[1] = 0
    nodes = [make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), make_node("Relu", ["c"], ["y"])]
    tensors = [numpy_helper.from_array(weight, "w")]
    shape = [1, 3, "h", "w"]
    return save(
        tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, None)], tensors
    )


def sample(number: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(number).normal(size=(1, 3, 5 + number % 2, 5)).astype(np.float32)}


def go(model: Model, stats: DataSetStats, numbers: range, folder: Path) -> tuple[DataSetStats, str]:
    request, spool = dataset.request(model, [sample(n) for n in numbers], {}, stats, RunLimits(), "digest", folder)
    assert TraceRequest.from_json(request.to_json()) == request
    with Report(spool) as report:
        outcome = run(spool, report, {})
        report.result(status=outcome.status, reason=outcome.reason)
    assert collect(spool, request, None, 0, 0.0, 0).status == outcome.status
    return DataSetStats.load(spool.file(dataset.STATE)), outcome.status


def test_two_jobs_over_a_set_give_what_all_of_it_gives(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, made = open_model(path), []
    real = ort_sessions.session
    monkeypatch.setattr(ort_sessions, "session", lambda *a: made.append(1) or real(*a))
    stats, status = go(model, DataSetStats("f", NAMES), range(4), tmp_path)
    assert (status, stats.done) == ("complete", 4)
    assert len(made) == 1, "the session is kept from sample to sample"
    stats, status = go(model, stats, range(4, 6), tmp_path)
    assert (status, stats.done) == ("complete", 6)
    found = {value.name: value for value in stats.values.values()}
    whole = [all_outputs(path, sample(n)) for n in range(6)]
    c = np.concatenate([each["c"].ravel() for each in whole]).astype(np.float64)
    assert found["c"].range() == (c.min(), c.max())
    assert found["c"].to_json()["std"] == pytest.approx(c.std(), rel=1e-9)
    channels = found["y"].channels
    assert channels is not None
    assert channels.axis == 1
    most = np.array([each["y"][0].max(axis=(1, 2)) for each in whole])
    for channel in (0, 2, 3):
        assert channels.best[channel][:6].tolist() == np.argsort(-most[:, channel], kind="stable").tolist()
    assert channels.high[1] == 0  # the dead channel
    model.close()


def test_a_sample_that_cannot_be_run_is_passed_over(path: Path, tmp_path: Path) -> None:
    nodes = [make_node("MatMul", ["x", "w"], ["y"])]
    tensors = [numpy_helper.from_array(np.ones((3, 2), np.float32), "w")]
    other = save(
        tmp_path / "mm.onnx", nodes, [("x", TensorProto.FLOAT, ["n", "k"])], [("y", TensorProto.FLOAT, None)], tensors
    )
    model = open_model(other)
    samples = [{"x": np.ones((1, k), np.float32)} for k in (3, 4, 3)]
    stats = DataSetStats("f", ["a", "b", "c"])
    request, spool = dataset.request(model, samples, {}, stats, RunLimits(), "digest", tmp_path)
    with Report(spool) as report:
        outcome = run(spool, report, {})
        report.result(status=outcome.status, reason=outcome.reason)
    result = collect(spool, request, None, 0, 0.0, 0)
    assert (result.status, result.reason) == ("partial", "1 of 3 samples could not be run whole.")
    assert any("Sample 'b' ended" in finding.message for finding in result.findings)
    assert {v.samples for v in DataSetStats.load(spool.file(dataset.STATE)).values.values() if v.name == "y"} == {2}
    model.close()


def test_consent_is_bound_to_the_samples() -> None:
    first = dataset.fingerprint("d", ["a", "b"], {"x": 1}, RunLimits())
    assert first == dataset.fingerprint("d", ["a", "b"], {"x": 1}, RunLimits())
    assert first != dataset.fingerprint("d", ["b", "a"], {"x": 1}, RunLimits())
    assert first != dataset.fingerprint("d", ["a", "b"], {"x": 1}, RunLimits(threads=1))
