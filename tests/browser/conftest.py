"""One dashboard and one Chromium for all browser tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tools.setup_browser import FAILED, find

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
PATIENCE = 30_000
"""Milliseconds to wait for a page; machines of two busy cores are slow."""

expect.set_options(timeout=PATIENCE)

RUNNING = '[data-testid="stApp"]:not([data-test-script-state="notRunning"])'


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@dataclass(frozen=True)
class Dashboard:
    """A running dashboard: its address, its state folder and what it printed."""

    url: str
    home: Path
    log: Path
    pid: int


@pytest.fixture(scope="session")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """The dashboard as ``modelglass`` starts it, with an empty state folder."""
    folder = tmp_path_factory.mktemp("dashboard")
    home, log, port = folder / "home", folder / "output.log", free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "app.cli", "--no-browser", "--port", str(port), "--verbose"],
            cwd=folder, env={**os.environ, "MODELGLASS_HOME": str(home)},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_healthy(url, process, log)
        yield Dashboard(url, home, log, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the dashboard does not answer at {url}: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = find()
    if path is None:
        pytest.fail(FAILED)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


class Person:
    """Somebody at the dashboard; every step waits until the page stands still."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def go(self, path: str = "") -> None:
        """Open an address of the dashboard."""
        self.page.goto(f"{self.url}/{path}")
        self.settle()

    def settle(self) -> None:
        """Wait until the script has run and nothing on the page is stale or still loading."""
        page = self.page
        page.wait_for_selector('[data-testid="stApp"]')
        still = 0
        deadline = time.monotonic() + PATIENCE / 1000
        while still < 3:
            busy = page.locator(
                f'{RUNNING}, [data-testid="stSkeleton"], [data-stale="true"], [data-testid="stAppSkeleton"]'
            )
            still = still + 1 if busy.count() == 0 else 0
            page.wait_for_timeout(80)
            if time.monotonic() > deadline:
                raise AssertionError(f"the page did not come to rest: {busy.first.inner_html()[:500]}")

    def visit(self, title: str) -> None:
        """Click a page in the sidebar."""
        self.page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
        self.settle()

    def click(self, name: str) -> None:
        """Press a button."""
        self.page.get_by_role("button", name=name, exact=True).first.click()
        self.settle()

    def fill(self, label: str, text: str) -> None:
        """Type into a field and leave it."""
        field = self.page.get_by_label(label, exact=True).first
        field.fill(text)
        field.press("Enter")
        self.settle()

    def sees(self, text: str) -> Locator:
        """Fail unless the text is on the page."""
        found = self.page.get_by_text(text).first
        expect(found).to_be_visible(timeout=PATIENCE)
        return found

    def text(self) -> str:
        """Everything on the page."""
        return self.page.get_by_test_id("stApp").inner_text()


@pytest.fixture
def person(dashboard: Dashboard, chromium: Browser) -> Iterator[Person]:
    """A fresh browser window of 1280 x 800; fails the test on a script error in the page."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    context.set_default_timeout(PATIENCE)
    somebody = Person(context.new_page(), dashboard.url)
    yield somebody
    context.close()
    assert not somebody.wrong, somebody.wrong
