"""One dashboard a state folder: the first holds a lock, a second hands its file to the first."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from core.errors import ModelError, StoreError
from core.limits import KIB

FILE: Final = "instance.json"
OPEN: Final = "/_modelglass/open"
HEADER: Final = "x-modelglass-secret"
LOOPBACK: Final = "127.0.0.1"
TIMEOUT: Final = 10.0
BODY: Final = 64 * KIB
"""Bytes of a question or an answer."""

_LOCK_BYTE: Final = 1 << 20
"""Beyond the text, because a locked byte cannot be read on Windows."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Where the running dashboard shows the file."""

    artifact: str
    url: str


class Instance:
    """The lock of this process on a state folder, with the port and secret that others need."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.secret = secrets.token_hex(16)
        self._fd = fd
        self._write({"pid": os.getpid()})

    def announce(self, port: int) -> None:
        """Say at which loopback port this process answers."""
        self._write({"pid": os.getpid(), "port": port, "secret": self.secret})

    def release(self) -> None:
        """Give the state folder back."""
        self._write({})
        os.close(self._fd)

    def _write(self, content: dict[str, object]) -> None:
        data = json.dumps(content).encode()
        os.lseek(self._fd, 0, os.SEEK_SET)
        os.truncate(self._fd, 0)
        os.write(self._fd, data)


def claim(home: Path) -> Instance | None:
    """Take the state folder for this process; ``None`` where another process has it."""
    path = home / FILE
    fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    if not _lock(fd):
        os.close(fd)
        return None
    if os.name == "posix":
        os.fchmod(fd, 0o600)
    return Instance(path, fd)


def hand_over(home: Path, file: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> Opened | None:
    """Open a file in the dashboard that holds ``home``; ``None`` where none does.

    Raises:
        StoreError: if one holds it and does not answer within ``timeout`` seconds.
        ModelError: what the running dashboard says about the file.
    """
    deadline = time.monotonic() + timeout
    while True:
        found = claim(home) if (home / FILE).exists() else None
        if found is not None:
            found.release()
        if found is not None or not (home / FILE).exists():
            return None
        told = _told(home)
        with contextlib.suppress(ConnectionRefusedError):  # it may say its port just before it listens there
            if "port" in told:
                return _ask(told, os.path.abspath(file), timeout)
        if time.monotonic() > deadline:
            raise _silent(told)
        time.sleep(0.1)


def _ask(told: dict[str, Any], path: str, timeout: float) -> Opened:
    connection = http.client.HTTPConnection(LOOPBACK, int(told["port"]), timeout=timeout)
    try:
        connection.request("POST", OPEN, json.dumps({"path": path}), {HEADER: str(told["secret"])})
        answer = connection.getresponse()
        data: Any = json.loads(answer.read(BODY))
    except ConnectionRefusedError:
        raise
    except (OSError, ValueError, http.client.HTTPException):
        raise _silent(told) from None
    finally:
        connection.close()
    if answer.status == 422:
        raise ModelError(str(data["error"]))
    if answer.status != 200:
        raise _silent(told)
    artifact = str(data["artifact"])
    return Opened(artifact, f"http://{LOOPBACK}:{int(told['port'])}/overview?model={quote(artifact)}")


def _told(home: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        data: Any = json.loads((home / FILE).read_bytes())
        if isinstance(data, dict):
            return data
    return {}


def _silent(told: dict[str, Any]) -> StoreError:
    return StoreError(
        f"another Modelglass (process {told.get('pid', 'unknown')}) holds the workspace and does not answer",
        hint="End it, or set MODELGLASS_HOME to another folder.",
    )


def _lock(fd: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(fd, _LOCK_BYTE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
