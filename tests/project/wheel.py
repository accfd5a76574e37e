"""The wheel, built from a copy of the tracked sources and installed into an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("app", "core", "pages", "worker", "modelglass.py", "pyproject.toml", "README.md", "LICENSE")


@dataclass(frozen=True)
class Installed:
    wheel: Path
    bin: Path


def build_and_install(folder: Path) -> Installed:
    """Build without network or isolation; dependencies come from the environment of the tests."""
    source = folder / "source"
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            source.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder / "dist", source])
    wheel = next((folder / "dist").glob("modelglass-*.whl"))
    clean = folder / "clean"
    run([sys.executable, "-m", "venv", "--without-pip", clean])
    programs = clean / ("Scripts" if sys.platform == "win32" else "bin")
    run([*pip, "--python", programs / "python", "install", "--no-deps", "--no-index", wheel])
    shutil.rmtree(source)
    # A .pth line adds the tests' packages behind the wheel's own; the editable install there is not followed.
    site = next(clean.glob("lib/python*/site-packages"), clean / "Lib" / "site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(wheel, programs)


def run(command: list[object]) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
