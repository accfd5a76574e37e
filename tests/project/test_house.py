"""Rules of the house that no linter knows."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOSTS = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs|npmmirror|deb\.debian\.org|download\.pytorch|huggingface\.co\b|storage\.googleapis"
)
MACHINE = re.compile(r"/(?:work|root|home/\w+|Users/\w+|opt/\w+)/|/tmp/\w")
ALLOWED = {"tests/project/test_house.py"}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.fail(f"git cannot list the files of the project: {listed.stderr.decode()}")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_registry_or_a_place_on_one_machine() -> None:
    wrong = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        data = path.read_bytes()
        if name in ALLOWED or b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if HOSTS.search(line) or MACHINE.search(line):
                wrong.append(f"{name}:{number}: {line.strip()[:120]}")
    assert not wrong, "\n".join(wrong)


def test_the_lock_has_hashes_and_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    pins = re.findall(r"^[a-z0-9][^\s=]*==[^\\]*\\?$(?=\n(    --hash=sha256:[0-9a-f]{64})?)", text, re.MULTILINE)
    assert len(pins) > 50
    assert all(pins)


def test_nothing_in_app_bears_a_name_that_python_or_a_dependency_needs() -> None:
    """``app`` is the first place Python searches under ``streamlit run``, so ``app/queue.py`` would hide ``queue``."""
    ours = {path.stem for path in (ROOT / "app").iterdir() if path.suffix == ".py" or path.is_dir()}
    needed = set(sys.stdlib_module_names) | set(packages_distributions())
    assert not ours - {"__init__", "__pycache__"} & needed - {"__init__", "__pycache__"}


def test_the_shipped_settings_are_those_of_the_project() -> None:
    shipped = (ROOT / "app" / ".streamlit" / "config.toml").read_bytes()
    assert shipped == (ROOT / ".streamlit" / "config.toml").read_bytes()


def test_core_loads_nothing_heavy() -> None:
    heavy = "{'onnx', 'numba', 'duckdb', 'pyarrow', 'pandas', 'plotly', 'streamlit', 'onnxruntime', 'torch'}"
    code = f"import sys, core; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
