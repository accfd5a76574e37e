"""Editing in a real browser: rename, change an attribute, undo, commit, save, open what was saved."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import onnxruntime as ort
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Person
from tests.corpus import fetch

pytestmark = [pytest.mark.slow, pytest.mark.corpus]


def test_rename_change_undo_commit_save_and_reopen(person: Person, tmp_path: Path) -> None:
    page, path = person.page, fetch("rapidocr_cls")
    nodes = onnx.load(str(path)).graph.node
    place = next(i for i, node in enumerate(nodes) if node.op_type == "HardSigmoid")
    old = next(item.f for item in nodes[place].attribute if item.name == "alpha")
    person.go()
    person.fill("or a path on this machine", str(path))
    page.wait_for_url(re.compile(r"/overview\?model="))
    model = re.search(r"model=(\w+)", page.url)
    assert model is not None
    person.go(f"edit?model={model[1]}&selection=g0.n{place}")

    page.get_by_label("To", exact=True).fill("my gate")
    person.click("Preview")
    person.sees("Names, schemas and types fit together")
    person.click("Commit")
    person.sees("1 edit")
    person.sees("my gate")

    page.get_by_text("Set an attribute", exact=True).click()
    person.settle()
    page.get_by_label("Name", exact=True).fill("alpha")
    page.get_by_label("value", exact=False).last.fill("0.25")
    person.click("Preview")
    person.click("Commit")
    person.sees("2 edits")
    person.click("Undo")
    person.sees("1 edit")
    person.click("Redo")
    person.sees("2 edits")

    target = tmp_path / "edited.onnx"
    page.get_by_role("button", name="Save changes…").first.click()
    person.settle()
    page.get_by_label("New file", exact=True).fill(str(target))
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Before and after:")).to_be_visible(timeout=60_000)
    person.sees("different")

    node = onnx.load(str(target)).graph.node[place]
    assert node.name == "my gate"
    assert next(item.f for item in node.attribute if item.name == "alpha") == 0.25 != old
    assert ort.InferenceSession(str(target), providers=["CPUExecutionProvider"]).get_inputs()
    page.get_by_test_id("stDialog").get_by_role("button", name="Close", exact=True).last.click()
    person.settle()
    expect(page.get_by_role("button", name="Save changes…")).to_have_count(0)
    person.go()
    person.fill("or a path on this machine", str(target))
    page.wait_for_url(re.compile(r"/overview\?model="))
    person.sees("edited.onnx")
