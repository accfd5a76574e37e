"""What is at work, and stopping it."""

from __future__ import annotations

from app import workspace
from app.actors import Actor
from app.jobs import Job
from app.services.models import reach
from app.services.registry import service
from core.store.store import EndedJob


@service("viewer")
def listed(actor: Actor, artifact: str = "") -> list[Job]:
    """Jobs of this process, newest first; of one model where given."""
    held = workspace.current()
    return held.jobs.list(reach(actor, artifact).quick if artifact else None)


@service("viewer")
def active(actor: Actor) -> list[Job]:
    """Jobs that wait or run, newest first."""
    return [job for job in workspace.current().jobs.list() if job.active]


@service("viewer")
def get(actor: Actor, job: str) -> Job:
    """One job as it stands.

    Raises:
        NotFound: if there is none of that id.
    """
    return workspace.current().jobs.get(job)


@service("collaborator")
def cancel(actor: Actor, job: str) -> Job:
    """Ask a job to stop; what it finished is kept.

    Raises:
        NotFound: if there is none of that id.
    """
    return workspace.current().jobs.cancel(job)


@service("owner")
def ended(actor: Actor, limit: int = 50) -> list[EndedJob]:
    """Jobs that ended, those of earlier days too, newest first."""
    return workspace.current().store.jobs(limit)
