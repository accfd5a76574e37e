"""The dashboard of the installed wheel, in a browser."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Person, free_port, wait_until_healthy
from tests.project.wheel import build_and_install

SAMPLE = Path(__file__).parents[2] / "app" / "sample" / "sample.onnx"


@pytest.mark.slow
def test_it_serves_a_model_from_any_folder_with_pages_theme_and_sample(chromium: Browser, tmp_path: Path) -> None:
    installed = build_and_install(tmp_path / "wheel")
    folder, log, port = tmp_path / "models", tmp_path / "output.log", free_port()
    folder.mkdir()
    (folder / "model.onnx").write_bytes(SAMPLE.read_bytes())
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [installed.bin / "modelglass", "model.onnx", "--no-browser", "--port", str(port)],
            cwd=folder, env={**os.environ, "MODELGLASS_HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        wait_until_healthy(url, process, log)
        context = chromium.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
        person = Person(context.new_page(), url)
        person.go()
        expect(person.page.locator("[role=gridcell]", has_text="model.onnx").first).to_be_attached()  # recent files
        person.page.get_by_role("button", name="Open the sample").click()
        person.settle()
        person.sees("sample.onnx")
        links = person.page.get_by_test_id("stSidebar").get_by_role("link").all_inner_texts()
        assert {"Home", "Overview", "Graph", "Tensors", "Inputs", "Trace"} <= {text.split("\n")[-1] for text in links}
        expect(person.page.get_by_test_id("stApp")).to_have_css("color", "rgb(27, 34, 38)")  # theme.light.textColor
        assert not person.wrong
        context.close()
    finally:
        process.terminate()
        process.wait(20)
