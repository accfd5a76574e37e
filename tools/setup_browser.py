"""Make sure that a Chromium is there for the browser tests: ``python tools/setup_browser.py`` prints its path.

Taken is, in this order: ``$MODELGLASS_CHROMIUM``, one on PATH, the system's package where this runs as root under
apt-get, Playwright's own build. Where none can be had this fails and says so; ``NO_BROWSER=1`` leaves the browser
tests out and says that too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

FAILED = """\
browser: no Chromium was found and none could be installed (not on PATH, not by apt-get, not by Playwright).
browser: put one on PATH, set MODELGLASS_CHROMIUM, or set NO_BROWSER=1 to leave the browser tests out."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def left_out() -> bool:
    """Whether the person asked to leave browser tests out."""
    return os.environ.get("NO_BROWSER", "") not in ("", "0")


def find() -> str | None:
    """A Chromium that is already there, else ``None``."""
    asked = os.environ.get("MODELGLASS_CHROMIUM")
    found = asked or next(filter(None, map(shutil.which, NAMES)), None)
    return found or _playwrights()


def _playwrights() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def _by_apt() -> bool:
    if not shutil.which("apt-get") or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
    return _run(install, quiet) or (_run(["apt-get", "update", "-q"], quiet) and _run(install, quiet))


def _by_playwright() -> bool:
    return _run([sys.executable, "-m", "playwright", "install", "chromium"], dict(os.environ))


def _run(command: list[str], environment: dict[str, str]) -> bool:
    print("browser:", *command, flush=True)
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode == 0


def main() -> int:
    """Find or install; 0 where there is one or it was declined, 1 where none can be had."""
    if left_out():
        print("browser: NO_BROWSER is set: the browser tests are LEFT OUT of this run")
        return 0
    steps: tuple[Callable[[], bool], ...] = (lambda: True, _by_apt, _by_playwright)
    for step in steps:
        if step() and (path := find()):
            print(f"browser: {path}")
            return 0
    print(FAILED, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
