"""Trace in a real browser: approve, watch, stop, and read how it ended."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, Person
from tests.worker.running import save

pytestmark = pytest.mark.slow


def open_file(person: Person, path: Path) -> None:
    person.go()
    person.fill("or a path on this machine", str(path))
    person.page.wait_for_url(re.compile(r"/overview\?model="))
    person.settle()


def approve(person: Person) -> None:
    person.click("Approve & run")
    person.page.get_by_role("dialog").get_by_role("button", name="Approve & run").click()


@pytest.fixture
def slow_model(tmp_path: Path) -> Path:
    """Forty products of 900 x 900 matrices in slices of one: seconds of work, stoppable anywhere."""
    nodes = [make_node("MatMul", ["x" if n == 0 else f"m{n - 1}", "w"], [f"m{n}"]) for n in range(400)]
    tensors = [numpy_helper.from_array(np.eye(900, dtype=np.float32), "w")]
    shapes = [("x", TensorProto.FLOAT, [900, 900])], [("m399", TensorProto.FLOAT, [900, 900])]
    return save(tmp_path / "slow.onnx", nodes, *shapes, tensors)


def test_a_run_is_watched_and_stopped_and_says_so(person: Person, slow_model: Path) -> None:
    open_file(person, slow_model)
    person.visit("Trace")
    person.fill("Memory, GiB", "0.5")
    approve(person)
    page = person.page
    expect(page.get_by_text(re.compile(r"Running: [1-9]\d* of 400 operators")).first).to_be_visible(timeout=PATIENCE)
    page.locator(".st-key-trace-live").get_by_role("button", name="Stop").click()
    expect(page.get_by_text(re.compile(r"Stopped after .*The run was stopped")).first).to_be_visible(timeout=PATIENCE)
    person.settle()
    person.sees("What was captured before is kept")
    expect(page.get_by_role("button", name="See the activations")).to_be_visible()


def test_a_set_of_seeded_inputs_gives_ranges(person: Person, tmp_path: Path) -> None:
    tensors = [numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")]
    shapes = [("x", TensorProto.FLOAT, [2, 3])], [("y", TensorProto.FLOAT, [2, 3])]
    open_file(person, save(tmp_path / "set.onnx", [make_node("MatMul", ["x", "w"], ["y"])], *shapes, tensors))
    person.visit("Trace")
    page = person.page
    page.get_by_text("Over a data set").click()
    section = page.locator(".st-key-trace-dataset")
    section.get_by_label("At most").fill("5")
    section.get_by_role("button", name="Approve & run").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("once for every sample")).to_be_visible()
    dialog.get_by_role("button", name="Approve & run").click()
    expect(section.get_by_text("5 of 5 run")).to_be_visible(timeout=2 * PATIENCE)
    person.settle()
    table = section.get_by_test_id("stDataFrame").first
    expect(table.locator("[role=gridcell]", has_text=re.compile("^y$")).first).to_be_attached()
