"""The jobs that run now, and stopping one."""

from __future__ import annotations

from app import workspace
from app.actors import Actor
from app.jobs import Job
from app.services.registry import service


@service("viewer")
def active(actor: Actor) -> list[Job]:
    """Jobs that wait or run, newest first, all models together."""
    return [job for job in workspace.current().jobs.list() if job.active]


@service("collaborator")
def stop(actor: Actor, job: str) -> Job:
    """Ask a job to stop.

    Raises:
        NotFound: if there is none of that id.
    """
    return workspace.current().jobs.cancel(job)
