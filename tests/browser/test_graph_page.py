"""The graph in a real browser: a click selects, a double-click opens nothing, a selection keeps the view."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Person

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(person: Person) -> Person:
    person.go()
    person.page.get_by_role("button", name="Open the sample").click()
    person.page.wait_for_url(re.compile(r"/overview\?model="))
    person.settle()
    person.visit("Graph")
    person.page.frame_locator("iframe").locator("canvas").wait_for()
    person.page.wait_for_timeout(500)  # vis.js fits its view with no sign when it is done
    return person


def find_a_box(page: Page) -> tuple[float, float]:
    """Click along the middle rows of the canvas until something is selected; where that was."""
    frame = page.locator("iframe").bounding_box()
    assert frame is not None
    for row in (0.5, 0.4, 0.6, 0.3):
        for column in range(2, 49):
            x, y = frame["x"] + frame["width"] * column / 50, frame["y"] + frame["height"] * row
            page.mouse.click(x, y)
            page.wait_for_timeout(120)
            if "selection=" in page.url:
                return x, y
    raise AssertionError("no box was hit")


def test_a_click_selects_a_box_and_the_inspector_says_what_it_is(graph: Person) -> None:
    graph.sees("Nothing is selected")
    find_a_box(graph.page)
    graph.settle()
    assert "Nothing is selected" not in graph.text()
    address = graph.page.url
    graph.page.reload()
    graph.settle()
    assert graph.page.url == address
    assert "Nothing is selected" not in graph.text()


def test_the_view_stays_where_it_was_when_a_box_is_selected(graph: Person) -> None:
    page = graph.page
    page.frame_locator("iframe").locator("canvas").evaluate("canvas => { canvas.dataset.kept = 'yes' }")
    find_a_box(page)
    graph.settle()
    assert page.frame_locator("iframe").locator("canvas").get_attribute("data-kept") == "yes"


def test_a_double_click_opens_no_page(graph: Person) -> None:
    page = graph.page
    opened: list[Page] = []
    page.context.on("page", lambda new: opened.append(new))  # noqa: PLW0108  Playwright maps only Python functions
    x, y = find_a_box(page)
    graph.settle()
    page.mouse.dblclick(x, y)
    page.wait_for_timeout(800)
    assert opened == []
    assert not graph.wrong
