"""The wheel works away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.project.wheel import Installed, build_and_install

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return build_and_install(tmp_path_factory.mktemp("wheel"))


def test_it_holds_every_file_of_the_packages_and_nothing_else(installed: Installed) -> None:
    """Every module, style sheet, script, table and settings file; no test, no tool."""
    with zipfile.ZipFile(installed.wheel) as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {
        path.relative_to(ROOT).as_posix()
        for package in ("app", "core", "pages", "worker")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == expected | {"modelglass.py"}


def test_its_command_reads_and_runs_a_model_from_another_folder(installed: Installed, tmp_path: Path) -> None:
    sample = tmp_path / "model.onnx"
    sample.write_bytes((ROOT / "app" / "sample" / "sample.onnx").read_bytes())
    program = installed.bin / "modelglass"
    environment = {**os.environ, "MODELGLASS_HOME": str(tmp_path / "home")}
    answers = [
        subprocess.run([program, *verb, "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                       check=False, timeout=120)
        for verb in (["info", "model.onnx"], ["trace", "model.onnx", "--no-latency"])
    ]  # fmt: skip
    assert [answer.returncode for answer in answers] == [0, 0], [answer.stderr for answer in answers]
    assert json.loads(answers[0].stdout)["nodes"] == 111
    assert json.loads(answers[1].stdout)["status"] == "complete"


def test_python_finds_it_in_site_packages(installed: Installed, tmp_path: Path) -> None:
    code = "import app.launch, core, modelglass; print(app.launch.__file__, core.__file__, modelglass.show.__module__)"
    done = subprocess.run([installed.bin / "python", "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          check=True)  # fmt: skip
    first, second, module = done.stdout.split()
    assert str(installed.bin.parent) in first
    assert str(installed.bin.parent) in second
    assert module == "app.launch"
