"""For every test: a state folder of its own for the run, and browser tests last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.setup_browser import left_out

LEFT_OUT = pytest.StashKey[int]()
WITHOUT_TORCH = find_spec("torch") is None
collect_ignore = ["torch_oracle"] if WITHOUT_TORCH else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Browser tests come last, because Playwright keeps an event loop running in this thread; or not at all."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    if left_out():
        out = [item for item in items if item.get_closest_marker("browser")]
        config.stash[LEFT_OUT] = len(out)
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say aloud what was left out."""
    if WITHOUT_TORCH:
        terminalreporter.write_line("torch is not installed: its tests are run apart, by make test-torch", yellow=True)
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"NO_BROWSER is set: {count} browser tests were LEFT OUT of this run", yellow=True)


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder for this run, so that no test reads or writes the person's own."""
    folder = tmp_path_factory.mktemp("home") / "modelglass"
    before = os.environ.get("MODELGLASS_HOME")
    os.environ["MODELGLASS_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["MODELGLASS_HOME"]
    else:
        os.environ["MODELGLASS_HOME"] = before
