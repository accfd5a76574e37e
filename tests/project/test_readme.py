"""Every command and every line of Python in the README works."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.test_start import start

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
VERBS = ("info", "tensors", "stats", "graph", "trace", "input")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


COMMANDS = [line.partition("  #")[0].strip() for block in blocks("sh") for line in block.splitlines() if line.strip()]
TARGETS = sorted(set(re.findall(r"make ([a-z-]+)", README)))


def test_the_readme_has_them() -> None:
    assert {command.split()[1] for command in COMMANDS if command.startswith("modelglass ")} >= set(VERBS)
    assert len(blocks("python")) == 1
    assert {"app", "test"} <= set(TARGETS)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("modelglass") and c.split()[1:2] != []
                                     and c.split()[1] in VERBS])  # fmt: skip
@pytest.mark.parametrize("json", [[], ["--json"]], ids=["table", "json"])
def test_a_command_works(command: str, json: list[str], tmp_path: Path) -> None:
    words = [str(Path(sys.executable).with_name("modelglass")), *shlex.split(command)[1:], *json]
    if "-o" in words:  # written beside the test, not into the checkout
        words[words.index("-o") + 1] = str(tmp_path / words[words.index("-o") + 1])
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.startswith("modelglass") and [*c.split(), ""][1] not in VERBS]
)
def test_a_dashboard_starts(command: str, tmp_path: Path) -> None:
    process, _, _ = start(ROOT, tmp_path / "home", *shlex.split(command)[1:])
    process.terminate()
    process.wait(20)


@pytest.mark.parametrize("target", TARGETS)
def test_make_has_the_target(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_python_runs() -> None:
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run([sys.executable, "-P", "-c", blocks("python")[0]], cwd=ROOT, env=environment,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "/stem/conv1/Conv Conv" in done.stdout.splitlines()


def test_what_is_not_run_here_is_known() -> None:
    """Building and installing is tested with the wheel; anything else in a code block would be untested."""
    others = [c for c in COMMANDS if not c.startswith(("modelglass", "make "))]
    assert others == ["pip install ."]


def test_pictures_are_there() -> None:
    assert all((ROOT / path).is_file() for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README))
