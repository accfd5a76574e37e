"""What the pages show of a value: views on offer, labels, comparison of runs, and fetching what was not kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app import workspace
from app.actors import LOCAL_OWNER
from app.services import activations, inputs, loading, opening, timings, tracing
from core.errors import ApprovalVoid, NotFound
from core.inputs.recipe import Recipe
from core.trace.answers.reading import place
from core.trace.types import RunLimits
from core.trace.views.offer import offered

RNG = np.random.default_rng(3)
KERNEL = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)
KERNEL[2] = 0
TABLE = RNG.normal(size=(50, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MODELGLASS_HOME", str(tmp_path / "home"))
    workspace.close()
    yield
    workspace.close()


def write(
    path: Path, nodes: list[onnx.NodeProto], x: tuple[str, int, list[int]], tensors: dict[str, np.ndarray]
) -> str:
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(*x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return opening.open_path(LOCAL_OWNER, str(path))


@pytest.fixture
def vision(tmp_path: Path) -> str:
    nodes = [helper.make_node("Conv", ["pixels", "w"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["y"])]
    return write(tmp_path / "vision.onnx", nodes, ("pixels", TensorProto.FLOAT, [1, 3, 16, 16]), {"w": KERNEL})


@pytest.fixture
def language(tmp_path: Path) -> str:
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["e"]),
        helper.make_node("MatMul", ["e", "head"], ["y"]),
    ]
    tensors = {"table": TABLE, "head": TABLE.T.copy()}
    return write(tmp_path / "language.onnx", nodes, ("input_ids", TensorProto.INT64, [1, 6]), tensors)


def traced(model: str, **limits: int) -> str:
    prepared = tracing.prepare(LOCAL_OWNER, model, RunLimits(threads=1, **limits), latency=False)
    job = tracing.start(LOCAL_OWNER, prepared, tracing.approve(LOCAL_OWNER, prepared))
    assert workspace.current().jobs.wait(job.id, 120).state == "done"
    return job.subject


def ids(run: str) -> dict[str, str]:
    rows = tracing.values(LOCAL_OWNER, run).rows
    return dict(zip(rows["name"], rows["id"], strict=True))


def test_a_feature_map_is_shown_over_the_picture_that_went_in(vision: str) -> None:
    run = traced(vision)
    found = activations.subject(LOCAL_OWNER, vision, run, ids(run)["y"])
    assert (found.image, found.channel_axis, found.stored) == ((16, 16), 1, True)
    assert offered(found)[:3] == ["overlay", "maps", "heatmap"]
    picture = activations.picture(LOCAL_OWNER, vision, run)
    assert picture is not None
    assert picture.shape == (16, 16, 3)
    findings = tracing.result(LOCAL_OWNER, run).findings
    dead = next(finding for finding in findings if finding.code == "run.dead")
    assert place(dead) == (ids(run)["y"], 0)


def test_logits_are_found_by_the_table_that_the_ids_look_up(language: str) -> None:
    run = traced(language)
    found = activations.subject(LOCAL_OWNER, language, run, ids(run)["y"])
    assert (found.vocabulary, offered(found)[0]) == (50, "tokens")
    kept = np.load(workspace.current().spools.path(run) / "inputs" / "0000.npy")
    assert activations.token_labels(LOCAL_OWNER, language, run) == [str(i) for i in kept[0]]


def test_a_tokenizer_beside_the_model_names_the_tokens(language: str, tmp_path: Path) -> None:
    vocabulary = {"[UNK]": 0, **{f"word{n}": n for n in range(1, 50)}}
    document = {"version": "1.0", "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
                "pre_tokenizer": {"type": "Whitespace"}}  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    assert activations.pieces(LOCAL_OWNER, language, [3, 0, 49]) == ["word3", "[UNK]", "word49"]


def test_two_runs_are_compared_value_by_value(vision: str) -> None:
    first = traced(vision)
    inputs.assign(LOCAL_OWNER, vision, "pixels", Recipe("zeros"))
    second = traced(vision)
    table = activations.compare(LOCAL_OWNER, vision, first, second).set_index("name")
    pixels, y = (tracing.value(LOCAL_OWNER, first, ids(first)[name]) for name in ("pixels", "y"))
    assert table.loc["pixels", "max_abs"] == pytest.approx(np.abs(pixels).max())
    assert table.loc["y", "relative_l2"] == pytest.approx(1.0)  # all of it is gone: conv of zeros is zero
    assert table.loc["y", "sqnr_db"] == pytest.approx(0.0)
    assert np.abs(y).max() == pytest.approx(table.loc["y", "max_abs"])
    same = activations.compare(LOCAL_OWNER, vision, first, first)
    assert set(same["sqnr_db"]) == {math.inf}


def test_a_value_that_was_not_kept_is_fetched_under_the_same_approval(vision: str) -> None:
    run = traced(vision, store=4 * 16 * 16 * 4 + 4)  # room for the output alone, which comes first
    wanted = ids(run)["c"]
    assert not tracing.described(LOCAL_OWNER, run, wanted).stored
    assert offered(activations.subject(LOCAL_OWNER, vision, run, wanted)) == ["histogram"]
    job = loading.load(LOCAL_OWNER, run, wanted)
    ended = workspace.current().jobs.wait(job.id, 120)
    assert ended.state == "done", ended.error
    c, y = (tracing.value(LOCAL_OWNER, run, ids(run)[name]) for name in ("c", "y"))
    assert (np.maximum(c, 0) == y).all()
    assert c.std() == pytest.approx(tracing.described(LOCAL_OWNER, run, wanted).stats.std, rel=1e-6)
    assert "maps" in offered(activations.subject(LOCAL_OWNER, vision, run, wanted))
    assert [p.name for p in workspace.current().spools.folder.iterdir()] == [run]


def test_operators_carry_their_cost(language: str) -> None:
    prepared = tracing.prepare(LOCAL_OWNER, language, RunLimits(threads=1))
    job = tracing.start(LOCAL_OWNER, prepared, tracing.approve(LOCAL_OWNER, prepared))
    assert workspace.current().jobs.wait(job.id, 120).state == "done"
    rows = timings.operators(LOCAL_OWNER, language, job.subject).set_index("op_type")
    product = rows.loc["MatMul"]
    assert product["macs"] == 6 * 8 * 50
    assert product["achieved"] == pytest.approx(2e6 * 6 * 8 * 50 / product["latency_us"])
    assert product["intensity"] == pytest.approx(2 * 6 * 8 * 50 / (4 * (6 * 8 + 8 * 50 + 6 * 50)))
    assert np.isnan(rows.loc["Gather", "achieved"])


def test_the_memory_of_a_run_is_that_of_its_shapes(vision: str) -> None:
    run = traced(vision)
    steps = tracing.memory(LOCAL_OWNER, run)
    made = 4 * 16 * 16 * 4  # bytes of c, and of y
    assert [step.node for step in steps] == ["g0.n0", "g0.n1"]
    assert [step.bytes for step in steps] == [3 * 16 * 16 * 4 + made, 2 * made]


def test_an_engine_is_asked_for_and_said(vision: str) -> None:
    prepared = tracing.prepare(LOCAL_OWNER, vision, RunLimits(threads=1), latency=False, engine="reference")
    job = tracing.start(LOCAL_OWNER, prepared, tracing.approve(LOCAL_OWNER, prepared))
    assert workspace.current().jobs.wait(job.id, 120).state == "done"
    assert "reference" in tracing.result(LOCAL_OWNER, job.subject).engine


def test_a_selection_is_kept_where_there_is_room_for_one(vision: str) -> None:
    size = 4 * 16 * 16 * 4
    prepared = tracing.prepare(
        LOCAL_OWNER, vision, RunLimits(threads=1, store=2 * size), latency=False, keep=("g0.n0",)
    )
    assert prepared.request.keep[0] in ids(traced(vision)).values()
    job = tracing.start(LOCAL_OWNER, prepared, tracing.approve(LOCAL_OWNER, prepared))
    assert workspace.current().jobs.wait(job.id, 120).state == "done"
    assert tracing.described(LOCAL_OWNER, job.subject, ids(job.subject)["c"]).stored


def test_nothing_is_fetched_for_another_request_or_a_run_that_is_gone(vision: str) -> None:
    run = traced(vision, store=0)
    spool = workspace.current().spools.path(run)
    document = json.loads((spool / "request.json").read_text())
    document["request"]["limits"]["threads"] = 2
    (spool / "request.json").write_text(json.dumps(document))
    with pytest.raises(ApprovalVoid):
        loading.load(LOCAL_OWNER, run, ids(run)["c"])
    workspace.current().spools.remove(run)
    with pytest.raises(NotFound):
        loading.load(LOCAL_OWNER, run, ids(run)["c"])
