"""Long work on threads: two at a time, a third for hashing; a job never touches Streamlit.

Whose turn it is goes by persons, not by jobs: the one with the fewest jobs at work comes first, then
the one who was served longest ago. Runs also share a memory budget; who does not fit waits, and
nobody who needs memory passes them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, Protocol

from app.log import logger
from core.errors import Cancelled, LimitExceeded, ModelError, NotFound
from core.limits import GIB

WORKERS: Final = 2
BACKGROUND_WORKERS: Final = 1
KEPT: Final = 100
"""Ended jobs kept in memory."""

_UNKNOWN_MEMORY: Final = 6 * GIB
_LATER: Final = 1 << 62
"""A turn after all that were taken."""

State = Literal["queued", "running", "done", "failed", "cancelled"]


class Progress(Protocol):
    """How a job says how far it is; what is left out stays as it was."""

    def __call__(
        self, done: float, total: float | None = None, *, unit: str | None = None, message: str | None = None
    ) -> None:
        """``total`` 0 where it is unknown; ``unit`` of both, e.g. ``bytes``."""
        ...


Work = Callable[[Progress, Callable[[], bool]], object]
"""``work(progress, cancelled)`` gives the job's result; raises ``Cancelled`` once ``cancelled()``."""


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work as it stands now.

    Attributes:
        artifact: quick identity of the model it is about, empty where none.
        subject: what it makes or fills, e.g. the id of a trace.
        actor: id of the person who started it.
        place: in the queue, 1 for the next; 0 where it does not wait in one.
        memory: bytes of the server's budget that it holds while at work.
        error: one sentence where it failed.
        created_at, started_at, finished_at: seconds since 1970, 0 where not yet.
    """

    id: str
    kind: str
    title: str
    artifact: str = ""
    subject: str = ""
    actor: str = ""
    state: State = "queued"
    place: int = 0
    memory: int = 0
    done: float = 0
    total: float = 0
    unit: str = ""
    message: str = ""
    error: str = ""
    result: object = None
    created_at: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0

    @property
    def active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("queued", "running")

    @property
    def share(self) -> float | None:
        """How much is done, 0 to 1; ``None`` where the total is unknown."""
        return min(self.done / self.total, 1.0) if self.total > 0 else None


@dataclass(slots=True)
class _Entry:
    job: Job
    key: str
    work: Work
    cancelled: threading.Event = field(default_factory=threading.Event)
    future: Future[object] | None = None
    background: bool = False


class Jobs:
    """All jobs of this process.

    Args:
        ended: called with each job that ended, on its thread.
        memory: bytes that all runs together may use, ``budget()`` where left out.
    """

    def __init__(self, ended: Callable[[Job], object] | None = None, memory: int | None = None) -> None:
        self._ended = ended
        self.memory = budget() if memory is None else memory
        self._waiting: list[_Entry] = []
        self._served: dict[str, int] = {}
        self._turn = itertools.count(1)
        self._closed = False
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Condition()
        self._pool = ThreadPoolExecutor(WORKERS, "job")
        self._background = ThreadPoolExecutor(BACKGROUND_WORKERS, "background-job")

    def submit(
        self,
        kind: str,
        title: str,
        work: Work,
        *,
        key: str = "",
        artifact: str = "",
        subject: str = "",
        actor: str = "",
        memory: int = 0,
        background: bool = False,
    ) -> Job:
        """Queue some work; an active job of the same ``key`` is returned instead of a second one.

        Raises:
            LimitExceeded: if it needs more memory than all runs together may use.
        """
        if memory > self.memory:
            raise LimitExceeded(
                f"the run may use {memory / GIB:.3g} GiB, this server gives all runs {self.memory / GIB:.3g} GiB",
                hint="Lower the memory limit of the run.",
            )
        with self._lock:
            for entry in self._entries.values():
                if key and entry.key == key and entry.job.active and not entry.cancelled.is_set():
                    return entry.job
            job = Job(
                secrets.token_hex(8), kind, title, artifact, subject, actor, memory=memory, created_at=time.time()
            )
            entry = self._entries[job.id] = _Entry(job, key, work, background=background)
            if not background:
                self._waiting.append(entry)
        if background:
            self._begin(entry, self._background)
        else:
            self._next()
        return job

    def get(self, job: str) -> Job:
        """The job of that id as it stands.

        Raises:
            NotFound: if there is none, or it ended long ago.
        """
        return self._entry(job).job

    def list(self, artifact: str | None = None) -> list[Job]:
        """Jobs, newest first; of one model where given."""
        with self._lock:
            found = [e.job for e in self._entries.values() if artifact is None or e.job.artifact == artifact]
        return found[::-1]

    def cancel(self, job: str) -> Job:
        """Ask a job to stop; one that still waits is over at once.

        Raises:
            NotFound: if there is none of that id.
        """
        entry = self._entry(job)
        self._stop(entry)
        return entry.job

    def cancel_of(self, artifact: str, *kinds: str) -> None:
        """Ask all active jobs of one model and of these kinds to stop."""
        with self._lock:
            found = [e for e in self._entries.values() if e.job.artifact == artifact and e.job.kind in kinds]
        for entry in found:
            self._stop(entry)

    def wait(self, job: str, timeout: float | None = None) -> Job:
        """The job once it has ended; for the command line and tests, never for a page.

        Raises:
            TimeoutError: if it has not ended after ``timeout`` seconds.
        """
        entry = self._entry(job)
        with self._lock:
            if not self._lock.wait_for(lambda: not entry.job.active, timeout):
                raise TimeoutError(f"job {job} has not ended after {timeout} s")
        return entry.job

    def close(self) -> None:
        """Stop all jobs and wait for their threads."""
        with self._lock:
            self._closed = True
            entries = list(self._entries.values())
        for entry in entries:
            self._stop(entry)
        for pool in (self._pool, self._background):
            pool.shutdown(wait=True, cancel_futures=True)

    def _entry(self, job: str) -> _Entry:
        with self._lock:
            entry = self._entries.get(job)
        if entry is None:
            raise NotFound(f"no job is known as {job[:80]!r}")
        return entry

    def _next(self) -> None:
        """Begin whatever may begin now, and tell the others their place."""
        begun: list[_Entry] = []
        with self._lock:
            busy = [e for e in self._entries.values() if e.future is not None and e.job.active and not e.background]
            held_back = False
            for entry in () if self._closed else self._order(busy):
                room = self.memory - sum(e.job.memory for e in busy)
                held_back = held_back or entry.job.memory > room
                if len(busy) >= WORKERS or (held_back and entry.job.memory):
                    continue
                self._waiting.remove(entry)
                self._served[entry.job.actor] = next(self._turn)
                entry.future = Future()  # taken: replaced as soon as the pool has it
                busy.append(entry)
                begun.append(entry)
            for place, entry in enumerate(self._order(busy), 1):
                entry.job = replace(entry.job, place=place)
        for entry in begun:
            self._begin(entry, self._pool)

    def _order(self, busy: Iterable[_Entry]) -> list[_Entry]:
        """Those who wait in the order of their turns, as if each began at once and nobody ended."""
        load = Counter(entry.job.actor for entry in busy)
        served, left, order = dict(self._served), list(self._waiting), list[_Entry]()
        turn = _LATER
        while left:
            first = min(left, key=lambda e: (load[e.job.actor], served.get(e.job.actor, 0)))
            left.remove(first)
            order.append(first)
            load[first.job.actor] += 1
            served[first.job.actor] = turn = turn + 1
        return order

    def _begin(self, entry: _Entry, pool: ThreadPoolExecutor) -> None:
        try:
            future = pool.submit(self._run, entry, entry.work)
        except RuntimeError:  # the process is closing
            self._finish(entry, Cancelled("was stopped"), None)
            return
        entry.future = future
        future.add_done_callback(lambda done: self._done(entry, done))

    def _stop(self, entry: _Entry) -> None:
        entry.cancelled.set()
        with self._lock:
            waited = entry in self._waiting
            if waited:
                self._waiting.remove(entry)
        if waited:
            self._finish(entry, Cancelled("was stopped"), None)
        elif entry.future is not None:
            entry.future.cancel()

    def _run(self, entry: _Entry, work: Work) -> object:
        def progress(
            done: float, total: float | None = None, *, unit: str | None = None, message: str | None = None
        ) -> None:
            given = {"total": total, "unit": unit, "message": message}
            self._change(entry, done=done, **{name: x for name, x in given.items() if x is not None})

        if entry.cancelled.is_set():
            raise Cancelled("was stopped")
        self._change(entry, state="running", place=0, started_at=time.time())
        return work(progress, entry.cancelled.is_set)

    def _done(self, entry: _Entry, future: Future[object]) -> None:
        error = Cancelled("was stopped") if future.cancelled() else future.exception()
        self._finish(entry, error, None if error is not None else future.result())

    def _finish(self, entry: _Entry, error: BaseException | None, result: object) -> None:
        if error is None:
            outcome = {"state": "done", "result": result}
        elif isinstance(error, Cancelled):
            outcome = {"state": "cancelled", "error": str(error)}
        else:
            outcome = {"state": "failed", "error": _sentence(error)}
            logger("jobs").error("%s failed: %s", entry.job.kind, error, exc_info=_unexpected(error))
        self._change(entry, finished_at=time.time(), place=0, **outcome)
        with self._lock:
            over = [e for e in self._entries.values() if not e.job.active]
            for old in over[: max(0, len(over) - KEPT)]:
                del self._entries[old.job.id]
        if self._ended is not None:
            self._ended(entry.job)
        self._next()

    def _change(self, entry: _Entry, **changes: object) -> None:
        with self._lock:
            entry.job = replace(entry.job, **changes)
            if not entry.job.active:
                self._lock.notify_all()


def budget() -> int:
    """Bytes that all runs together may use: three quarters of this machine's memory, or of its control group's."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return _UNKNOWN_MEMORY
    with contextlib.suppress(OSError, ValueError):  # "max" where the group has no limit
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    return found * 3 // 4


@contextlib.contextmanager
def stopping(cancelled: Callable[[], bool]) -> Iterator[None]:
    """Turn a request to stop into ``Cancelled`` before and after a step that cannot be interrupted."""
    if cancelled():
        raise Cancelled("was stopped")
    yield
    if cancelled():
        raise Cancelled("was stopped")


def _sentence(error: BaseException) -> str:
    if isinstance(error, ModelError):
        return str(error)
    return f"stopped by an internal error ({type(error).__name__}); the log has the details"


def _unexpected(error: BaseException) -> BaseException | None:
    return None if isinstance(error, ModelError) else error
