"""The shell with real models, through Streamlit's own test runner."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from streamlit.testing.v1 import AppTest

from app import navigation, workspace
from app.actors import LOCAL_OWNER
from app.components.error_box import model_error_text
from app.services import opening
from core.errors import BrokenFile

SCRIPT = Path(navigation.__file__).with_name("script.py")


@pytest.fixture(autouse=True)
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MODELGLASS_HOME", str(tmp_path / "home"))
    workspace.close()
    yield
    workspace.close()


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    """``y = x @ w`` with x float32 [batch, 3], w float32 [3, 2]."""
    weight = numpy_helper.from_array(np.ones((3, 2), np.float32), "layer.weight")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "layer.weight"], ["y"], name="layer/MatMul")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [weight],
    )
    path = tmp_path / "linear.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="maker"), path)
    return path


def start(page: str = navigation.HOME, **query: str) -> AppTest:
    at = AppTest.from_file(str(SCRIPT), default_timeout=60)
    at.query_params.update(query)
    at.run()
    if page != navigation.HOME:
        at.switch_page(str(navigation.entry(page).path))
        at.query_params.update(query)
        at.run()
    assert not at.exception
    return at


def components(at: AppTest) -> dict[str, dict[str, object]]:
    """The data of our own components on the page by name."""
    found = {}
    for element in at.main:
        if element.type == "bidi_component":
            found[element.proto.component_name] = json.loads(element.proto.json)
    return found


def errors(at: AppTest) -> list[str]:
    return [box.value.replace("\u2060", "").replace("\\", "") for box in at.error]


def test_settings_name_the_state_folder(tmp_path: Path) -> None:
    at = start("settings")
    assert not at.error
    assert at.code[0].value == str(tmp_path / "home")


def test_home_is_shown_with_links_to_every_page_that_exists() -> None:
    at = start()
    assert [link.label for link in at.sidebar.page_link] == [entry.title for entry in navigation.entries()]
    assert not at.error
    assert at.text_input(key="home-path-text").label == "or a path on this machine"


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "does not exist"), (b"", "is empty (0 bytes)"), (b"just words", "is a text file, not a model")],
)
def test_home_says_in_one_sentence_why_a_file_cannot_be_opened(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    at = start()
    at.text_input(key="home-path-text").set_value(str(path))
    at.get_by_key("home-path").button[0].click().run()
    assert not at.exception
    assert len(at.error) == 1
    assert f"{path}` {said}." in errors(at)[0]


def test_opening_a_path_leads_to_its_overview(model_file: Path) -> None:
    at = start()
    at.text_input(key="home-path-text").set_value(str(model_file))
    at.get_by_key("home-path").button[0].click().run()
    assert not at.exception
    assert not at.error
    assert len(at.query_params["model"]) >= 16
    figures = {metric.label: metric.value.replace("\\", "") for metric in at.metric}
    assert figures == {"Parameters": "6", "Weights": "24\u202fB", "Operators": "1", "Opset": "17"}


def test_overview_states_the_signature(model_file: Path) -> None:
    artifact = opening.open_path(LOCAL_OWNER, str(model_file))
    at = start("overview", model=artifact)
    assert not at.error
    assert len(at.get("plotly_chart")) == 2
    drawn = components(at)["modelglass_signature"]
    assert drawn["copied"] == "input x: float32[batch, 3]\noutput y: float32[batch, 2]"
    assert drawn["inputs"][0]["dims"] == [{"text": "batch", "dynamic": True}, {"text": "3", "dynamic": False}]


def test_a_page_without_a_model_says_what_to_do() -> None:
    at = start("overview")
    assert "Overview shows an open model, and none is open" in at.main.markdown[1].value
    assert at.button(key="empty-sample").label == "Open the sample"


def test_an_unknown_model_in_the_address_is_one_sentence_and_a_way_out() -> None:
    at = start("overview", model="0123456789abcdef")
    assert len(at.error) == 1
    assert "No model is known as '0123456789abcdef'." in errors(at)[0]
    assert at.button(key="empty-home").label == "Go to Home"


def test_closing_a_model_leads_home_without_it(model_file: Path) -> None:
    artifact = opening.open_path(LOCAL_OWNER, str(model_file))
    at = start("overview", model=artifact)
    at.button(key="close-model").click().run()
    assert not at.exception
    assert "model" not in at.query_params
    assert at.text_input(key="home-path-text").label == "or a path on this machine"
    assert not workspace.current().models.all()


def test_links_in_the_sidebar_keep_model_and_selection(model_file: Path) -> None:
    artifact = opening.open_path(LOCAL_OWNER, str(model_file))
    at = start("overview", model=artifact, selection="g0.n0")
    for link in at.sidebar.page_link:
        assert f"model={artifact}" in link.proto.query_string
        assert "selection=g0.n0" in link.proto.query_string


def test_a_file_that_changed_on_disk_is_named_with_what_to_do(model_file: Path) -> None:
    artifact = opening.open_path(LOCAL_OWNER, str(model_file))
    opening.close(LOCAL_OWNER, artifact)
    model_file.write_bytes(model_file.read_bytes() + b"\0" * 8)
    at = start("overview", model=artifact)
    assert len(at.error) == 1
    assert "is another file than the one that was opened. Open it again." in " ".join(errors(at)[0].split())


def test_words_of_a_file_in_an_error_are_inert() -> None:
    error = BrokenFile("names `a` <b> [x](javascript:1)", path="/m/`<img>`.onnx", byte=7, hint="Look at $x$.")
    assert model_error_text(error).replace("\u2060", "") == (
        "``/m/`<img>`.onnx`` names \\`a\\` \\<b\\> \\[x\\]\\(javascript\\:1\\) \\(byte 7\\).\n\nLook at \\$x\\$\\."
    )


def test_both_copies_of_the_configuration_are_equal_and_closed() -> None:
    shipped = SCRIPT.with_name(".streamlit") / "config.toml"
    assert shipped.read_bytes() == (SCRIPT.parents[1] / ".streamlit" / "config.toml").read_bytes()
    config = tomllib.loads(shipped.read_text())
    assert (
        config["server"]
        | {
            "address": "127.0.0.1",
            "enableXsrfProtection": True,
            "enableCORS": True,
            "fileWatcherType": "none",
            "maxUploadSize": 4096,
        }
        == config["server"]
    )
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] == "none"


def test_no_file_of_app_hides_a_module_that_others_import() -> None:
    """``streamlit run`` puts ``app/`` first in ``sys.path``."""
    taken = set(sys.stdlib_module_names) | set(metadata.packages_distributions())
    ours = {"app", "pages", "core", "worker", "modelglass", "tests", "tools"}
    names = {path.stem for path in SCRIPT.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not names & (taken - ours)
