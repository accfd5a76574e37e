"""The SQL page in a real browser: run, chart, a hostile query refused, an endless one stopped, a link kept."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import onnx
import pytest
from playwright.sync_api import expect

from app.sample import __file__ as sample_folder
from tests.browser.conftest import PATIENCE, Person

pytestmark = pytest.mark.slow

OPERATORS = "SELECT op_type, count(*) AS nodes FROM nodes GROUP BY ALL ORDER BY nodes DESC, op_type"
ENDLESS = "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT max(i) FROM t"


def run(person: Person, text: str) -> None:
    person.page.get_by_label("Query", exact=True).fill(text)
    person.page.get_by_role("button", name="Run", exact=True).click()


def test_asking_a_question(person: Person) -> None:
    person.go()
    person.page.get_by_role("button", name="Open the sample").click()
    person.page.wait_for_url(re.compile(r"/overview\?model="))
    person.settle()
    person.visit("SQL")
    nodes = onnx.load(sample_folder.replace("__init__.py", "sample.onnx")).graph.node
    kinds = len({node.op_type for node in nodes})

    run(person, OPERATORS)
    person.sees(f"{kinds} rows in")
    assert parse_qs(urlsplit(person.page.url).query)["f.sql.text"] == [OPERATORS]
    with person.page.expect_download() as download:
        person.page.get_by_role("button", name="CSV", exact=True).click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0] == "op_type,nodes"
    assert sum(int(line.split(",")[1]) for line in lines[1:]) == len(nodes)

    person.page.get_by_role("tab", name="Chart").click()
    bars = person.page.locator(".js-plotly-plot .barlayer .point")
    expect(bars).to_have_count(kinds, timeout=PATIENCE)

    run(person, "COPY (SELECT 1) TO 'out.csv'")
    person.sees("Only one SELECT can be run here, this is COPY")
    run(person, "SELECT * FROM read_csv('/etc/passwd')")
    person.sees("reaches no files")
    assert "root:" not in person.text()

    run(person, ENDLESS)
    stop = person.page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).last
    stop.click()
    person.sees("The query was stopped")

    person.page.reload()
    person.settle()
    assert person.page.get_by_label("Query", exact=True).input_value() == ENDLESS
