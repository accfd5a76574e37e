"""Starting the dashboard: Streamlit in this process, told everything that matters for safety as flags.

Streamlit reads settings from a ``.streamlit`` folder in the current folder. That folder may have come with a model
file, so it is not read here: the shipped settings are passed as flags, which outrank every file, and the current
folder is taken out of the places that are searched for keys not set by us.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import tomllib
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from app import instance, log, state_folder, workspace
from app.actors import LOCAL_OWNER
from app.services import opening
from core.errors import StoreError, UsageError
from core.opening import open_model

MAIN: Final = Path(__file__).resolve().parent / "main.py"
CONFIG: Final = MAIN.parent / ".streamlit" / "config.toml"
FIRST_PORT: Final = 8501
PORTS: Final = 50
START: Final = 60.0
"""Seconds within which a dashboard that was started answers."""


def start(
    file: str | None = None,
    *,
    say: Callable[[str], object],
    port: int | None = None,
    browser: bool = True,
    verbose: bool = False,
) -> None:
    """Show the dashboard, on ``file`` where given; returns when it was stopped, or at once where one runs already.

    Args:
        say: gets the few lines that a person should read.
        verbose: whether the log is shown on standard error as well.

    Raises:
        UsageError: if the port is taken.
        ModelError: if ``file`` cannot be opened.
    """
    if file is not None:
        open_model(file).close()
    home = state_folder.prepare()
    try:
        running = address(home, file)
    except StoreError:
        running = None  # the workspace says why, and works in memory
    if running is not None:
        say(f"Modelglass runs already: {running}")
        _browse(running, browser)
        return
    held = workspace.current()
    log.begin(held.home / state_folder.LOGS, verbose=verbose)
    if held.notice:
        say(held.notice)
    _serve(file, _free_port() if port is None else _allowed(port), browser, say)


def show(path: str | os.PathLike[str], *, browser: bool = True) -> str:
    """Open ``path`` in the dashboard, started as a process of its own where none runs, and return its address.

    For use at the end of a script: it returns as soon as the model can be seen.

    Raises:
        ModelError: if the file cannot be opened.
        StoreError: if the dashboard does not answer.
    """
    open_model(path).close()
    home, file = state_folder.prepare(), os.fspath(path)
    url = address(home, file)
    if url is None:
        log = (home / state_folder.LOGS / "show.log").open("ab")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "app.cli", "--no-browser"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        url = _await(home, file, process)
    _browse(url, browser)
    return url


def address(home: Path, file: str | None) -> str | None:
    """Where the dashboard that holds ``home`` shows ``file``; ``None`` where none runs.

    Raises:
        StoreError: if one holds the folder and does not answer.
        ModelError: what it says about the file.
    """
    if file is not None:
        opened = instance.hand_over(home, file)
        return None if opened is None else opened.url
    return _running(home)


def _running(home: Path) -> str | None:
    record = home / instance.FILE
    held = instance.claim(home) if record.exists() else None
    if held is not None:
        held.release()
    if held is not None or not record.exists():
        return None
    with contextlib.suppress(OSError, ValueError):
        told = json.loads(record.read_bytes())
        if isinstance(told, dict) and _answers(int(told.get("port", 0))):
            return f"http://{instance.LOOPBACK}:{told['port']}"
    raise StoreError("another Modelglass holds the workspace and does not answer")


def flags(config: Mapping[str, Any], **more: object) -> list[str]:
    """The shipped settings as Streamlit's command-line flags.

    A list becomes a flag repeated; for looks Streamlit wants it as JSON.
    """
    found: list[str] = []
    for name, value in {**_flat(config), **more}.items():
        items: list[object] = [value]
        if isinstance(value, list):
            items = [json.dumps(value)] if name.startswith("theme.") else value
        found += [f"--{name}={str(item).lower() if isinstance(item, bool) else item}" for item in items]
    return found


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """``{"server": {"port": 1}}`` as ``{"server.port": 1}``."""
    flat: dict[str, object] = {}
    for name, value in table.items():
        flat.update(_flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value})
    return flat


def _serve(file: str | None, port: int, browser: bool, say: Callable[[str], object]) -> None:
    from streamlit import config as streamlit_config
    from streamlit.web import cli as streamlit_cli

    _forget_current_folder(streamlit_config)
    shipped = tomllib.loads(CONFIG.read_text("utf-8"))
    ours = {"server.port": port, "server.headless": True, "logger.hideWelcomeMessage": True}
    threading.Thread(target=_present, args=(file, port, browser, say), name="modelglass-present", daemon=True).start()
    try:
        streamlit_cli.main(["run", str(MAIN), *flags(shipped, **ours)], standalone_mode=False)
    except KeyboardInterrupt:
        say("Modelglass stopped.")


def _forget_current_folder(streamlit_config: Any) -> None:
    """Take ``./.streamlit`` out of the files that Streamlit reads and watches."""
    search = streamlit_config.get_config_files

    def without_current(name: str) -> list[str]:
        here = str(Path.cwd() / ".streamlit" / name)
        beside = str(MAIN.parent / ".streamlit" / name)
        return [path for path in search(name) if path != here or path == beside]

    streamlit_config.get_config_files = without_current


def _present(file: str | None, port: int, browser: bool, say: Callable[[str], object]) -> None:
    """Say where the dashboard is once it answers, with the file open in it."""
    base = f"http://{instance.LOOPBACK}:{port}"
    deadline = time.monotonic() + START
    while not _answers(port):
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)
    url = base
    if file is not None:
        url = f"{base}/overview?model={opening.open_path(LOCAL_OWNER, os.path.abspath(file))}"
    say(f"Modelglass is at {url} (Ctrl-C stops it)")
    _browse(url, browser)


def _await(home: Path, file: str, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        url = address(home, file)
        if url is not None:
            return url
        time.sleep(0.1)
    raise StoreError("the dashboard could not be started", hint=f"See {home / state_folder.LOGS / 'show.log'}.")


def _browse(url: str, browser: bool) -> None:
    if browser:
        webbrowser.open(url)


def _answers(port: int) -> bool:
    try:
        socket.create_connection((instance.LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        if _can_bind(port):
            return port
    raise UsageError(f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all taken", hint="Choose one with --port.")


def _allowed(port: int) -> int:
    if not _can_bind(port):
        raise UsageError(f"port {port} cannot be used: it is taken or not allowed", hint="Choose another with --port.")
    return port


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((instance.LOOPBACK, port))
        except (OSError, OverflowError):
            return False
    return True
