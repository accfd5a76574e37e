"""A person's own SELECT over Arrow tables, in a process of its own that holds nothing else.

The process has a locked in-memory DuckDB without files or extensions, a memory limit, two threads and
a row limit; it is ended when its time is over or when it is asked to stop, whatever it is doing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import Cancelled, LimitExceeded, UsageError
from core.limits import GIB, MIB, check
from core.store.arrow import pa

TEXT: Final = 20_000
"""Characters of a query."""

_CHILD: Final = str(Path(__file__).with_name("sql_child.py"))
_PASSED_ON: Final = ("PATH", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT", "USERPROFILE")
_LOOK: Final = 0.02
"""Seconds between two looks at the process."""

_STATEMENTS: Final = {"LOAD": "INSTALL or LOAD", "VARIABLE_SET": "SET", "LOGICAL_PLAN": "a plan"}


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """What one query may use.

    Attributes:
        seconds: wall clock, from its start to its last row.
        rows: rows handed back; a longer result is cut.
        result_bytes: bytes handed back, likewise.
        memory: bytes of the database; ``process`` of the whole process where the system holds it.
    """

    seconds: float = 15.0
    rows: int = 10_000
    result_bytes: int = 16 * MIB
    memory: int = 512 * MIB
    process: int = GIB
    threads: int = 2


LIMITS: Final = SqlLimits()


@dataclass(frozen=True, slots=True)
class SqlResult:
    """What a query gave.

    Attributes:
        rows: Arrow table.
        cut: whether the query has more rows than were handed back.
        seconds: from its start to its last row.
    """

    rows: Any
    cut: bool
    seconds: float


def run(
    tables: Mapping[str, Any],
    text: str,
    limits: SqlLimits = LIMITS,
    *,
    cancelled: Callable[[], bool] | None = None,
) -> SqlResult:
    """Run one SELECT over the Arrow tables, which it knows by their names; starts a process.

    Raises:
        UsageError: if it is no SELECT, more than one, or the database does not understand it.
        LimitExceeded: if it takes longer or more memory than it may.
        Cancelled: once ``cancelled`` says so.
    """
    check("the number of characters of a query", len(text), TEXT)
    if not text.strip():
        raise UsageError("there is no query", hint="Write a SELECT, or take one of the examples.")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="modelglass-sql-") as name:
        folder = Path(name)
        for table, rows in tables.items():
            with pa.ipc.new_file(str(folder / f"{table}.arrow"), rows.schema) as out:
                out.write_table(rows)
        answer = _ask(folder, _request(list(tables), text, limits), limits, cancelled)
        _judge(answer, limits, list(tables))
        found = pa.ipc.open_stream((folder / "result.arrow").read_bytes()).read_all()
        return SqlResult(found, bool(answer["cut"]), time.monotonic() - begun)


def _request(tables: list[str], text: str, limits: SqlLimits) -> bytes:
    asked = {
        "tables": tables, "text": text, "rows": limits.rows, "result_bytes": limits.result_bytes,
        "memory_bytes": limits.memory, "process_bytes": limits.process, "threads": limits.threads,
        "cpu_seconds": int(limits.seconds * limits.threads) + 2,
    }  # fmt: skip
    return json.dumps(asked).encode("utf-8", "backslashreplace")


def _ask(folder: Path, request: bytes, limits: SqlLimits, cancelled: Callable[[], bool] | None) -> dict[str, Any]:
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "2", "HOME": str(folder)}
    (folder / "request.json").write_bytes(request)
    with (
        (folder / "request.json").open("rb") as asked,
        (folder / "answer.json").open("wb") as answered,
        subprocess.Popen(
            [sys.executable, "-I", _CHILD],
            stdin=asked, stdout=answered, stderr=subprocess.DEVNULL, cwd=folder, env=environment,
        ) as process,
    ):  # fmt: skip
        try:
            _wait(process, limits, cancelled)
        finally:
            process.kill()
    if process.returncode:
        return {"memory": True}
    return json.loads((folder / "answer.json").read_bytes())


def _wait(process: subprocess.Popen[bytes], limits: SqlLimits, cancelled: Callable[[], bool] | None) -> None:
    end = time.monotonic() + limits.seconds
    while process.poll() is None:
        if cancelled is not None and cancelled():
            raise Cancelled("the query was stopped")
        if time.monotonic() > end:
            raise LimitExceeded(
                f"the query was stopped after {limits.seconds:g} s",
                hint="Filter earlier, join less, or end a recursive query with a condition.",
            )
        time.sleep(_LOOK)


def _judge(answer: Mapping[str, Any], limits: SqlLimits, tables: list[str]) -> None:
    if "memory" in answer:
        raise LimitExceeded(
            f"the query was stopped: it needs more than {limits.memory // MIB} MiB of memory",
            hint="Select fewer columns, or aggregate before you sort or join.",
        )
    if "refused" in answer:
        kinds = [_STATEMENTS.get(kind, kind.replace("_", " ")) for kind in answer["refused"]]
        what = "empty" if not kinds else f"{len(kinds)} statements" if len(kinds) > 1 else kinds[0]
        raise UsageError(
            f"only one SELECT can be run here, this is {what}",
            hint="It reads the tables of this page and can change or reach nothing else.",
        )
    if "error" in answer:
        words, _, place = str(answer["error"]).partition("\n\nLINE ")
        if place and not place.startswith("1:"):
            words += f" (line {place.partition(':')[0]})"
        hint = f"Tables are {', '.join(tables)}." if "Table with name" in words else None
        if "disabled by configuration" in words:
            hint = "A query reads the tables of this page and reaches no files, extensions or other databases."
        raise UsageError(words, hint=hint)
