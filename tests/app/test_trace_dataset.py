"""A data set through the service and a real worker: approved once, stopped, gone on with, read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app import workspace
from app.actors import LOCAL_OWNER, Actor
from app.services import datasets, opening
from core.errors import ApprovalVoid, Forbidden, NotFound
from core.run import dataset as sets
from core.trace.types import RunLimits

WEIGHT = np.array([[1.0, 0.0], [0.0, -1.0], [2.0, 0.0]], np.float32)


@pytest.fixture(autouse=True)
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MODELGLASS_HOME", str(tmp_path / "home"))
    workspace.close()
    yield
    workspace.close()


@pytest.fixture
def model(tmp_path: Path) -> str:
    """``y = x @ w`` with x float32 [1, 3]."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 2])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return opening.open_path(LOCAL_OWNER, str(path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "data"
    place.mkdir()
    for number in range(12):
        np.save(place / f"{number}.npy", np.full((2, 3), number, np.float32) * np.array([1, 1, number % 2], np.float32))
    return place


def test_a_folder_gives_ranges_and_the_inputs_that_excite_a_channel(
    model: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sets, "SAMPLES", 8)  # two workers for twelve samples
    planned = datasets.plan(LOCAL_OWNER, model, "x", str(folder), limits=RunLimits(threads=1))
    assert planned.samples == tuple(f"{n}.npy" for n in range(12))
    job = datasets.start(LOCAL_OWNER, planned, planned.fingerprint)
    ended = workspace.current().jobs.wait(job.id, 120)
    assert ended.state == "done", ended.error
    (record,) = datasets.listed(LOCAL_OWNER, model)
    assert record.done == 12
    table = datasets.table(LOCAL_OWNER, record.plan.id).set_index("name")
    arrays = [np.load(folder / f"{n}.npy") for n in range(12)]
    y = np.concatenate([a @ WEIGHT for a in arrays])
    assert (table.loc["y", "min"], table.loc["y", "max"]) == (y.min(), y.max())
    assert table.loc["y", "std"] == pytest.approx(y.std())
    by = datasets.channels(LOCAL_OWNER, record.plan.id, table.loc["y", "id"])
    assert by["inputs"][0].split(", ")[:2] == ["11.npy (33)", "9.npy (27)"]  # odd ones count three times
    assert list(workspace.current().spools.folder.iterdir()) == []


def test_a_set_that_was_stopped_goes_on_under_its_consent(
    model: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sets, "SAMPLES", 2)
    planned = datasets.plan(LOCAL_OWNER, model, "x", str(folder), limits=RunLimits(threads=1))
    job = datasets.start(LOCAL_OWNER, planned, planned.fingerprint)
    jobs = workspace.current().jobs
    while jobs.get(job.id).done < 2 and jobs.get(job.id).active:
        time.sleep(0.02)
    jobs.cancel(job.id)
    assert jobs.wait(job.id, 60).state == "cancelled"
    (record,) = datasets.listed(LOCAL_OWNER, model)
    assert 0 < record.done < 12
    again = datasets.resume(LOCAL_OWNER, record.plan.id)
    assert jobs.wait(again.id, 120).state == "done"
    (record,) = datasets.listed(LOCAL_OWNER, model)
    assert record.done == 12
    assert set(datasets.table(LOCAL_OWNER, record.plan.id)["samples"]) == {12}
    np.save(folder / "3.npy", np.zeros((2, 3), np.float32))
    with pytest.raises(ApprovalVoid, match="changed since"):
        datasets.resume(LOCAL_OWNER, record.plan.id)
    datasets.forget(LOCAL_OWNER, record.plan.id)
    assert datasets.listed(LOCAL_OWNER, model) == []


def test_consent_is_to_exactly_this_set_and_only_an_owner_reads_folders(model: str, folder: Path) -> None:
    planned = datasets.plan(LOCAL_OWNER, model, "x", count=3)
    assert planned.samples == ("random, seed 0", "random, seed 1", "random, seed 2")
    with pytest.raises(ApprovalVoid):
        datasets.start(LOCAL_OWNER, planned, "another")
    with pytest.raises(Forbidden):
        datasets.plan(Actor("c", "C", "collaborator"), model, "x", str(folder))
    with pytest.raises(NotFound):
        datasets.plan(LOCAL_OWNER, model, "nothing", count=2)
