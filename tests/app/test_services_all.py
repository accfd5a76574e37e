import importlib
import inspect
import io
import os
import pkgutil
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app import services, workspace
from app.actors import LOCAL_OWNER, Actor
from app.services import inputs, jobs, models, opening, tensors, tracing
from app.services.registry import SERVICES
from core.errors import (
    ApprovalVoid,
    Forbidden,
    InputMismatch,
    LimitExceeded,
    NotFound,
    SourceChanged,
    UnknownFormat,
    UnreadableFile,
    UsageError,
)
from core.inputs.recipe import Recipe
from core.trace.types import Approval, RunLimits

VIEWER = Actor("v", "Viewer", "viewer")
COLLABORATOR = Actor("c", "Collaborator", "collaborator")
MODULES = [importlib.import_module(f"app.services.{m.name}") for m in pkgutil.iter_modules(services.__path__)]

FOR_VIEWERS = {
    "activations.compare", "activations.layers", "activations.picture", "activations.pieces", "activations.steps",
    "activations.subject", "activations.token_labels", "datasets.channels", "datasets.listed", "datasets.table",
    "edits.script", "edits.state",
    "inputs.assigned", "inputs.plan", "jobs.active", "jobs.get", "jobs.listed", "loading.at_work", "models.derived", "models.get",
    "models.opened", "models.status", "sql.active", "sql.result", "sql.run", "sql.stop", "sql.tables", "tensors.count", "tensors.facets", "tensors.known_statistics", "tensors.page",
    "tensors.statistics", "timings.operators", "tracing.depth", "tracing.described", "tracing.history",
    "tracing.kept", "tracing.memory", "tracing.nodes",
    "tracing.result", "tracing.value", "tracing.values",
}  # fmt: skip
"""They only look; whatever is added to them needs a thought."""

BEHIND_SERVICES = {"reach", "admit", "reading"}

WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("MODELGLASS_HOME", str(folder))
    workspace.close()
    yield folder
    workspace.close()


def write_model(path: Path, weight=WEIGHT, **extra) -> Path:
    """``y = x @ w`` with x float32 [batch, 3]."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path, **extra)
    return path


@pytest.fixture
def path(tmp_path):
    return write_model(tmp_path / "small.onnx")


@pytest.fixture
def model(path):
    return opening.open_path(LOCAL_OWNER, str(path))


def hashed(artifact):
    held = workspace.current()
    for job in held.jobs.list():
        if job.kind == "hash":
            held.jobs.wait(job.id, 30)
    return models.status(LOCAL_OWNER, artifact).digest


def traced(artifact, actor=LOCAL_OWNER, **limits):
    prepared = tracing.prepare(actor, artifact, RunLimits(threads=1, **limits), latency=False)
    job = tracing.start(actor, prepared, tracing.approve(actor, prepared))
    return workspace.current().jobs.wait(job.id, 60)


# --- roles ------------------------------------------------------------------------------


def test_every_service_that_does_more_than_look_refuses_a_viewer_before_touching_anything(home):
    refused = 0
    for service in SERVICES.values():
        if service.least == "viewer":
            continue
        with pytest.raises(Forbidden, match="viewer may not"):
            service.function(VIEWER)
        refused += 1
    assert refused > 15
    assert not home.exists()


def test_every_owner_service_refuses_a_collaborator(home):
    owners = [service for service in SERVICES.values() if service.least == "owner"]
    for service in owners:
        with pytest.raises(Forbidden):
            service.function(COLLABORATOR)
    assert {"opening.open_path", "opening.open_uploads", "opening.forget"} <= {service.name for service in owners}
    assert not home.exists()


def test_what_a_viewer_may_call_is_a_list_that_was_thought_about():
    assert {name for name, service in SERVICES.items() if service.least == "viewer"} == FOR_VIEWERS


def test_every_function_that_is_given_an_actor_is_a_service():
    for module in MODULES:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__ or name.startswith("_") or name in BEHIND_SERVICES:
                continue
            if next(iter(inspect.signature(function).parameters), "") == "actor":
                service = SERVICES[f"{module.__name__.rsplit('.', 1)[-1]}.{name}"]
                assert service.function is function


def test_a_viewer_sees_an_open_model_and_cannot_open_a_closed_one(model):
    assert models.get(VIEWER, model).name == "small.onnx"
    assert tensors.page(VIEWER, model).total == 1
    opening.close(LOCAL_OWNER, model)
    with pytest.raises(Forbidden, match="not open"):
        models.get(VIEWER, model)
    assert models.get(LOCAL_OWNER, model).name == "small.onnx"


def test_a_collaborator_cannot_read_files_of_the_machine_through_an_input(model, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 3), np.float32))
    with pytest.raises(Forbidden):
        inputs.assign(COLLABORATOR, model, "x", Recipe("npy", path=str(tmp_path / "x.npy")))
    inputs.assign(COLLABORATOR, model, "x", Recipe("ones"))


# --- opening ----------------------------------------------------------------------------


def test_an_opened_file_is_hashed_and_found_by_every_name(path, model):
    import hashlib

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert model[0] == "q"
    assert len(model) == 17
    assert hashed(model) == digest
    for name in (model, digest, digest[:8]):
        assert models.get(LOCAL_OWNER, name) is models.get(LOCAL_OWNER, model)
    assert opening.open_path(LOCAL_OWNER, str(path)) == digest
    assert [(r.artifact.id, r.here, r.open, r.artifact.verdict) for r in opening.recent(LOCAL_OWNER)] == [
        (digest, True, True, "ok")
    ]


def test_a_closed_model_opens_again_by_its_id_after_a_restart(model, path):
    digest = hashed(model)
    workspace.close()
    assert models.get(LOCAL_OWNER, digest).name == "small.onnx"
    path.unlink()
    opening.close(LOCAL_OWNER, digest)
    with pytest.raises(UnreadableFile):
        models.get(LOCAL_OWNER, digest)
    assert not opening.recent(LOCAL_OWNER)[0].here


def test_another_file_at_the_same_path_is_refused_until_reopened(model, path):
    digest = hashed(model)
    opening.close(LOCAL_OWNER, model)
    write_model(path, WEIGHT + 1)
    with pytest.raises(SourceChanged):
        models.get(LOCAL_OWNER, digest)
    again = opening.reopen(LOCAL_OWNER, digest)
    assert hashed(again) != digest


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "\0"])
def test_no_path_is_no_path(text):
    with pytest.raises(UsageError):
        opening.open_path(LOCAL_OWNER, text)


def test_a_path_in_quotes_or_below_home_is_understood(path, monkeypatch):
    monkeypatch.setenv("HOME", str(path.parent))
    first = opening.open_path(LOCAL_OWNER, f' "{path}" ')
    if os.name == "posix":
        assert opening.open_path(LOCAL_OWNER, "~/small.onnx") in (first, hashed(first))


def test_roots_bound_what_may_be_opened(tmp_path, monkeypatch):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        write_model(folder / "m.onnx")
    (inside / "link.onnx").symlink_to(outside / "m.onnx")
    monkeypatch.setenv("MODELGLASS_ROOTS", str(inside))
    assert opening.open_path(LOCAL_OWNER, str(inside / "m.onnx"))
    for path in (outside / "m.onnx", inside / ".." / "outside" / "m.onnx", inside / "link.onnx"):
        with pytest.raises(Forbidden, match="outside the folders"):
            opening.open_path(LOCAL_OWNER, str(path))
    np.save(outside / "x.npy", np.ones((1, 3), np.float32))
    artifact = opening.open_path(LOCAL_OWNER, str(inside / "m.onnx"))
    with pytest.raises(Forbidden):
        inputs.assign(LOCAL_OWNER, artifact, "x", Recipe("npy", path=str(outside / "x.npy")))


def test_the_sample_opens():
    artifact = opening.open_sample(LOCAL_OWNER)
    assert models.get(LOCAL_OWNER, artifact).node_count > 10


def test_only_so_many_models_stay_open(tmp_path):
    first = opening.open_path(LOCAL_OWNER, str(write_model(tmp_path / "0.onnx")))
    for i in range(1, 9):
        opening.open_path(LOCAL_OWNER, str(write_model(tmp_path / f"{i}.onnx", WEIGHT + i)))
    assert len(models.opened(LOCAL_OWNER)) == 8
    assert first not in [status.quick for status in models.opened(LOCAL_OWNER)]


def test_derived_things_are_made_once_and_go_with_the_model(model):
    made = []
    for _ in range(2):
        assert models.derived(LOCAL_OWNER, model, "key", lambda m: made.append(m) or len(made)) == 1
    opening.close(LOCAL_OWNER, model)
    assert models.derived(LOCAL_OWNER, model, "key", lambda m: made.append(m) or len(made)) == 2


def test_forgetting_removes_the_upload_but_no_file_of_the_person(path, model, home):
    opening.forget(LOCAL_OWNER, model)
    assert path.exists()
    uploaded = opening.open_upload(LOCAL_OWNER, "up.onnx", io.BytesIO(path.read_bytes()))
    assert len(list((home / "uploads").iterdir())) == 1
    opening.forget(LOCAL_OWNER, uploaded)
    assert list((home / "uploads").iterdir()) == []
    assert opening.recent(LOCAL_OWNER) == []
    with pytest.raises(NotFound):
        models.get(LOCAL_OWNER, uploaded)


# --- uploads ----------------------------------------------------------------------------

HOSTILE = {
    "../../etc/passwd": "passwd",
    "..\\..\\boot.onnx": "boot.onnx",
    "/abs/olute.onnx": "olute.onnx",
    "C:\\x\\y.onnx": "y.onnx",
    "C:evil.onnx": "C_evil.onnx",
    "": "model",
    "..": "model",
    "...": "model",
    ".hidden.onnx": "hidden.onnx",
    "nul.onnx": "_nul.onnx",
    "COM1": "_COM1",
    "a\0b\nc\x1b[31m.onnx": "abc[31m.onnx",
    "<script>alert(1)</script>.onnx": "script_.onnx",
    "a:b|c?d*e\"f'.onnx": "a_b_c_d_e_f_.onnx",
    "模型.onnx": "模型.onnx",
    "trailing.onnx. ": "trailing.onnx",
    "\u202egnp.onnx": "gnp.onnx",
}


@pytest.mark.parametrize(("name", "safe"), HOSTILE.items(), ids=repr)
def test_an_uploaded_name_becomes_a_plain_name(name, safe):
    assert opening.safe_name(name) == safe


@pytest.mark.parametrize("name", ["x" * 5000 + ".onnx", "模" * 5000, "a." + "b" * 5000])
def test_a_long_name_is_cut_to_what_file_systems_take(name):
    assert 0 < len(opening.safe_name(name).encode()) <= 200


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_an_upload_stays_inside_the_uploads_folder(name, path, home):
    opening.open_upload(LOCAL_OWNER, name, io.BytesIO(path.read_bytes()))
    stored = [p for p in home.parent.rglob("*") if p.is_file() and p.read_bytes() == path.read_bytes()]
    assert len(stored) == 2
    assert {p.parent.parent for p in stored if p != path} == {home / "uploads"}


def test_equal_uploads_are_kept_once(path, home):
    for _ in range(2):
        opening.open_upload(LOCAL_OWNER, "m.onnx", io.BytesIO(path.read_bytes()))
    assert len([p for p in (home / "uploads").rglob("*") if p.is_file()]) == 1


def test_a_model_and_its_data_file_arrive_in_one_folder(tmp_path):
    big = np.arange(3000, dtype=np.float32).reshape(3, 1000)
    source = write_model(tmp_path / "big.onnx", big, save_as_external_data=True, location="big.data", size_threshold=0)
    files = [(name, io.BytesIO((source.parent / name).read_bytes())) for name in ("big.onnx", "big.data")]
    artifact = opening.open_uploads(LOCAL_OWNER, files)
    assert models.get(LOCAL_OWNER, artifact).findings == ()
    assert tensors.statistics(LOCAL_OWNER, artifact, 0).mean == big.mean(dtype=np.float64)


def test_an_upload_that_is_no_model_leaves_nothing(home):
    with pytest.raises(UnknownFormat):
        opening.open_upload(LOCAL_OWNER, "m.onnx", io.BytesIO(b"hello"))
    with pytest.raises(UnreadableFile):
        opening.open_upload(LOCAL_OWNER, "m.onnx", io.BytesIO(b""))
    assert list((home / "uploads").iterdir()) == []


def test_an_upload_without_end_is_stopped_at_the_bound(home, monkeypatch):
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size=-1):
            self.given += size
            return bytes(size)

    monkeypatch.setattr(opening, "UPLOAD_BYTES", 10 << 20)
    stream = Endless()
    with pytest.raises(LimitExceeded, match="upload"):
        opening.open_upload(LOCAL_OWNER, "m.onnx", stream)
    assert stream.given <= (10 << 20) + opening.PIECE
    assert list((home / "uploads").iterdir()) == []


def test_two_files_of_one_name_are_refused(home):
    with pytest.raises(UsageError, match="two uploaded files"):
        opening.open_uploads(LOCAL_OWNER, [("a/x", io.BytesIO(b"1")), ("b/x", io.BytesIO(b"2"))])
    assert list((home / "uploads").iterdir()) == []


# --- statistics and jobs ----------------------------------------------------------------


def test_a_scan_fills_the_table_and_survives_a_restart(model):
    job = workspace.current().jobs.wait(tensors.scan(COLLABORATOR, model).id, 60)
    assert (job.state, job.result) == ("done", 1)
    row = tensors.page(VIEWER, model, sort="absmax", descending=True).rows.iloc[0]
    assert (row["max"], row["mean"]) == (WEIGHT.max(), WEIGHT.mean())
    workspace.close()
    models.get(LOCAL_OWNER, model)
    assert tensors.known_statistics(VIEWER, model, 0) == tensors.statistics(VIEWER, model, 0)
    assert {ended.kind for ended in jobs.ended(LOCAL_OWNER)} >= {"statistics", "hash"}


def test_a_tensor_that_is_not_there_is_named(model):
    for index in (-1, 1):
        with pytest.raises(NotFound, match="no tensor"):
            tensors.statistics(LOCAL_OWNER, model, index)


# --- inputs and runs --------------------------------------------------------------------


def test_inputs_are_planned_assigned_and_made(model):
    (plan,) = inputs.plan(VIEWER, model)
    assert (plan.slot.name, plan.assigned) == ("x", False)
    assert plan.reason
    assert plan.recipe.dims == {"batch": 1}
    inputs.assign(LOCAL_OWNER, model, "x", Recipe("ones", dims={"batch": 4}))
    np.testing.assert_array_equal(inputs.materialise(LOCAL_OWNER, model)["x"], np.ones((4, 3), np.float32))
    assert inputs.assigned(VIEWER, model)["x"].dims == {"batch": 4}
    inputs.assign(LOCAL_OWNER, model, "x", None)
    assert not inputs.plan(VIEWER, model)[0].assigned
    with pytest.raises(NotFound):
        inputs.assign(LOCAL_OWNER, model, "nope", Recipe("ones"))


def test_a_run_is_approved_done_and_kept(model):
    inputs.assign(LOCAL_OWNER, model, "x", Recipe("ones", dims={"batch": 2}))
    job = traced(model, COLLABORATOR)
    assert (job.state, job.error) == ("done", "")
    record = tracing.result(VIEWER, job.subject)
    assert (record.status, record.actor) == ("complete", "c")
    assert [r.id for r in tracing.history(VIEWER, model)] == [job.subject]
    rows = tracing.values(VIEWER, job.subject, text="y").rows
    expected = np.ones((2, 3), np.float32) @ WEIGHT
    np.testing.assert_array_equal(tracing.value(VIEWER, job.subject, rows["id"].iloc[0]), expected)
    assert rows["mean"].iloc[0] == expected.mean()
    workspace.close()
    assert tracing.kept(VIEWER, job.subject)
    assert tracing.described(VIEWER, job.subject, rows["id"].iloc[0]).stats.max == expected.max()


def test_values_that_were_removed_are_said_to_be_gone(model):
    job = traced(model)
    held = workspace.current()
    held.spools.remove(job.subject)
    assert not tracing.kept(VIEWER, job.subject)
    assert tracing.values(VIEWER, job.subject).total == 2
    value = tracing.values(VIEWER, job.subject).rows["id"].iloc[0]
    with pytest.raises(NotFound, match="Run it again"):
        tracing.value(VIEWER, job.subject, value)
    tracing.forget(LOCAL_OWNER, job.subject)
    assert tracing.history(VIEWER, model) == []


def test_an_approval_is_good_for_its_request_its_person_and_once(model):
    prepared = tracing.prepare(LOCAL_OWNER, model)
    approval = tracing.approve(LOCAL_OWNER, prepared)
    other = tracing.prepare(LOCAL_OWNER, model, RunLimits(time=5.0))
    for actor, run, given in (
        (COLLABORATOR, prepared, approval),
        (LOCAL_OWNER, other, approval),
        (LOCAL_OWNER, prepared, Approval("0" * 64, "local", 0.0)),
    ):
        with pytest.raises(ApprovalVoid):
            tracing.start(actor, run, given)
    job = tracing.start(LOCAL_OWNER, prepared, approval)
    with pytest.raises(ApprovalVoid, match="started already"):
        tracing.start(LOCAL_OWNER, prepared, approval)
    assert workspace.current().jobs.wait(job.id, 60).state == "done"


def test_a_discarded_run_leaves_no_folder(model):
    prepared = tracing.prepare(LOCAL_OWNER, model)
    assert Path(prepared.spool).is_dir()
    tracing.discard(LOCAL_OWNER, prepared)
    assert not Path(prepared.spool).exists()


def test_an_input_that_does_not_fit_is_refused_before_anything_is_written(model, tmp_path, home):
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.float32))
    inputs.assign(LOCAL_OWNER, model, "x", Recipe("npy", path=str(tmp_path / "x.npy")))
    with pytest.raises(InputMismatch):
        tracing.prepare(LOCAL_OWNER, model)
    assert list((home / "spools").iterdir()) == []


def test_a_run_that_fails_is_kept_with_its_reason(model):
    job = traced(model, time=0.01)
    assert job.state == "failed"
    record = tracing.result(VIEWER, job.subject)
    assert record.status == "timeout"
    assert record.reason in job.error


def test_a_run_can_be_stopped(model):
    inputs.assign(LOCAL_OWNER, model, "x", Recipe("random", dims={"batch": 200_000}))
    prepared = tracing.prepare(LOCAL_OWNER, model)
    job = tracing.start(LOCAL_OWNER, prepared, tracing.approve(LOCAL_OWNER, prepared))
    while jobs.get(LOCAL_OWNER, job.id).state == "queued":
        time.sleep(0.01)
    tracing.stop(LOCAL_OWNER, job.id)
    assert workspace.current().jobs.wait(job.id, 30).state == "cancelled"
    assert tracing.result(LOCAL_OWNER, job.subject).status == "cancelled"
