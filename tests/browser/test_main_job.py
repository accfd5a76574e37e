"""The main job on a model that nobody here wrote: open, walk the graph, run, read the activations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, Person
from tests.corpus import fetch


@pytest.mark.corpus
@pytest.mark.slow
def test_open_graph_run_and_read_the_values_of_magika(person: Person) -> None:
    page = person.page
    person.go()
    person.fill("or a path on this machine", str(fetch("magika")))
    page.wait_for_url(re.compile(r"/overview\?model="))
    person.settle()
    person.sees("float32")
    person.sees("tf2onnx 1.16.1")
    expect(page.get_by_text("95", exact=True)).to_be_visible()  # operators, as the onnx library counts them
    expect(page.locator(".js-plotly-plot").first).to_be_visible()

    person.visit("Graph")
    expect(page.locator("iframe").first).to_be_visible()
    assert "model=" in page.url

    person.visit("Inputs")
    person.sees("bytes")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()  # preview of the proposed input

    person.visit("Trace")
    person.click("Approve & run")
    consent = page.get_by_role("dialog")
    expect(consent.get_by_text("executed by a separate process")).to_be_visible()
    consent.get_by_role("button", name="Approve & run").click()
    expect(page.get_by_text(re.compile(r"Complete: 96 values"))).to_be_visible(timeout=2 * PATIENCE)
    person.settle()

    person.click("See the activations")
    page.wait_for_url(re.compile(r"/activations\?"))
    person.settle()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    table = page.get_by_test_id("stDataFrame").first
    expect(table).to_be_visible()
    expect(table.locator("[role=gridcell]", has_text="jax2tf_get_logits_").first).to_be_attached()


def test_reload_and_back_show_the_same_place(person: Person) -> None:
    person.go()
    person.page.get_by_role("button", name="Open the sample").click()
    person.page.wait_for_url(re.compile(r"/overview\?model="))
    person.settle()
    person.visit("Tensors")
    address = person.page.url
    person.page.reload()
    person.settle()
    person.sees("sample.onnx")
    assert person.page.url == address
    person.page.go_back()
    person.page.wait_for_url(re.compile(r"/overview\?model="))
    person.settle()
    person.sees("sample.onnx")


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "cut"])
def test_a_bad_file_is_one_clear_sentence_and_the_app_goes_on(kind: str, person: Person, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}.onnx"
    if kind != "missing":
        path.write_bytes({"empty": b"", "text": b"just some words\n" * 9, "cut": b"\x08\x08\x12"}[kind])
    person.go()
    person.fill("or a path on this machine", str(path))
    box = person.page.get_by_test_id("stAlert").first
    expect(box).to_be_visible()
    assert path.name in box.inner_text()
    assert "Traceback" not in person.text()
    person.page.get_by_role("button", name="Open the sample").click()
    person.page.wait_for_url(re.compile(r"/overview\?model="))
    person.settle()
    person.sees("sample.onnx")
