"""One SELECT at work: a program of its own, started by ``core.store.sql``.

It imports nothing of ours. Its database is in memory and holds Arrow tables only; files, extensions
and settings are locked before a person's text is looked at, and the operating system bounds its
memory, its processor time and what it may write.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow  # pyright: ignore[reportMissingTypeStubs]

pa: Any = pyarrow

ROWS_AT_ONCE = 4096
WORDS = 600
"""Characters of an error message."""


def _limit(request: dict[str, Any]) -> None:
    try:
        resource = importlib.import_module("resource")
    except ModuleNotFoundError:  # Windows
        return
    memory = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    bounds = (
        (memory, request["process_bytes"]), (resource.RLIMIT_CPU, request["cpu_seconds"]), (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 4 * request["result_bytes"]),
    )  # fmt: skip
    for kind, bound in bounds:
        hard = resource.getrlimit(kind)[1]
        most = bound if hard < 0 else min(bound, hard)
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):
            continue


def _connect(request: dict[str, Any]) -> Any:
    config: dict[str, Any] = {
        "memory_limit": f"{request['memory_bytes'] >> 20}MiB",
        "threads": request["threads"],
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_unsigned_extensions": False,
        "python_enable_replacements": False,
        "temp_directory": "",
        "max_temp_directory_size": "0KiB",
    }
    connection: Any = duckdb.connect(":memory:", config=config)
    for name in request["tables"]:
        connection.register(name, pa.ipc.open_file(pa.memory_map(f"{name}.arrow")).read_all())
    connection.execute("SET lock_configuration = true")
    return connection


def _answer(request: dict[str, Any]) -> dict[str, object]:
    connection = _connect(request)
    try:
        statements = connection.extract_statements(request["text"])
        kinds = [statement.type.name for statement in statements]
        if kinds != ["SELECT"]:
            return {"refused": kinds}
        return _run(connection, statements[0], request)
    except duckdb.OutOfMemoryException:
        return {"memory": True}
    except duckdb.Error as error:
        return {"error": str(error)[:WORDS]}


def _run(connection: Any, statement: Any, request: dict[str, Any]) -> dict[str, object]:
    rows, size, cut = 0, 0, False
    reader = connection.execute(statement).to_arrow_reader(ROWS_AT_ONCE)
    with Path("result.arrow").open("wb") as file, pa.ipc.new_stream(file, reader.schema) as out:
        for batch in reader:
            cut = rows + batch.num_rows > request["rows"] or size + batch.nbytes > request["result_bytes"]
            room = request["rows"] - rows
            kept = batch if not cut else batch.slice(0, min(room, _fitting(batch, request["result_bytes"] - size)))
            out.write_batch(kept)
            rows, size = rows + kept.num_rows, size + kept.nbytes
            if cut:
                break
    return {"rows": rows, "cut": cut}


def _fitting(batch: Any, room: int) -> int:
    """Rows of a batch that take at most ``room`` bytes, taking them as equally long."""
    return batch.num_rows if batch.nbytes <= room else int(batch.num_rows * room / batch.nbytes)


def main() -> None:
    """Read one request from stdin and write its answer to stdout; the folder it runs in holds the tables."""
    request: dict[str, Any] = json.load(sys.stdin)
    _limit(request)
    json.dump(_answer(request), sys.stdout)


if __name__ == "__main__":
    main()
