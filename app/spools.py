"""The folders of past runs in the state folder, of which the newest are kept."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Final

from core.errors import NotFound
from core.limits import GIB

RUNS: Final = 20
BYTES: Final = 4 * GIB
WAITING: Final = 3600.0
"""Seconds after which a run that was prepared and not started may be removed."""


class Spools:
    """Spools by trace id; those of runs at work are never removed.

    Args:
        folder: holds one folder a trace.
        runs, nbytes: how many and how much is kept, the newest first.
    """

    def __init__(self, folder: Path, runs: int = RUNS, nbytes: int = BYTES) -> None:
        self.folder = folder
        self._runs, self._nbytes = runs, nbytes
        self._busy: dict[str, float] = {}
        self._lock = threading.Lock()

    def hold(self, trace: str, seconds: float = WAITING) -> None:
        """Say that a run waits for consent in this spool, or is at work in it (``inf``)."""
        with self._lock:
            self._busy[trace] = time.monotonic() + seconds

    def let_go(self, trace: str) -> None:
        """Say that its run is over."""
        with self._lock:
            self._busy.pop(trace, None)

    def path(self, trace: str) -> Path:
        """The spool of a trace.

        Raises:
            NotFound: if it is gone, its values with it.
        """
        if not self.kept(trace):
            raise NotFound("the stored values of this run were removed to make room", hint="Run it again.")
        return self.folder / trace

    def kept(self, trace: str) -> bool:
        """Whether the values of a trace are still there."""
        return _is_name(trace) and (self.folder / trace).is_dir()

    def remove(self, trace: str) -> None:
        """Delete the values of a trace."""
        if _is_name(trace):
            shutil.rmtree(self.folder / trace, ignore_errors=True)

    def make_room(self) -> None:
        """Delete the oldest spools beyond the bounds."""
        now = time.monotonic()
        with self._lock:
            busy = {trace for trace, until in self._busy.items() if until > now}
        found = sorted((p for p in self.folder.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime, reverse=True)
        held = 0
        for place, spool in enumerate(found):
            held += _size(spool)
            if spool.name not in busy and (place >= self._runs or (held > self._nbytes and place > 0)):
                shutil.rmtree(spool, ignore_errors=True)


def _is_name(trace: str) -> bool:
    return trace not in ("", ".", "..") and os.path.basename(trace) == trace


def _size(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
