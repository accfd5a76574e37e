"""The DuckDB connection: locked down, a cursor a thread, one writer at a time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import duckdb

from core.errors import StoreError
from core.limits import MIB
from core.store import migrations

MEMORY: Final = 512 * MIB
THREADS: Final = 2


class Database:
    """One open workspace database, a file or in memory.

    The process that opens the file holds it alone. Reads may come from any thread; writes are
    serialised and transactional, so a process killed in between leaves whole transactions.

    Attributes:
        path: the file, ``None`` in memory.
        notice: one sentence where an older file had to be moved aside, else empty.
    """

    def __init__(self, path: Path | None, *, memory: int = MEMORY, threads: int = THREADS) -> None:
        """Open or create the database; moves a file aside that cannot be read or is newer.

        Raises:
            StoreError: if another process holds the file or the folder cannot be written.
        """
        self.path = path
        self.notice = ""
        self._settings = {"memory": memory, "threads": threads}
        self._local = threading.local()
        self._write = threading.RLock()
        self._connection: Any = self._open()

    def cursor(self) -> Any:
        """This thread's own cursor."""
        found: Any = getattr(self._local, "cursor", None)
        if found is None:
            found = self._local.cursor = self._connection.cursor()
        return found

    def table(self, sql: str, *parameters: object) -> Any:
        """Rows of one SELECT as an Arrow table."""
        return self.cursor().sql(sql, params=list(parameters)).to_arrow_table()

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Rows of one SELECT as tuples."""
        return self.cursor().execute(sql, list(parameters)).fetchall()

    def row(self, sql: str, *parameters: object) -> tuple[Any, ...] | None:
        """The first row of one SELECT, ``None`` where there is none.

        Everything is fetched: a result that is left unfinished blocks the cursor.
        """
        return next(iter(self.rows(sql, *parameters)), None)

    @contextlib.contextmanager
    def writing(self) -> Generator[Any]:
        """One transaction on this thread's cursor: committed at the end, undone on an error."""
        with self._write:
            cursor = self.cursor()
            cursor.execute("BEGIN TRANSACTION")
            done = False
            try:
                yield cursor
                cursor.execute("COMMIT")
                done = True
            finally:
                if not done:
                    with contextlib.suppress(duckdb.Error):  # the transaction may be gone already
                        cursor.execute("ROLLBACK")

    def close(self) -> None:
        """Write everything out and let the file go."""
        with self._write:
            self._connection.close()

    def _open(self) -> Any:
        if self.path is None:
            return self._prepared(":memory:")
        if self.path.exists() and not _is_duckdb(self.path):
            self._move_aside("is not a database")
        try:
            return self._prepared(str(self.path))
        except migrations.NewerSchema as error:
            self._move_aside(f"was written by a newer Modelglass (schema {error.version})")
        except duckdb.Error as error:
            if _is_in_use(error):
                raise StoreError(
                    "is held by another process", path=str(self.path), hint="Close it or use the one that runs."
                ) from None
            if not self.path.exists():
                raise StoreError(f"cannot be created: {_first_line(error)}", path=str(self.path)) from None
            self._move_aside(f"cannot be read ({_first_line(error)})")
        return self._prepared(str(self.path))

    def _prepared(self, target: str) -> Any:
        connection: Any = duckdb.connect(target, config=_config(**self._settings))
        try:
            migrations.bring_up(connection)
            connection.execute("SET lock_configuration = true")
        except BaseException:
            connection.close()
            raise
        return connection

    def _move_aside(self, why: str) -> None:
        assert self.path is not None
        stamp = time.strftime("%Y%m%d-%H%M%S")
        target = self.path.with_name(f"{self.path.name}.aside-{stamp}")
        number = 1
        while target.exists():
            number += 1
            target = self.path.with_name(f"{self.path.name}.aside-{stamp}-{number}")
        self.path.rename(target)
        log = Path(f"{self.path}.wal")
        if log.exists():
            log.rename(f"{target}.wal")
        self.notice = (
            f"The workspace database {why}. It was kept as {target.name}, and a new one was begun: "
            "recent files, statistics and traces start empty."
        )


def _config(memory: int, threads: int) -> dict[str, Any]:
    return {
        "memory_limit": f"{memory // MIB}MiB",
        "threads": threads,
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_unsigned_extensions": False,
        "python_enable_replacements": False,
        "preserve_insertion_order": True,
    }


def _is_duckdb(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"  # main header: 8 bytes of checksum, then the magic


def _is_in_use(error: duckdb.Error) -> bool:
    text = str(error).lower()
    return "lock on file" in text or "used by another process" in text or "already open" in text


def _first_line(error: duckdb.Error) -> str:
    return str(error).splitlines()[0][:200]
