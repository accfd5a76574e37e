"""A condition in SQL over rows that are given, in a database that holds nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import duckdb

from core.errors import UsageError
from core.limits import MIB
from core.store.arrow import pa

MEMORY: Final = 512 * MIB
_TYPES: Final = {
    "index": "int64", "name": "string", "dtype": "string", "encoding": "string", "role": "string", "source": "string",
    "problem": "string", "elements": "int64", "bytes": "int64", "start": "int64", "stop": "int64", "nan": "int64",
    "inf": "int64", "zero": "int64", "min": "float64", "max": "float64", "mean": "float64", "std": "float64",
    "l2": "float64", "absmax": "float64",
}  # fmt: skip


def matching(rows: Sequence[Mapping[str, Any]], condition: str) -> list[int]:
    """Positions of the rows of the tensor list for which ``condition`` holds, e.g. ``bytes > 1000 AND rank = 2``.

    Columns are those of ``tensors``, with ``shape`` as a list and its length as ``rank``. The database is in memory,
    has no access to files and no extensions, and its settings are locked.

    Raises:
        UsageError: if DuckDB does not understand the condition.
    """
    table: Any = pa.table(
        {
            **{name: pa.array([row.get(name) for row in rows], kind) for name, kind in _TYPES.items()},
            "shape": pa.array([list(row["shape"]) for row in rows], pa.list_(pa.int64())),
            "rank": pa.array([len(row["shape"]) for row in rows], pa.int64()),
            "place": pa.array(range(len(rows)), pa.int64()),
        }
    )
    connection: Any = duckdb.connect(":memory:", config=_config())
    try:
        connection.register("tensors", table)
        connection.execute("SET lock_configuration = true")
        # A person's own SQL, in a database that holds nothing but these rows.
        text = f"SELECT place FROM tensors WHERE (\n{condition}\n) ORDER BY place"  # noqa: S608
        statements = connection.extract_statements(text)
        if len(statements) != 1:
            raise UsageError("the condition is more than one statement")
        found = connection.execute(statements[0]).fetchall()
    except duckdb.Error as error:
        columns = ", ".join((*_TYPES, "shape", "rank"))
        raise UsageError(f"the condition cannot be used: {str(error).splitlines()[0]}",
                         hint=f"Columns are {columns}.") from None  # fmt: skip
    finally:
        connection.close()
    return [place for (place,) in found if isinstance(place, int) and 0 <= place < len(rows)]


def _config() -> dict[str, Any]:
    return {
        "memory_limit": f"{MEMORY // MIB}MiB",
        "threads": 2,
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
