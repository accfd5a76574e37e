"""The workspace database as the app uses it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.store.artifacts import Artifacts
from core.store.database import MEMORY, THREADS, Database
from core.store.regions import Regions
from core.store.traces import Traces

JOBS_KEPT: Final = 500


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that ended, as kept; times in seconds since 1970."""

    id: str
    kind: str
    title: str
    artifact: str
    actor: str
    state: str
    error: str
    started_at: float
    finished_at: float


class Store:
    """Artifacts, traces and ended jobs in one database, which this process holds alone."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.artifacts = Artifacts(database)
        self.traces = Traces(database, self.artifacts)
        self.regions = Regions(database, self.artifacts)

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, memory: int = MEMORY, threads: int = THREADS) -> Store:
        """Open or create the database at ``path``, or one in memory.

        A file that cannot be read or is of a newer version is moved aside, and ``notice`` says so.

        Raises:
            StoreError: if another process holds the file or it cannot be created.
        """
        return cls(Database(None if path is None else Path(path), memory=memory, threads=threads))

    @property
    def notice(self) -> str:
        """One sentence where an older database was moved aside, else empty."""
        return self.database.notice

    def put_job(self, job: EndedJob) -> None:
        """Keep a job that ended; only the newest ``JOBS_KEPT`` stay."""
        with self.database.writing() as cursor:
            cursor.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    job.id, job.kind, job.title, job.artifact, job.actor, job.state, job.error, job.started_at,
                    job.finished_at,
                ],
            )  # fmt: skip
            cursor.execute(
                "DELETE FROM jobs WHERE id NOT IN (SELECT id FROM jobs ORDER BY finished_at DESC LIMIT ?)", [JOBS_KEPT]
            )

    def jobs(self, limit: int = 50) -> list[EndedJob]:
        """Jobs that ended, newest first."""
        rows = self.database.rows("SELECT * FROM jobs ORDER BY finished_at DESC, id LIMIT ?", limit)
        return [EndedJob(*row) for row in rows]

    def close(self) -> None:
        """Write everything out and let the file go."""
        self.database.close()
