"""Graph, Tensors, Inputs, Trace and Activations with a real model and a real worker, in every state."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from streamlit.testing.v1 import AppTest

from app import navigation, workspace
from app.actors import LOCAL_OWNER, Actor
from app.services import input_files, inputs, opening, tracing
from core.errors import BrokenFile, Forbidden
from core.inputs.recipe import Recipe
from core.trace.types import RunLimits

SCRIPT = Path(navigation.__file__).with_name("script.py")
WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2) - 2


@pytest.fixture(autouse=True)
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MODELGLASS_HOME", str(tmp_path / "home"))
    workspace.close()
    yield
    workspace.close()


@pytest.fixture
def model(tmp_path: Path) -> str:
    """``y = relu(a @ w + b @ w)`` with a, b float32 [batch, 3]: id of the opened model."""
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["a", "b"], ["s"], name="add"),
            helper.make_node("MatMul", ["s", "w"], ["h"], name="layer/mm"),
            helper.make_node("Relu", ["h"], ["y"], name="<script>act</script>"),
        ],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 3]) for n in "ab"],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return opening.open_path(LOCAL_OWNER, str(path))


@pytest.fixture
def run(model: str) -> str:
    """Id of a complete run with a = ones and b = zeros, batch 1: h = column sums of w = [0, 3]."""
    inputs.assign(LOCAL_OWNER, model, "a", Recipe("ones", dims={"batch": 1}))
    inputs.assign(LOCAL_OWNER, model, "b", Recipe("zeros", dims={"batch": 1}))
    prepared = tracing.prepare(LOCAL_OWNER, model, RunLimits(threads=1), latency=False)
    job = tracing.start(LOCAL_OWNER, prepared, tracing.approve(LOCAL_OWNER, prepared))
    workspace.current().jobs.wait(job.id, 120)
    return prepared.id


def show(page: str, **query: str) -> AppTest:
    at = AppTest.from_file(str(SCRIPT), default_timeout=60)
    at.query_params.update(query)
    at.run()
    at.switch_page(str(navigation.entry(page).path))
    at.query_params.update(query)
    at.run()
    assert not at.exception, at.exception
    return at


def words(at: AppTest) -> str:
    """Every word on the page, the escapes of plain text taken away."""
    kinds = (at.markdown, at.caption, at.error, at.warning, at.success, at.info, at.subheader)
    texts = [element.value for kind in kinds for element in kind]
    return "\n".join(texts).replace("\\", "").replace("\u2060", "").replace("\u202f", " ")


class TestGraph:
    def test_a_selected_operator_shows_ports_and_where_they_lead(self, model: str) -> None:
        at = show("graph", model=model, selection="g0.n1")
        text = words(at)
        assert "### MatMul" in text
        assert "`layer/mm`" in text
        assert "`float32` 3 × 2 · stored" in text
        at.button(key="to-Outputs-0-g0.n1-2").click().run()
        assert at.query_params["selection"] == "g0.n2"
        assert "### Relu" in words(at)

    def test_text_of_the_file_is_never_markup(self, model: str) -> None:
        at = show("graph", model=model, selection="g0.n2")
        assert "`<script>act</script>`" in words(at)
        canvas = next(e for e in at.main if e.type == "component_instance")
        given = json.loads(canvas.proto.json_args)
        assert "script" not in given["data"]
        assert "title" not in given["data"]

    def test_nothing_selected_says_what_to_do(self, model: str) -> None:
        assert "Click a box" in words(show("graph", model=model))

    def test_a_place_that_is_gone_leads_to_the_whole_graph(self, model: str) -> None:
        at = show("graph", model=model, inside="r0.0123456789ab")
        assert not at.error
        assert "inside" not in at.query_params

    def test_find_jumps_to_an_operator(self, model: str) -> None:
        at = show("graph", model=model)
        at.text_input(key="graph-find-text-0").set_value("relu").run()
        at.button(key="hit-g0.n2").click().run()
        assert at.query_params["selection"] == "g0.n2"

    def test_weights_and_activations_of_an_operator(self, model: str, run: str) -> None:
        at = show("graph", model=model, selection="g0.n1")
        at.session_state["inspector-tab"] = "Weights"
        at.run()
        assert "min −2 · max 3 · mean 0.5" in words(at).replace(":gray[", "").replace("]", "").replace("  ", " ")
        at.session_state["inspector-tab"] = "Activations"
        at.run()
        assert "`h`" in words(at)
        assert "1 × 2" in words(at)


class TestTensors:
    def test_one_tensor_is_shown_with_its_numbers_and_users(self, model: str) -> None:
        at = show("tensors", model=model, tensor="0")
        assert "6 elements" in words(at)
        assert at.button(key="used-g0.n1").label.replace("\\", "") == "MatMul layer/mm"

    def test_the_filter_is_kept_in_the_address(self, model: str) -> None:
        at = show("tensors", model=model)
        at.text_input(key="tensors-text").set_value("nothing").run()
        assert at.query_params["f.tensors.text"] == "nothing"
        assert "No tensor fits these filters." in words(at)

    def test_the_table_has_every_tensor(self, model: str) -> None:
        at = show("tensors", model=model)
        assert at.dataframe[0].value["name"].tolist() == ["w"]
        assert at.dataframe[0].value["shape"].tolist() == ["3 × 2"]


class TestInputs:
    def test_a_symbol_is_asked_for_once_and_goes_to_every_input(self, model: str) -> None:
        at = show("inputs", model=model)
        boxes = [box for box in at.number_input if box.label == "batch"]
        assert [box.value for box in boxes] == [1]
        boxes[0].set_value(4).run()
        arrays = inputs.materialise(LOCAL_OWNER, model)
        assert {name: array.shape for name, array in arrays.items()} == {"a": (4, 3), "b": (4, 3)}
        assert not at.exception

    def test_assign_keeps_what_was_chosen_and_can_be_taken_back(self, model: str) -> None:
        at = show("inputs", model=model)
        card = f"input-{inputs.plan(LOCAL_OWNER, model)[0].slot.value_id}"
        at.button_group(key=f"{card}-kind").set_value("ones").run()
        at.button(key=f"{card}-assign").click().run()
        assert inputs.assigned(LOCAL_OWNER, model)["a"].kind == "ones"
        at.button(key=f"{card}-reset").click().run()
        assert inputs.assigned(LOCAL_OWNER, model) == {}

    def test_a_file_of_another_type_is_one_sentence(self, model: str, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.zeros((1, 3)))
        inputs.assign(LOCAL_OWNER, model, "a", Recipe("npy", path=str(tmp_path / "a.npy")))
        assert "takes float32, file a.npy holds float64" in words(show("inputs", model=model))

    def test_an_upload_is_checked_and_kept_by_content(self, model: str) -> None:
        made = io.BytesIO()
        np.save(made, np.full((2, 3), 7, np.float32))
        for _ in range(2):
            made.seek(0)
            input_files.assign_upload(LOCAL_OWNER, model, "a", "../../seven.npy", made)
        assert (inputs.materialise_one(LOCAL_OWNER, model, "a") == 7).all()
        kept = [p for p in (workspace.current().uploads / "inputs").rglob("*") if p.is_file()]
        assert [p.name for p in kept] == ["seven.npy"]
        with pytest.raises(BrokenFile, match=r"not a \.npy file"):
            input_files.assign_upload(LOCAL_OWNER, model, "a", "x.npy", io.BytesIO(b"PK"))
        with pytest.raises(Forbidden):
            input_files.assign_upload(Actor("v", "v", "viewer"), model, "a", "x.npy", made)


class TestTrace:
    def test_consent_shows_what_is_approved_and_its_run_is_kept(self, model: str) -> None:
        at = show("trace", model=model)
        at.button(key="trace-run").click().run()
        table = at.dataframe[-1].value
        approved = dict(zip(table["What"], table["Value"], strict=True))
        assert approved["Input a"] == "float32 1 × 3, random, seed 0"
        assert approved["Threads"] == str(at.number_input(key="trace-threads").value)
        at.button(key="consent-yes").click().run()
        (job,) = [job for job in workspace.current().jobs.list() if job.kind == "trace"]
        workspace.current().jobs.wait(job.id, 120)
        assert tracing.result(LOCAL_OWNER, job.subject).status == "complete"
        at.run()
        assert "Complete: 5 values" in words(at)

    def test_saying_no_runs_nothing_and_leaves_nothing(self, model: str) -> None:
        at = show("trace", model=model)
        at.button(key="trace-run").click().run()
        at.button(key="consent-no").click().run()
        assert not [job for job in workspace.current().jobs.list() if job.kind == "trace"]
        assert list(workspace.current().spools.folder.iterdir()) == []

    def test_inputs_that_do_not_fit_are_said_before_anything_runs(self, model: str, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.zeros((1, 4), np.float32))
        inputs.assign(LOCAL_OWNER, model, "a", Recipe("npy", path=str(tmp_path / "a.npy")))
        at = show("trace", model=model)
        assert "takes shape batch × 3, the array has 1 × 4" in words(at)
        assert at.button(key="trace-run").disabled


class TestActivations:
    def test_before_any_run_it_says_what_to_do(self, model: str) -> None:
        at = show("activations", model=model)
        assert "The model was not run yet" in words(at)
        assert at.button(key="activations-trace").label == "Go to Trace"

    def test_all_values_with_their_statistics(self, model: str, run: str) -> None:
        table = show("activations", model=model).dataframe[0].value
        assert table["name"].tolist() == ["a", "b", "s", "h", "y"]
        assert table["max"].tolist() == [1.0, 0.0, 1.0, 3.0, 3.0]  # column sums of WEIGHT are 0 and 3
        assert table["status"].tolist() == ["constant", "all zero", "constant", "", ""]

    def test_a_value_leads_to_its_operator(self, model: str, run: str) -> None:
        rows = tracing.values(LOCAL_OWNER, run).rows
        value = rows["id"][rows["name"] == "h"].iloc[0]
        at = show("activations", model=model, value=value)
        assert "**`h`**" in words(at)
        at.button(key=f"value-node-{value}").click().run()
        assert at.query_params["selection"] == "g0.n1"

    def test_a_value_of_another_run_is_no_error(self, model: str, run: str) -> None:
        at = show("activations", model=model, value="g0.v99")
        assert not at.error
        assert "This run has no such value" in words(at)
