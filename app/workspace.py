"""What one process holds: the database, the open models, the jobs and the state folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from app import instance, log, state_folder
from app.instance import Instance
from app.jobs import Job, Jobs
from app.open_models import OpenModel, OpenModels
from app.revisions import Revisions
from app.spools import Spools
from core.errors import StoreError
from core.statistics import engine
from core.store.store import EndedJob, Store

ROOTS_VARIABLE: Final = "MODELGLASS_ROOTS"
_CLAIM_TRIES: Final = 5

CLOSING: Final = ("hash", "statistics")
"""Kinds of jobs that end when their model is closed."""


class Workspace:
    """Everything that outlives a page run; thread-safe, one a process.

    Attributes:
        home: the state folder, or a temporary one where another process holds it.
        notice: one sentence a person must know about the workspace, else empty.
        roots: folders that may be opened from by path; empty for anywhere.
        instance: the lock on the state folder, ``None`` where it is not ours.
    """

    def __init__(self, home: Path | None = None, roots: tuple[Path, ...] | None = None) -> None:
        """Take the state folder and open its database, or work in memory and say why.

        Raises:
            StoreError: if the state folder cannot be created.
        """
        chosen = state_folder.prepare(home)
        self.instance, self.notice = _claim(chosen), ""
        self._temporary: Path | None = None
        if self.instance is None:
            self._in_memory("Another Modelglass holds the workspace")
        else:
            self.home = chosen
            try:
                self.store = Store.open(chosen / state_folder.DATABASE)
                self.notice = self.store.notice
            except StoreError as error:
                self.instance.release()
                self.instance = None
                self._in_memory(f"The workspace database cannot be used ({error.message})")
        log.begin(self.home / state_folder.LOGS)
        if self.notice:
            log.logger("workspace").warning("%s", self.notice)
        self.roots = _roots() if roots is None else roots
        self.uploads = self.home / state_folder.UPLOADS
        self.revisions = Revisions(self.home / state_folder.EDITS)
        self.spools = Spools(self.home / state_folder.SPOOLS)
        engine.keep_compiled_in(self.home / state_folder.COMPILED)
        self.jobs = Jobs(self._keep)
        self.models = OpenModels(self._closed)
        self._shut = False

    def close(self) -> None:
        """Stop the jobs, close the models and the database, give the state folder back."""
        if self._shut:
            return
        self._shut = True
        self.jobs.close()
        self.models.close_all()
        self.store.close()
        log.end()
        if self.instance is not None:
            self.instance.release()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _in_memory(self, why: str) -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="modelglass-"))
        self.home = state_folder.prepare(self._temporary)
        self.store = Store.open()
        self.notice = f"{why}. This one works in memory: recent files, statistics and traces are lost when it ends."

    def _keep(self, job: Job) -> None:
        if job.kind == "trace":  # one that was stopped before it began has nobody else to say so
            self.spools.let_go(job.subject)
        if job.kind == "warm-up" or (job.kind == "hash" and job.state == "cancelled"):
            return
        self.store.put_job(
            EndedJob(
                job.id, job.kind, job.title, job.artifact, job.actor, job.state, job.error,
                job.started_at or job.created_at, job.finished_at,
            )
        )  # fmt: skip

    def _closed(self, opened: OpenModel) -> None:
        self.jobs.cancel_of(opened.quick, *CLOSING)


_current: Workspace | None = None
_lock = threading.Lock()


def current() -> Workspace:
    """The workspace of this process, opened at the first call."""
    global _current  # noqa: PLW0603
    with _lock:
        if _current is None:
            _current = Workspace()
        return _current


def close() -> None:
    """Close the workspace of this process; a later ``current`` opens it again."""
    global _current
    with _lock:
        held, _current = _current, None
    if held is not None:
        held.close()


@contextlib.asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[None]:
    """Own the workspace while the server runs, and say at which port it answers."""
    from streamlit import config

    held = current()
    if held.instance is not None:
        held.instance.announce(int(config.get_option("server.port")))
    try:
        yield
    finally:
        close()


def _claim(home: Path) -> Instance | None:
    for attempt in range(_CLAIM_TRIES):  # another process may be asking just now who holds it
        found = instance.claim(home)
        if found is not None:
            return found
        time.sleep(0.05 * attempt)
    return None


def _roots() -> tuple[Path, ...]:
    listed = os.environ.get(ROOTS_VARIABLE, "")
    return tuple(Path(part).expanduser().resolve() for part in listed.split(os.pathsep) if part)
