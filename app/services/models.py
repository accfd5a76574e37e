"""Reaching an open model, what is derived from it, and how far its hash is."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

from app import workspace
from app.actors import Actor, may
from app.jobs import Job, Progress
from app.open_models import OpenModel
from app.revisions import Editing
from app.services.registry import service
from core import identity
from core.errors import Forbidden, SourceChanged
from core.ir import Model
from core.opening import open_model
from core.statistics import engine

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Status:
    """An open model's names.

    Attributes:
        id: what to put into an address: the SHA-256 where known, else the quick identity.
        digest: SHA-256, empty until hashed; ``hashing`` is the job that is at it or failed.
        notice: one sentence about the workspace itself, else empty.
    """

    id: str
    quick: str
    digest: str
    hashing: Job | None
    uploaded: bool
    notice: str


@service("viewer")
def get(actor: Actor, artifact: str) -> Model:
    """The model of that id; one that was closed is opened again at its recorded path for an owner.

    Raises:
        NotFound: if the id is not known here.
        SourceChanged: if its file is another one now.
        Forbidden: if it is closed and the actor may not open files.
    """
    return reach(actor, artifact).model


@service("viewer")
def derived(actor: Actor, artifact: str, key: Hashable, make: Callable[[Model], T]) -> T:
    """What ``make`` gives for the model, made once and kept until it is closed."""
    return reach(actor, artifact).derived(key, make)


@service("viewer")
def status(actor: Actor, artifact: str) -> Status:
    """Names of an open model and the progress of its hash."""
    opened, held = reach(actor, artifact), workspace.current()
    hashing = next((j for j in held.jobs.list(opened.quick) if j.kind == "hash"), None)
    digest = opened.digest
    return Status(opened.id, opened.quick, digest, None if digest else hashing, opened.uploaded, held.notice)


@service("viewer")
def opened(actor: Actor) -> list[Status]:
    """The models that are open, the last used first."""
    return [status(actor, found.quick) for found in workspace.current().models.all()]


def reach(actor: Actor, artifact: str) -> OpenModel:
    """The open model of that id, opened again where it was closed; for services only."""
    held = workspace.current()
    found = held.models.find(artifact)
    if found is not None:
        return found
    known = held.store.artifacts.find(artifact)
    found = held.models.find(known.quick)
    if found is not None:
        return found
    edited = held.revisions.find(known.quick)
    if edited is not None:
        return _revision(actor, *edited)
    if not may(actor, "owner"):
        raise Forbidden("this model is not open now", hint="Ask the owner to open it.")
    model = open_model(known.path)
    if identity.quick(model) != known.quick:
        model.close()
        raise SourceChanged("is another file than the one that was opened", path=known.path, hint="Open it again.")
    return admit(actor, model, uploaded=known.uploaded)


def _revision(actor: Actor, editing: Editing, revision: str) -> OpenModel:
    """Open a revision whose model was closed again, from the file that was edited."""
    source = reach(actor, editing.quick).model
    model = editing.document(source, revision).opened(revision)
    return admit(actor, model, root=editing.history.root, revision=revision)


def admit(actor: Actor, model: Model, *, uploaded: bool = False, root: str = "", revision: str = "") -> OpenModel:
    """Keep a model open, record it and hash it in the background; for services only.

    Args:
        root, revision: of an edited model, as ``OpenModel`` has them.
    """
    held = workspace.current()
    quick = identity.quick(model)
    known = held.store.artifacts.put_model(quick, model, uploaded=uploaded)
    opened = held.models.add(OpenModel(model, quick, known.digest, uploaded, root, revision))
    if opened.model is not model:
        model.close()
    if not opened.digest:
        _hash(actor, opened)
    if sum(tensor.nbytes for tensor in model.tensors) > engine.KERNEL_BYTES:
        _warm_up(actor)
    return opened


def _hash(actor: Actor, opened: OpenModel) -> None:
    held, quick = workspace.current(), opened.quick

    def work(progress: Progress, cancelled: Callable[[], bool]) -> str:
        found = identity.digest(opened.model, lambda done, total: progress(done, total, unit="bytes"), cancelled)
        held.store.artifacts.promote(quick, found)
        opened.digest = found
        return found

    held.jobs.submit(
        "hash", f"SHA-256 of {opened.model.name}", work,
        key=f"hash {quick}", artifact=quick, actor=actor.id, background=True,
    )  # fmt: skip


def _warm_up(actor: Actor) -> None:
    """Have the compiled kernels ready before somebody asks for the statistics of a large model."""
    held = workspace.current()
    if not any(job.kind == "warm-up" for job in held.jobs.list()):
        held.jobs.submit(
            "warm-up", "Preparing fast statistics", lambda progress, cancelled: engine.warm_up(),
            key="warm-up", actor=actor.id, background=True,
        )  # fmt: skip
