"""Activations in a real browser: a click shows a heatmap, two runs are compared, a link restores the place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, Person
from tests.browser.test_trace_page import approve, open_file
from tests.worker.running import save

pytestmark = pytest.mark.slow


@pytest.fixture
def traced(person: Person, tmp_path: Path) -> Person:
    """``relu(x @ w)`` with one feature that never fires, run once; the Activations page is shown."""
    weight = np.abs(np.random.default_rng(0).normal(size=(12, 10))).astype(np.float32)
    weight[:, 3] *= -1
    nodes = [make_node("Abs", ["x"], ["p"]), make_node("MatMul", ["p", "w"], ["h"], name="mm"),
             make_node("Relu", ["h"], ["y"], name="act")]  # fmt: skip
    shapes = [("x", TensorProto.FLOAT, [8, 12])], [("y", TensorProto.FLOAT, [8, 10])]
    open_file(person, save(tmp_path / "small.onnx", nodes, *shapes, [numpy_helper.from_array(weight, "w")]))
    run(person)
    see_activations(person)
    return person


def run(person: Person) -> None:
    person.visit("Trace")
    approve(person)
    person.page.wait_for_timeout(1000)
    expect(person.page.locator(".st-key-trace-live")).to_have_count(0, timeout=2 * PATIENCE)
    expect(person.page.get_by_text(re.compile("Complete: 4 values")).first).to_be_visible(timeout=2 * PATIENCE)
    person.settle()


def see_activations(person: Person) -> None:
    for _ in range(5):  # a click while the run that just ended is drawn leads nowhere
        person.click("See the activations")
        if "/activations?" in person.page.url:
            break
        person.page.wait_for_timeout(1000)
    person.page.wait_for_url(re.compile(r"/activations\?"))
    person.settle()


def pick(person: Person, name: str) -> None:
    """Click the row of a value; the table is a canvas, so by its place."""
    page = person.page
    person.fill("Name holds", name)
    table = page.get_by_test_id("stDataFrame").last
    table.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 48)
    page.wait_for_url(re.compile("value="))
    person.settle()


def test_a_finding_leads_to_its_value_and_a_link_restores_it(traced: Person) -> None:
    page = traced.page
    expect(page.get_by_text(re.compile("1 of 10 units of .* never fired")).first).to_be_visible()
    pick(traced, "h")
    panel = page.locator(".st-key-activation")
    expect(panel.locator(".js-plotly-plot .heatmaplayer").first).to_be_attached()
    expect(panel.get_by_text("Every element shown").first).to_be_visible()
    panel.get_by_role("button", name="Pin").click()
    traced.settle()
    expect(page.locator(".st-key-watch-list").get_by_role("button", name="h")).to_be_visible()
    panel.get_by_text("Channels", exact=True).click()
    traced.settle()
    expect(panel.get_by_text("10 channels on axis 1")).to_be_visible()
    panel.get_by_role("button", name="Larger").click()
    expect(page.get_by_role("dialog").locator(".js-plotly-plot").first).to_be_visible()
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    traced.settle()
    expect(page.locator(".st-key-activation").get_by_text("h", exact=True).first).to_be_visible()
    expect(page.locator(".st-key-watch-list").get_by_role("button", name="h")).to_be_visible()


def test_an_operator_in_the_graph_shows_its_heatmap(traced: Person) -> None:
    page = traced.page
    pick(traced, "y")
    traced.click("Show its operator in the graph")
    page.wait_for_url(re.compile(r"/graph\?.*selection=g0\.n2"))
    traced.settle()
    page.get_by_role("tab", name="Activations").click()
    traced.settle()
    expect(page.locator(".js-plotly-plot .heatmaplayer").first).to_be_attached()


def test_two_runs_are_compared_along_their_depth(traced: Person) -> None:
    page = traced.page
    run(traced)
    see_activations(traced)
    page.get_by_text("Two runs", exact=True).click()
    traced.settle()
    traced.sees("4 of 4 values are bit for bit the same")
    pick(traced, "y")
    panel = page.locator(".st-key-activation")
    panel.get_by_role("button", name="Compare").click()
    traced.settle()
    expect(panel.get_by_text("The other − this")).to_be_visible()
    expect(panel.get_by_text("equal")).to_be_visible()
