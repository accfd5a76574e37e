"""Starting the worker of an approved run, holding its limits from outside, and bringing it to an end."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

from core.errors import ApprovalVoid, RunError, SourceChanged
from core.run.memory import resident
from core.run.result import Verdict, collect
from core.run.spool import Event, EventReader, Spool
from core.trace.types import Approval, TraceRequest, TraceResult

TICK: Final = 0.02
"""Seconds between two looks at the worker."""

_PASSED_ON: Final = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT", "USERPROFILE", "APPDATA")


def approve(request: TraceRequest, actor: str) -> Approval:
    """Consent to exactly this request, as ``actor`` gives it."""
    return Approval(request.fingerprint(), actor, time.time())


def start(request: TraceRequest, spool: Spool, approval: Approval, python: str = sys.executable) -> Run:
    """Start the worker of a run.

    Args:
        request: as it was prepared with ``spool``.
        approval: must be bound to exactly this request.
        python: interpreter of the worker.

    Raises:
        ApprovalVoid: if model, inputs or limits are not those that were approved.
        SourceChanged: if a file of the model is not the one that was prepared.
        RunError: if the worker cannot be started.
    """
    _check_approval(request, spool, approval)
    return Run(request, spool, python)


class Run:
    """A worker at work; a thread of its own watches it until it has ended.

    Memory and time are held here, from outside: a worker beyond them is killed with everything it
    started. The worker also ends by itself when this process goes away.
    """

    def __init__(self, request: TraceRequest, spool: Spool, python: str = sys.executable) -> None:
        self.request, self.spool = request, spool
        self._reader = EventReader(spool)
        self._cancelled, self._ended = threading.Event(), threading.Event()
        self._peak = 0
        self._verdict: Verdict | None = None
        self._result: TraceResult | None = None
        self._started = time.monotonic()
        self._process = _spawn(spool, request, python)
        self._watcher = threading.Thread(target=self._watch, name="run-watcher", daemon=True)
        self._watcher.start()

    @property
    def pid(self) -> int:
        """Process number of the worker."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the worker has not ended yet."""
        return not self._ended.is_set()

    def poll(self) -> list[Event]:
        """What the worker has said since the last call; reads the spool."""
        return list(self._reader.read())

    def cancel(self) -> None:
        """Ask for the end; the worker is gone within a second. Harmless after it ended."""
        self._cancelled.set()

    def wait(self, timeout: float | None = None) -> TraceResult:
        """How the run ended, whatever happened to the worker; waits for that.

        Raises:
            TimeoutError: if it has not ended after ``timeout`` seconds; it goes on running.
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"the run has not ended after {timeout} s")
        if self._result is None:
            elapsed = self._elapsed
            self._result = collect(self.spool, self.request, self._verdict, self._code, elapsed, self._peak)
        return self._result

    def _watch(self) -> None:
        deadline = self._started + self.request.limits.time
        while (code := self._process.poll()) is None:
            now, peak = resident(self._process.pid)
            self._peak = max(self._peak, peak)
            if self._cancelled.is_set():
                self._verdict = Verdict("cancelled")
            elif now > self.request.limits.memory:
                self._verdict = Verdict("memory")
            elif time.monotonic() > deadline:
                self._verdict = Verdict("timeout")
            if self._verdict is not None:
                code = _kill(self._process)
                break
            self._cancelled.wait(TICK)
        self._code = code
        self._elapsed = time.monotonic() - self._started
        _kill(self._process)  # what the worker itself may have left running
        shutil.rmtree(self.spool.file("tmp"), ignore_errors=True)
        self._ended.set()


def _check_approval(request: TraceRequest, spool: Spool, approval: Approval) -> None:
    if approval.fingerprint != request.fingerprint():
        raise ApprovalVoid("the model, the inputs or the limits changed since the approval", hint="Approve again.")
    written, sources = spool.read_request()
    if written.fingerprint() != approval.fingerprint:
        raise ApprovalVoid("the prepared run is not the one that was approved", hint="Prepare it again.")
    for item in request.inputs:
        if _sha256(spool.file("inputs", item.file)) != item.sha256:
            raise ApprovalVoid(f"input {item.name!r} changed since the approval", hint="Prepare the run again.")
    for path, size, modified, inode in sources:
        try:
            status = os.stat(path)
        except OSError:
            raise SourceChanged("is gone since the run was prepared", path=path) from None
        if (status.st_size, status.st_mtime_ns, status.st_ino) != (size, modified, inode):
            raise SourceChanged("changed on disk since the run was prepared", path=path, hint="Reopen the file.")


def _sha256(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise RunError(f"cannot be read: {error.strerror}", path=path) from None


def _spawn(spool: Spool, request: TraceRequest, python: str) -> subprocess.Popen[bytes]:
    try:
        with open(spool.file("stderr.log"), "wb") as log:
            return subprocess.Popen(
                [python, "-P", "-m", "worker", spool.path],
                cwd=spool.path,
                env=_environment(spool, request.limits.threads),
                stdin=subprocess.PIPE,  # closes when this process goes away, which ends the worker
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"the worker cannot be started: {error.strerror}", path=python) from None


def _environment(spool: Spool, threads: int) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    few = str(min(threads, 4))
    return {
        **kept,
        "LC_ALL": "C.UTF-8",
        "TMPDIR": spool.file("tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": few,
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",  # each arena of glibc reserves 64 MiB
        # The official builds of onnxruntime send usage data since 1.29; both spellings occur.
        "ORT_DISABLE_TELEMETRY": "1",
        "ORT_TELEMETRY_DISABLED": "1",
    }


def _kill(process: subprocess.Popen[bytes]) -> int:
    """End the worker's whole process group and return the worker's exit code."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    code = process.wait()
    if process.stdin is not None:
        process.stdin.close()
    return code
