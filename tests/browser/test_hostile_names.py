"""Names that look like markup, in every widget that reads Markdown and on the pages of a model made of them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from playwright.sync_api import Browser, expect

from app.plain_text import shorten
from tests.browser.conftest import PATIENCE, Person, free_port, wait_until_healthy

NAMES = (
    "<img src=x onerror=window.pwned=1>", "<script>window.pwned=1</script>", "[a](javascript:window.pwned=1)",
    "![i](http://example.invalid/i.png)", "https://example.invalid/x www.example.invalid a@example.invalid",
    ":material/home:", ":smile:", ":red[x] :blue-badge[y] :small[z]", "$x^2$ $$y$$", "**b** _i_ ~~s~~ `c`",
    "# heading", "- item", "1. item", "> quote", "|a|b|", "---", "a -> b <- c -- d >= e", "&lt;b&gt; &copy;",
    "\u202egnp.exe", "nul\x00esc\x1b[31m", "party 👩 🎉", "line\n\n# next", "``a``", "\\", "x" * 10_000,
)  # fmt: skip
MARKUP = "a, img, script, h1, h2, ul, ol, blockquote, table, hr, strong, em, del, .katex, [data-testid=stIconMaterial]"

SCRIPT = """
import json, sys
from pathlib import Path
import streamlit as st
from app.plain_text import mono, plain

for i, name in enumerate(json.loads(Path(__file__).with_name("names.json").read_text())):
    with st.container(key=f"markdown-{i}"):
        st.markdown(plain(name))
    with st.container(key=f"code-{i}"):
        st.caption(mono(name))
    with st.container(key=f"button-{i}"):
        st.button(plain(name), key=f"b{i}")
    with st.container(key=f"metric-{i}"):
        st.metric(plain(name), plain(name), plain(name), delta_color="off", delta_arrow="off")
    with st.container(key=f"error-{i}"):
        st.error(plain(name))
"""


@pytest.fixture
def widgets(tmp_path: Path) -> Iterator[str]:
    """Address of a page that shows every name in every kind of widget."""
    (tmp_path / "names.json").write_text(json.dumps(NAMES))
    (tmp_path / "widgets.py").write_text(SCRIPT)
    port, log = free_port(), tmp_path / "output.log"
    command = [sys.executable, "-P", "-m", "streamlit", "run", "widgets.py", "--server.headless=true"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, f"--server.port={port}", "--server.address=127.0.0.1", "--browser.gatherUsageStats=false"],
            cwd=tmp_path, env=dict(os.environ), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_healthy(url, process, log)
        yield url
    finally:
        process.terminate()
        process.wait(15)


def test_widgets_show_names_as_they_are(chromium: Browser, widgets: str) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    person = Person(context.new_page(), widgets)
    person.go()
    page = person.page
    expect(page.locator(f".st-key-error-{len(NAMES) - 1}")).to_be_attached(timeout=PATIENCE)
    person.settle()
    for kind in ("markdown", "code", "button", "metric", "error"):
        for i, name in enumerate(NAMES):
            box = page.locator(f".st-key-{kind}-{i}")
            shown = (box.text_content() or "").replace("\u2060", "")
            assert shorten(name).strip() in shown, (kind, name[:60], shown[:200])
            assert box.locator(MARKUP).count() == 0, (kind, name[:60])
    assert page.evaluate("window.pwned") is None
    context.close()


def test_pages_show_a_model_made_of_such_names(person: Person, tmp_path: Path) -> None:
    path = tmp_path / "hostile <b>.onnx"
    onnx.save(hostile_model(), path)
    outside: list[str] = []
    person.page.on("request", lambda r: outside.append(r.url) if "example.invalid" in r.url else None)
    person.go()
    person.fill("or a path on this machine", str(path))
    person.sees("What can be done with it")
    expect(person.page.locator(".slot .name").first).to_have_text(NAMES[0])
    for title in person.page.get_by_test_id("stSidebar").get_by_role("link").all_inner_texts():
        person.visit(title.splitlines()[-1])
        assert person.page.evaluate("window.pwned") is None, title
        assert person.page.locator("img[src=x], a[href^=javascript], a[href*='example.invalid']").count() == 0, title
        assert person.page.get_by_test_id("stException").count() == 0, title
        assert person.page.get_by_text("Something in Modelglass went wrong").count() == 0, title
    assert not outside


def hostile_model() -> onnx.ModelProto:
    """A chain of additions whose every name is one of ``NAMES``."""
    names = [name.replace("\x00", "") for name in NAMES]
    nodes = [
        helper.make_node("Add", [before, f"w{name}"], [name], name=name) for before, name in itertools.pairwise(names)
    ]
    weights = [numpy_helper.from_array(np.ones(3, np.float32), f"w{name}") for name in names[1:]]
    graph = helper.make_graph(
        nodes, names[0],
        [helper.make_tensor_value_info(names[0], TensorProto.FLOAT, [names[2], 3])],
        [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, [names[2], 3])],
        weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name=names[0])
    helper.set_model_props(model, {name: name for name in names})
    return model
