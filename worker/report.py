"""What the worker tells its parent: JSON lines while it works, one document at the end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from core.ir import Finding
from core.run.spool import Spool
from core.trace.types import MemoryStep, NodeTiming, Status, TracedValue

PROGRESS_EVERY: Final = 0.05
"""Seconds between two progress lines that differ in their count alone."""


class Report:
    """Appends to ``events.jsonl`` line by line; every line is on disk before the next step."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._file = open(spool.events_file, "ab", buffering=0)  # noqa: SIM115 closed by ``__exit__``
        self._next = 0.0

    def started(self, engine: str, provider: str, held: dict[str, str]) -> None:
        """The limits hold and the model is about to be read."""
        self._line("started", engine=engine, provider=provider, held=held, optimisation="off")

    def progress(self, phase: str, done: int, total: int, doing: str) -> None:
        """``done`` of ``total`` operators; ``doing`` completes "while ..."."""
        self._line("progress", phase=phase, done=done, total=total, doing=doing)

    def counted(self, phase: str, done: int, total: int, doing: str) -> None:
        """As ``progress``, left out where the last one was only just said."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PROGRESS_EVERY
            self.progress(phase, done, total, doing)

    def value(self, value: TracedValue) -> None:
        """One value was captured."""
        self._line("value", value=value.to_json())

    def timing(self, timing: NodeTiming) -> None:
        """The latency of one node."""
        self._line("timing", timing=timing.to_json())

    def finding(self, finding: Finding) -> None:
        """Something a person should know about this run."""
        self._line("finding", finding=asdict(finding))

    def memory(self, steps: Sequence[MemoryStep]) -> None:
        """Bytes alive over time."""
        self._line("memory", steps=[[step.step, step.node, step.bytes] for step in steps])

    def captured(self, status: Status, reason: str) -> None:
        """All values are on disk; what follows is only timed."""
        self._line("captured", status=status, reason=reason)

    def result(self, **fields: Any) -> None:
        """Write ``result.json`` whole, by temporary file and rename."""
        temporary = self._spool.file("result.json.part")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(fields, file)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(self._spool.result_file)

    def __enter__(self) -> Report:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        self._file.close()

    def _line(self, event: str, **fields: Any) -> None:
        text = json.dumps({"event": event, **fields}, allow_nan=False) + "\n"
        self._file.write(text.encode("ascii"))
