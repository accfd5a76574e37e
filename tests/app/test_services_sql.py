from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from app import workspace
from app.actors import LOCAL_OWNER, Actor
from app.sample import __file__ as sample_folder
from app.services import opening, sql
from core.errors import Cancelled, Forbidden, UsageError

VIEWER = Actor("v", "Viewer", "viewer")
SAMPLE = Path(sample_folder).with_name("sample.onnx")


@pytest.fixture(autouse=True)
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MODELGLASS_HOME", str(tmp_path / "home"))
    workspace.close()
    yield
    workspace.close()


@pytest.fixture
def model() -> str:
    return opening.open_sample(LOCAL_OWNER)


def asked(actor: Actor, model: str, text: str, **options) -> str:
    job = sql.run(actor, model, text, **options)
    workspace.current().jobs.wait(job.id, 30)
    return job.id


def test_rows_of_the_model(model: str) -> None:
    nodes = onnx.load(SAMPLE).graph.node
    job = asked(VIEWER, model, "SELECT op_type FROM nodes ORDER BY row")
    found = sql.result(VIEWER, job)
    assert found is not None
    assert found.rows.column("op_type").to_pylist() == [node.op_type for node in nodes]
    assert sql.result(LOCAL_OWNER, job) is None  # another person's
    tables = {table.name: table for table in sql.tables(VIEWER, model)}
    assert tables["nodes"].rows == len(nodes)
    assert ("op_type", "VARCHAR") in tables["nodes"].columns


def test_what_went_wrong_is_told_to_who_asked(model: str) -> None:
    job = asked(LOCAL_OWNER, model, "DROP TABLE tensors")
    with pytest.raises(UsageError, match="this is DROP"):
        sql.result(LOCAL_OWNER, job)
    assert workspace.current().jobs.get(job).state == "failed"


def test_a_viewer_sees_the_open_models_only(model: str, tmp_path: Path) -> None:
    other = onnx.load(SAMPLE)
    other.producer_name = "other"
    onnx.save(other, tmp_path / "other.onnx")
    closed = opening.open_path(LOCAL_OWNER, str(tmp_path / "other.onnx"))
    names = "SELECT name FROM models ORDER BY name"

    def seen(actor: Actor, **options) -> list[str]:
        found = sql.result(actor, asked(actor, model, names, **options))
        assert found is not None
        return found.rows.column("name").to_pylist()

    assert seen(VIEWER, everything=True) == ["other.onnx", "sample.onnx"]
    opening.close(LOCAL_OWNER, closed)
    assert seen(VIEWER, everything=True) == ["sample.onnx"]
    assert seen(LOCAL_OWNER, everything=True) == ["other.onnx", "sample.onnx"]
    assert seen(LOCAL_OWNER) == ["sample.onnx"]


def test_stop_and_one_query_a_person(model: str) -> None:
    endless = "SELECT count(*) FROM range(100000000000)"
    first, other = sql.run(LOCAL_OWNER, model, endless), sql.run(VIEWER, model, endless)
    with pytest.raises(Forbidden, match="another person"):
        sql.stop(VIEWER, first.id)
    sql.stop(VIEWER, other.id)
    second = asked(LOCAL_OWNER, model, "SELECT 1 AS one")  # ends the first one
    jobs = workspace.current().jobs
    assert [jobs.wait(job, 30).state for job in (first.id, other.id, second)] == ["cancelled", "cancelled", "done"]
    with pytest.raises(Cancelled):
        sql.result(VIEWER, other.id)
    assert not sql.active(LOCAL_OWNER, first.id)
