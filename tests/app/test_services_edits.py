"""Edits through the services: revisions that every page shows, runs, saves and finds again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app import workspace
from app.actors import LOCAL_OWNER, Actor
from app.services import edits, inputs, models, opening, tensors, tracing
from core.edits.kinds import FixDimension, InsertNode, RenameNode, RenameValue, ScaleTensor
from core.errors import Forbidden, UsageError
from core.inputs.recipe import Recipe
from core.tensors.read import values
from core.trace.types import RunLimits

WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2) - 2
COLLABORATOR = Actor("c", "Collaborator", "collaborator")


@pytest.fixture(autouse=True)
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MODELGLASS_HOME", str(tmp_path / "home"))
    workspace.close()
    yield
    workspace.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"], name="mm"), helper.make_node("Relu", ["h"], ["y"], name="act")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture
def model(path: Path) -> str:
    return opening.open_path(LOCAL_OWNER, str(path))


def finished(job: str) -> object:
    done = workspace.current().jobs.wait(job, 60)
    assert done.state == "done", done.error
    return done.result


def quick(artifact: str) -> str:
    return models.status(LOCAL_OWNER, artifact).quick


def test_a_committed_edit_is_a_model_of_its_own(model: str) -> None:
    tried = edits.attempt(LOCAL_OWNER, model, RenameNode("act", "relu"))
    assert tried.ready
    assert [(change.what, change.before, change.after) for change in tried.changes.items] == [
        ("node", "act: y = Relu(h)", "relu: y = Relu(h)")
    ]
    edited = edits.commit(LOCAL_OWNER, model, RenameNode("act", "relu"))
    assert models.get(LOCAL_OWNER, edited).main_graph.node(1).name == "relu"  # type: ignore[union-attr]
    assert models.get(LOCAL_OWNER, model).main_graph.node(1).name == "act"  # type: ignore[union-attr]
    state = edits.state(LOCAL_OWNER, edited)
    assert state is not None
    assert (state.dirty, state.can_undo, state.can_redo, state.name) == (True, True, False, "small.onnx")


def test_the_same_edits_have_the_id_of_the_command_line(model: str, path: Path) -> None:
    edited = edits.commit(LOCAL_OWNER, model, RenameNode("act", "relu"))
    state = edits.state(LOCAL_OWNER, edited)
    assert state is not None
    root = hashlib.sha256(path.read_bytes()).hexdigest()
    text = f'{root}\n{{"edit":"rename_node","node":"act","to":"relu"}}'
    assert state.revision == hashlib.sha256(text.encode()).hexdigest()
    assert json.loads(edits.script(LOCAL_OWNER, edited))["edits"] == [
        {"edit": "rename_node", "node": "act", "to": "relu"}
    ]


def test_undo_redo_and_branches_lead_between_models(model: str) -> None:
    first = edits.commit(LOCAL_OWNER, model, RenameNode("act", "relu"))
    second = edits.commit(LOCAL_OWNER, first, ScaleTensor("w", 2))
    assert quick(edits.undo(LOCAL_OWNER, second)) == quick(first)
    assert quick(edits.redo(LOCAL_OWNER, first)) == quick(second)
    assert quick(edits.undo(LOCAL_OWNER, edits.undo(LOCAL_OWNER, second))) == quick(model)
    branch = edits.commit(LOCAL_OWNER, first, FixDimension("batch", 4))
    state = edits.state(LOCAL_OWNER, branch)
    assert state is not None
    assert [type(item.edit) for item in state.chain] == [RenameNode, FixDimension]
    (other,) = state.branches
    assert quick(edits.show(LOCAL_OWNER, branch, other.id)) == quick(second)
    assert np.array_equal(values(models.get(LOCAL_OWNER, second), 0), 2 * WEIGHT)
    with pytest.raises(UsageError, match="nothing to undo"):
        edits.undo(LOCAL_OWNER, model)


def test_a_revision_is_traced_as_it_is(model: str) -> None:
    edited = edits.commit(LOCAL_OWNER, edits.commit(LOCAL_OWNER, model, ScaleTensor("w", 2)), RenameValue("y", "out"))
    inputs.assign(LOCAL_OWNER, edited, "x", Recipe("ones", dims={"batch": 1}))
    prepared = tracing.prepare(LOCAL_OWNER, edited, RunLimits(threads=1), latency=False)
    trace = finished(tracing.start(LOCAL_OWNER, prepared, tracing.approve(LOCAL_OWNER, prepared)).id)
    rows = tracing.values(LOCAL_OWNER, str(trace)).rows
    row = rows[rows["name"] == "out"].iloc[0]
    # ones @ 2w: the column sums of w are 0 and 3
    assert tracing.value(LOCAL_OWNER, str(trace), row["id"]).tolist() == [[0, 6]]
    assert tensors.page(LOCAL_OWNER, edited).rows["name"].tolist() == ["w"]


def test_what_would_break_the_model_is_not_committed(model: str) -> None:
    broken = InsertNode("h", "Cast", {"to": TensorProto.FLOAT16})
    # Relu takes float16 as well, so only the output's type changes: that is told, and allowed.
    tried = edits.attempt(LOCAL_OWNER, model, broken)
    assert tried.ready
    assert "becomes float16" in tried.findings[0].message
    with pytest.raises(UsageError, match="no node 'gone'"):
        edits.commit(LOCAL_OWNER, model, RenameNode("gone", "here"))
    with pytest.raises(Forbidden):
        edits.commit(COLLABORATOR, model, RenameNode("act", "relu"))
    assert edits.attempt(COLLABORATOR, model, RenameNode("act", "relu")).ready


def test_saving_writes_checks_compares_and_is_no_longer_dirty(model: str, tmp_path: Path) -> None:
    edited = edits.commit(LOCAL_OWNER, model, RenameNode("act", "relu"))
    target = tmp_path / "saved.onnx"
    report = finished(edits.save(LOCAL_OWNER, edited, str(target)).id)
    assert isinstance(report, dict)
    assert report["onnx_checker"] == "valid"
    assert report["comparison"]["verdict"] == "bit-exact"
    assert onnx.load(target).graph.node[1].name == "relu"
    state = edits.state(LOCAL_OWNER, edited)
    assert state is not None
    assert not state.dirty
    assert report["files"][0]["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest()
    again = workspace.current().jobs.wait(edits.save(LOCAL_OWNER, edited, str(target)).id, 60)
    assert (again.state, "exists already" in again.error) == ("failed", True)


def test_a_revision_is_found_again_after_a_restart(model: str, path: Path) -> None:
    edited = edits.commit(LOCAL_OWNER, edits.commit(LOCAL_OWNER, model, ScaleTensor("w", 2)), RenameNode("act", "relu"))
    known = quick(edited)
    workspace.close()
    again = models.get(LOCAL_OWNER, known)
    assert again.main_graph.node(1).name == "relu"  # type: ignore[union-attr]
    assert np.array_equal(values(again, 0), 2 * WEIGHT)
    state = edits.state(LOCAL_OWNER, known)
    assert state is not None
    assert state.dirty
    opened = opening.open_path(LOCAL_OWNER, str(path))
    found = edits.state(LOCAL_OWNER, opened)
    assert found is not None
    assert found.ahead == state.revision
    assert [item.artifact.path for item in opening.recent(LOCAL_OWNER)] == [str(path)]


def test_a_damaged_history_is_set_aside(model: str, tmp_path: Path) -> None:
    edits.commit(LOCAL_OWNER, model, RenameNode("act", "relu"))
    workspace.close()
    (kept,) = (tmp_path / "home" / "edits").glob("*.json")
    kept.write_text(kept.read_text()[:-30])
    opened = opening.reopen(LOCAL_OWNER, model)
    assert edits.state(LOCAL_OWNER, opened) is None
    assert len(list((tmp_path / "home" / "edits").glob("*damaged*"))) == 1
    assert edits.commit(LOCAL_OWNER, opened, RenameNode("act", "again"))
