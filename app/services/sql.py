"""A person's own SELECT over copies of the tables they may see."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app import workspace
from app.actors import Actor, may
from app.jobs import Job, Progress
from app.services.models import reach
from app.services.registry import service
from core.errors import Forbidden, ModelError, NotFound
from core.store import sql_tables
from core.store.sql import TEXT, SqlResult
from core.store.sql import run as run_sql

__all__ = ["TEXT"]

KIND: Final = "query"
KEPT: Final = 8
"""Results kept in memory, at most 16 MB each."""

_MODELS: Final = 1000


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One table as a query sees it.

    Attributes:
        about: what a row is.
        rows: how many the person sees.
        columns: name and SQL type of each.
    """

    name: str
    about: str
    rows: int
    columns: tuple[tuple[str, str], ...]


class _Outcomes:
    """What the last queries gave, by job; errors too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[str, SqlResult | ModelError]] = OrderedDict()

    def put(self, job: str, actor: str, outcome: SqlResult | ModelError) -> None:
        with self._lock:
            self._kept[job] = actor, outcome
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def get(self, job: str, actor: str) -> SqlResult | ModelError | None:
        with self._lock:
            owner, outcome = self._kept.get(job, ("", None))
        return outcome if owner == actor else None


_OUTCOMES: Final = _Outcomes()


@service("viewer")
def tables(actor: Actor, artifact: str, *, everything: bool = False) -> list[TableInfo]:
    """The tables of a query over one model, or over every model the person may see."""
    database, models = workspace.current().store.database, _models(actor, artifact, everything)
    return [
        TableInfo(
            name,
            table.about,
            sql_tables.count(database, models, name),
            tuple(sql_tables.columns(database, name)),
        )
        for name, table in sql_tables.TABLES.items()
    ]


@service("viewer")
def run(actor: Actor, artifact: str, text: str, *, everything: bool = False) -> Job:
    """Run one SELECT in a job; a query of the same person that is still at work is stopped.

    ``result`` gives what came of it. Every model the person may see: for an owner all that are
    known, for others those that are open.
    """
    held, models = workspace.current(), _models(actor, artifact, everything)
    for job in held.jobs.list():
        if job.kind == KIND and job.actor == actor.id and job.active:
            held.jobs.cancel(job.id)
    begun, me = threading.Event(), list[str]()

    def work(progress: Progress, cancelled: Callable[[], bool]) -> int:
        begun.wait()
        try:
            copies = sql_tables.copies(held.store.database, models, text)
            found = run_sql(copies, text, cancelled=cancelled)
        except ModelError as error:
            _OUTCOMES.put(me[0], actor.id, error)
            raise
        _OUTCOMES.put(me[0], actor.id, found)
        return found.rows.num_rows

    job = held.jobs.submit(KIND, "SQL query", work, artifact=reach(actor, artifact).quick, actor=actor.id)
    me.append(job.id)
    begun.set()
    return job


@service("viewer")
def result(actor: Actor, job: str) -> SqlResult | None:
    """What the person's own query gave; ``None`` while it is at work or where it is not kept any more.

    Raises:
        ModelError: what stopped it, with a next step.
    """
    outcome = _OUTCOMES.get(job, actor.id)
    if isinstance(outcome, ModelError):
        raise outcome
    return outcome


@service("viewer")
def active(actor: Actor, job: str) -> bool:
    """Whether the person's own query waits or runs."""
    try:
        found = workspace.current().jobs.get(job)
    except NotFound:
        return False
    return found.active and found.actor == actor.id


@service("viewer")
def stop(actor: Actor, job: str) -> None:
    """Ask the person's own query to stop.

    Raises:
        Forbidden: if it is another person's.
    """
    jobs = workspace.current().jobs
    if jobs.get(job).actor != actor.id:
        raise Forbidden("this query is another person's")
    jobs.cancel(job)


def _models(actor: Actor, artifact: str, everything: bool) -> list[int]:
    held = workspace.current()
    mine = held.store.artifacts.find(reach(actor, artifact).quick).key
    if not everything:
        return [mine]
    if may(actor, "owner"):
        return sorted({mine, *(known.key for known in held.store.artifacts.recent(_MODELS))})
    return sorted({mine, *(held.store.artifacts.find(opened.quick).key for opened in held.models.all())})
