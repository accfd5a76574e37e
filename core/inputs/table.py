"""Numbers of a CSV or Parquet file, read by a DuckDB of its own that may see this file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import BrokenFile, NotFound, UnreadableFile, UsageError
from core.inputs.encode import as_dtype, bounded
from core.inputs.generated import Generated
from core.inputs.recipe import Recipe
from core.limits import GIB, check

FILE_BYTES: Final = 4 * GIB
COLUMNS: Final = 100_000
_MEMORY: Final = "512MB"
_NUMBERS: Final = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "UHUGEINT", "FLOAT", "DOUBLE", "BOOLEAN", "DECIMAL",
)  # fmt: skip


def table(
    path: str, delimiter: str, header: str, columns: str, skip: int, rows: int, missing: str, transpose: bool,
    batch: bool, dtype: str,
) -> Generated:  # fmt: skip
    """[rows, columns] of the file, or [columns, rows], with an axis of 1 before where ``batch``.

    Raises:
        UnreadableFile, BrokenFile: if it cannot be read as a table.
        NotFound: if a column is not there.
        UsageError: if a column holds text, or a cell is empty and that is refused.
        LimitExceeded: beyond ``encode.MADE_ELEMENTS``.
    """
    place = _place(path)
    if len(delimiter) > 1:
        raise UsageError(f"the delimiter is {delimiter[:20]!r}, expected one character")
    import duckdb

    connection = _connection(place)
    try:
        relation = _relation(connection, place, delimiter, header)
        chosen = _chosen(relation, columns, path)
        names = ", ".join(_quoted(name) for name in chosen)
        part = relation.project(names).limit(rows or (1 << 62), offset=skip)
        counted: Any = part.aggregate("count(*)").fetchall()
        bounded((int(counted[0][0]), len(chosen)), "the table")
        numbers = _numbers(part, chosen, missing, dtype, path)
    except duckdb.Error as error:
        raise BrokenFile(f"cannot be read as a table: {_first_line(error)}", path=path) from None
    finally:
        connection.close()
    made = as_dtype(numbers.T if transpose else numbers, dtype)
    facts: dict[str, object] = {"columns": chosen[:1000], "rows": numbers.shape[0]}
    made = np.ascontiguousarray(made)
    source = Recipe("table", options={"path": path}).describe()
    return Generated(made[None] if batch else made, source, "The file's own numbers, rounded to the type.", facts)


def _place(path: str) -> Path:
    if not path:
        raise UsageError("no table file was named")
    place = Path(path).absolute()
    try:
        if not place.is_file():
            raise UnreadableFile("is missing or is not a regular file", path=path)
        check("the size of the table file", place.stat().st_size, FILE_BYTES, path=path)
    except (OSError, ValueError):
        raise UnreadableFile("cannot be read", path=path) from None
    if any(mark in str(place) for mark in "*?["):
        raise UnreadableFile("has a name with *, ? or [, which would match other files", path=path)
    return place


def _connection(place: Path) -> Any:
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": _MEMORY, "temp_directory": ""})
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute("SET python_enable_replacements = false")
    connection.execute(f"SET allowed_paths = [{_text(str(place))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _relation(connection: Any, place: Path, delimiter: str, header: str) -> Any:
    with place.open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    if parquet:
        return connection.sql("SELECT * FROM read_parquet(?)", params=[str(place)])
    named = header == "yes"
    match (bool(delimiter), header != "auto"):
        case (True, True):
            query, options = "SELECT * FROM read_csv(?, sample_size=-1, delim=?, header=?)", [delimiter, named]
        case (True, False):
            query, options = "SELECT * FROM read_csv(?, sample_size=-1, delim=?)", [delimiter]
        case (False, True):
            query, options = "SELECT * FROM read_csv(?, sample_size=-1, header=?)", [named]
        case _:
            query, options = "SELECT * FROM read_csv(?, sample_size=-1)", []
    return connection.sql(query, params=[str(place), *options])


def _chosen(relation: Any, columns: str, path: str) -> list[str]:
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    check("the number of columns", len(types), COLUMNS, path=path)
    chosen = [name.strip() for name in columns.split(",") if name.strip()] or list(types)
    for name in chosen:
        if name not in types:
            raise NotFound(
                f"has no column {name[:80]!r}", path=path, hint="It has " + ", ".join(list(types)[:12]) + "."
            )
        if not types[name].startswith(_NUMBERS) or "[" in types[name]:
            raise UsageError(
                f"column {name[:80]!r} holds {types[name][:40].lower().replace('varchar', 'text')}, not numbers",
                path=path, hint="Name the columns with numbers.",
            )  # fmt: skip
    return chosen


def _numbers(part: Any, chosen: list[str], missing: str, dtype: str, path: str) -> NDArray[np.generic]:
    """Columns side by side; whole numbers stay exact where no column has a fraction or an empty cell."""
    arrays = part.fetchnumpy()
    found: list[NDArray[np.generic]] = []
    for name in arrays:
        column: Any = arrays[name]
        holes = np.ma.getmaskarray(column)
        if holes.any():
            if missing == "refuse":
                row = int(np.flatnonzero(holes)[0])
                raise UsageError(f"column {name[:80]!r} has an empty cell in row {row + 1}", path=path,
                                 hint="Choose what becomes of empty cells.")  # fmt: skip
            column = np.ma.asarray(column, np.float64).filled(np.nan if missing == "nan" else 0.0)
        found.append(np.asarray(column))
    if not found or not found[0].size:
        raise UsageError("has no rows left to read", path=path)
    return np.stack(found, axis=1)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0][:200]
