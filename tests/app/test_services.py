"""The services from the outside: roles, uploads, changed files, and a worker that is killed at any moment."""

from __future__ import annotations

import importlib
import inspect
import io
import os
import pkgutil
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import app.services
from app import workspace
from app.actors import LOCAL_OWNER, Actor
from app.services import input_files, inputs, models, opening, tensors, tracing
from app.services.registry import SERVICES
from core.errors import ApprovalVoid, Forbidden, NotFound, SourceChanged, UnreadableFile
from core.inputs.recipe import Recipe
from core.tensors.read import values
from core.trace.types import Approval, RunLimits

VIEWER = Actor("v", "A viewer", "viewer")
COLLABORATOR = Actor("c", "A collaborator", "collaborator")
SAMPLE = Path(app.__path__[0]) / "sample" / "sample.onnx"
MODULES = [importlib.import_module(f"app.services.{m.name}") for m in pkgutil.iter_modules(app.services.__path__)]

DEEDS = {
    "opening.open_path": "owner", "opening.open_upload": "owner", "opening.open_uploads": "owner", "opening.close": "owner",
    "opening.reopen": "owner", "opening.open_sample": "owner", "opening.forget": "owner", "opening.recent": "owner",
    "tracing.prepare": "collaborator", "tracing.approve": "collaborator", "tracing.start": "collaborator",
    "tracing.stop": "collaborator", "tracing.forget": "collaborator", "tensors.scan": "collaborator",
    "inputs.assign": "collaborator", "inputs.materialise": "collaborator", "input_files.assign_upload": "collaborator",
    "jobs.cancel": "collaborator",
}  # fmt: skip
"""What opens, runs, writes or stops something, and the least role that may do it."""

WITHIN = {"reach", "admit", "reading"}
"""Steps of services, called by them after they checked the role."""


@pytest.fixture(autouse=True)
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MODELGLASS_HOME", str(tmp_path / "home"))
    workspace.close()
    yield
    workspace.close()


@pytest.fixture
def sample() -> str:
    return opening.open_sample(LOCAL_OWNER)


# --- roles ------------------------------------------------------------------------------


def test_every_service_function_is_registered() -> None:
    for module in MODULES:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if (
                function.__module__ != module.__name__
                or name.startswith("_")
                or not inspect.signature(function).parameters
            ):
                continue
            if next(iter(inspect.signature(function).parameters)) == "actor" and name not in WITHIN:
                assert f"{module.__name__.rsplit('.', 1)[-1]}.{name}" in SERVICES, name


@pytest.mark.parametrize("name", DEEDS)
def test_deeds_ask_for_their_role(name: str) -> None:
    assert SERVICES[name].least == DEEDS[name]


def test_a_viewer_is_refused_before_anything_is_touched() -> None:
    refused = [service for service in SERVICES.values() if service.least != "viewer"]
    assert len(refused) >= len(DEEDS)
    for service in refused:
        with pytest.raises(Forbidden, match="viewer may not"):
            service.function(VIEWER)  # no argument is looked at, so none is needed


def test_a_collaborator_reads_no_file_of_this_machine(sample: str, tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "secret.png")
    np.save(tmp_path / "secret.npy", np.zeros(3, np.float32))
    name = inputs.plan(LOCAL_OWNER, sample)[0].slot.name
    for recipe in (
        Recipe("npy", path=str(tmp_path / "secret.npy")),
        Recipe("image", options={"path": str(tmp_path / "secret.png")}),
        Recipe("image", path=str(tmp_path / "secret.png")),
    ):
        with pytest.raises(Forbidden):
            inputs.assign(COLLABORATOR, sample, name, recipe)
    assert inputs.assigned(LOCAL_OWNER, sample) == {}


def test_paths_outside_the_roots_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "allowed"
    root.mkdir()
    (root / "link.onnx").symlink_to(SAMPLE)
    workspace.current().roots = (root,)
    for path in (SAMPLE, root / "link.onnx", root / ".." / "x.onnx"):
        with pytest.raises(Forbidden):
            opening.open_path(LOCAL_OWNER, str(path))


# --- opening ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../../evil.onnx", "/etc/evil.onnx", "a\0b.onnx", "..", "", "C:\\x\\evil.onnx", "x" * 5000]
)
def test_uploads_stay_in_their_folder(name: str) -> None:
    artifact = opening.open_upload(LOCAL_OWNER, name, io.BytesIO(SAMPLE.read_bytes()))
    path = Path(models.get(LOCAL_OWNER, artifact).path)
    assert path.resolve().is_relative_to(workspace.current().uploads.resolve())
    assert path.read_bytes() == SAMPLE.read_bytes()


def test_a_model_and_its_data_file_are_uploaded_together(tmp_path: Path) -> None:
    weight = np.arange(4000, dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4000])],
        [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data")
    files = [(name, io.BytesIO((tmp_path / name).read_bytes())) for name in ("m.onnx", "m.data")]
    opened = models.get(LOCAL_OWNER, opening.open_uploads(LOCAL_OWNER, files))
    np.testing.assert_array_equal(values(opened, 0), weight)


def test_changed_bytes_are_refused_until_reopened(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(SAMPLE.read_bytes())
    artifact = opening.open_path(LOCAL_OWNER, str(path))
    path.write_bytes(SAMPLE.read_bytes() + b"\0")
    with pytest.raises(SourceChanged, match="Reopen"):
        tensors.statistics(LOCAL_OWNER, artifact, 0)
    path.write_bytes(SAMPLE.read_bytes())
    again = opening.reopen(LOCAL_OWNER, artifact)
    assert tensors.statistics(LOCAL_OWNER, again, 0).count > 0


def test_missing_and_unknown_are_one_sentence() -> None:
    with pytest.raises(UnreadableFile, match="does not exist"):
        opening.open_path(LOCAL_OWNER, "/nowhere/model.onnx")
    with pytest.raises(NotFound):
        models.get(LOCAL_OWNER, "q0123456789abcdef")


def test_digest_is_the_files_sha256(sample: str) -> None:
    import hashlib

    expected = hashlib.sha256(SAMPLE.read_bytes()).hexdigest()
    until = time.monotonic() + 20
    while not (digest := models.status(LOCAL_OWNER, sample).digest) and time.monotonic() < until:
        time.sleep(0.02)
    assert digest == expected
    assert models.get(LOCAL_OWNER, expected[:12]) is models.get(LOCAL_OWNER, sample)


# --- runs -------------------------------------------------------------------------------


def prepared(artifact: str) -> tracing.Prepared:
    return tracing.prepare(LOCAL_OWNER, artifact, RunLimits(threads=1), latency=False)


def test_an_approval_is_for_one_person_and_one_request(sample: str) -> None:
    first = prepared(sample)
    approval = tracing.approve(LOCAL_OWNER, first)
    other = tracing.prepare(LOCAL_OWNER, sample, RunLimits(threads=1, time=30), latency=False)
    for wrong in (approval, Approval(other.request.fingerprint(), "somebody else", time.time())):
        with pytest.raises(ApprovalVoid):
            tracing.start(LOCAL_OWNER, other, wrong)


@pytest.mark.slow
def test_killing_the_worker_twenty_times_breaks_nothing(sample: str) -> None:
    moments = random.Random(5)
    statuses = []
    for _ in range(20):
        run = prepared(sample)
        job = tracing.start(LOCAL_OWNER, run, tracing.approve(LOCAL_OWNER, run))
        killer = threading.Timer(moments.uniform(0.0, 1.2), kill_workers)
        killer.start()
        workspace.current().jobs.wait(job.id, 60)
        killer.join()
        record = tracing.result(LOCAL_OWNER, run.id)
        statuses.append(record.status)
        assert record.status in ("failed", "complete"), record
        if record.status == "failed":
            assert "signal 9" in record.reason
        assert tracing.values(LOCAL_OWNER, run.id).total >= 0
    assert statuses.count("failed") >= 5, statuses
    assert len(tracing.history(LOCAL_OWNER, sample)) == 20
    last = prepared(sample)
    job = tracing.start(LOCAL_OWNER, last, tracing.approve(LOCAL_OWNER, last))
    workspace.current().jobs.wait(job.id, 60)
    assert tracing.result(LOCAL_OWNER, last.id).status == "complete"
    workspace.close()  # the database opens again and has them all
    assert len(tracing.history(LOCAL_OWNER, opening.open_sample(LOCAL_OWNER))) == 21


def kill_workers() -> None:
    """SIGKILL for every worker below this process."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes().split(b"\0")
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            if b"worker" in command and parent == os.getpid():
                os.kill(int(folder.name), signal.SIGKILL)


def test_an_uploaded_array_is_used_in_the_run(sample: str) -> None:
    plan = inputs.plan(LOCAL_OWNER, sample)[0]
    array = inputs.materialise(LOCAL_OWNER, sample)[plan.slot.name]
    buffer = io.BytesIO()
    np.save(buffer, np.full_like(array, 0.25))
    buffer.seek(0)
    input_files.assign_upload(COLLABORATOR, sample, plan.slot.name, "../../quarter.npy", buffer)
    assert np.all(inputs.materialise(COLLABORATOR, sample)[plan.slot.name] == 0.25)
