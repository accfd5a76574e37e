"""Schema versions: a new database gets the newest schema, an older one is brought forward."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

VERSION: Final = 2

STEPS: Final[dict[int, str]] = {
    1: """
CREATE TABLE region_edits (
    artifact INTEGER NOT NULL, row INTEGER NOT NULL, edit VARCHAR NOT NULL,
    actor VARCHAR NOT NULL, changed_at DOUBLE NOT NULL
);
CREATE TABLE node_data (
    artifact INTEGER NOT NULL, name VARCHAR NOT NULL, data VARCHAR NOT NULL, changed_at DOUBLE NOT NULL
);
""",
}
"""SQL that brings version N to N + 1, by N."""


class NewerSchema(Exception):
    """The database was written by a newer version than this one."""

    def __init__(self, version: int) -> None:
        super().__init__(f"schema version {version}")
        self.version = version


def bring_up(connection: Any, steps: dict[int, str] | None = None, newest: int = VERSION) -> int:
    """Create the schema or migrate it forward, each step in a transaction; returns the version found.

    Raises:
        NewerSchema: if the database is of a later version.
    """
    found = version_of(connection)
    if found > newest:
        raise NewerSchema(found)
    if found == 0:
        _apply(connection, files("core.store").joinpath("schema.sql").read_text("utf-8"), newest)
        return 0
    known = STEPS if steps is None else steps
    for version in range(found, newest):
        _apply(connection, known[version], version + 1)
    return found


def version_of(connection: Any) -> int:
    """The schema version, 0 for an empty database."""
    tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE table_name = 'schema_version'")
    if not tables.fetchall():
        return 0
    found = connection.execute("SELECT max(version) FROM schema_version").fetchall()[0][0]
    return 0 if found is None else int(found)


def _apply(connection: Any, sql: str, version: int) -> None:
    connection.execute("BEGIN TRANSACTION")
    connection.execute(sql)
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version VALUES (?)", [version])
    connection.execute("COMMIT")
