"""Edits of a model: tried, committed as revisions, taken back, saved as a new file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app import workspace
from app.actors import Actor
from app.jobs import Job, Progress
from app.open_models import OpenModel
from app.revisions import Editing
from app.services.models import admit, reach
from app.services.opening import allowed
from app.services.registry import service
from core import identity
from core.edits.changes import Changes, changes
from core.edits.export import export_onnx
from core.edits.kinds import Edit
from core.edits.proof import prove
from core.edits.revisions import History, Revision
from core.edits.verify import prepare
from core.errors import Unavailable, UsageError
from core.ir import Finding, Model
from core.opening import open_model


@dataclass(frozen=True, slots=True)
class EditState:
    """Where the edits of a model stand.

    Attributes:
        root: id of the file as opened; ``revision`` the one shown, equal to the root's digest for it.
        chain: revisions from the file to the one shown, oldest first.
        branches: the other revisions.
        dirty: whether the one shown was not saved.
        ahead: whether an unsaved revision exists that is not the one shown.
    """

    root: str
    name: str
    revision: str
    chain: tuple[Revision, ...]
    branches: tuple[Revision, ...]
    saved: str
    dirty: bool
    ahead: str
    can_undo: bool
    can_redo: bool


@dataclass(frozen=True, slots=True)
class Tried:
    """An edit that was tried; nothing is committed.

    Attributes:
        findings: what it would break or change; one of severity ``error`` keeps it from being committed.
    """

    edit: Edit
    ready: bool
    findings: tuple[Finding, ...]
    changes: Changes


@service("viewer")
def state(actor: Actor, artifact: str) -> EditState | None:
    """Where the edits of a model stand, ``None`` where it was never edited."""
    opened = reach(actor, artifact)
    held = workspace.current()
    if opened.root:
        editing = held.revisions.edited(opened.root)
        shown = opened.revision
    else:
        editing = held.revisions.edited(opened.digest) if opened.digest else None
        shown = opened.digest
    if editing is None:
        return None
    history = editing.history
    chain = tuple(history.chain(shown))
    known = {item.id for item in chain}
    others = tuple(item for item in history.revisions.values() if item.id not in known)
    ahead = history.head if history.head not in (shown, history.saved) else ""
    return EditState(
        editing.quick, Path(editing.path).name, shown, chain, others, history.saved,
        shown not in (history.saved, history.root), ahead, bool(chain), bool(history.undone) and history.head == shown,
    )  # fmt: skip


@service("collaborator")
def attempt(actor: Actor, artifact: str, edit: Edit) -> Tried:
    """Try an edit on the revision that is shown: what it changes and what it would break.

    Raises: as ``core.edits.verify.prepare``.
    """
    editing, source, revision = _editing(actor, artifact)
    before = editing.document(source, revision)
    tried = prepare(before, edit)
    return Tried(edit, tried.ready, tried.findings, changes(before, tried.after))


@service("owner")
def commit(actor: Actor, artifact: str, edit: Edit) -> str:
    """Commit an edit on the revision that is shown and return the id of the new one.

    Raises:
        UsageError: if it would break the model.
    """
    editing, source, revision = _editing(actor, artifact)
    tried = prepare(editing.document(source, revision), edit)
    if not tried.ready:
        problem = next(finding.message for finding in tried.findings if finding.severity == "error")
        raise UsageError(f"the edit cannot be committed: {problem}")
    with editing.lock:
        at = editing.history if editing.history.head == revision else editing.history.at(revision)
        history = at.committed(edit)
        editing.hold(history.head, tried.after)
        return _show(actor, editing, source, history)


@service("owner")
def undo(actor: Actor, artifact: str) -> str:
    """One edit back; returns the id of what is shown then."""
    return _step(actor, artifact, History.undo)


@service("owner")
def redo(actor: Actor, artifact: str) -> str:
    """Forward again to what was undone last."""
    return _step(actor, artifact, History.redo)


@service("owner")
def show(actor: Actor, artifact: str, revision: str) -> str:
    """Show another revision, such as one of another branch, and return its id."""
    return _step(actor, artifact, lambda history: history.at(revision))


@service("owner")
def name(actor: Actor, artifact: str, revision: str, title: str) -> None:
    """Give a revision a name."""
    editing, _, _ = _editing(actor, artifact)
    with editing.lock:
        editing.history = editing.history.named(revision, title.strip()[:80])
        workspace.current().revisions.keep(editing)


@service("viewer")
def script(actor: Actor, artifact: str) -> str:
    """The edits up to the revision that is shown, as a script for ``modelglass edit``."""
    opened = reach(actor, artifact)
    editing = workspace.current().revisions.edited(opened.root or opened.digest)
    if editing is None:
        return History.of("none").script()
    return editing.history.script(opened.revision or None if opened.root else editing.history.root)


@service("owner")
def suggested(actor: Actor, artifact: str) -> str:
    """A path for the saved file: beside the opened one, with a name that is free."""
    editing, _, _ = _editing(actor, artifact)
    path = Path(editing.path)
    names = (path.with_name(f"{path.stem}-edited{n}{path.suffix or '.onnx'}") for n in ("", *map(str, range(2, 1000))))
    return str(next((name for name in names if not name.exists()), path.with_name("edited.onnx")))


@service("owner")
def save(
    actor: Actor, artifact: str, path: str, *, external: bool = False, overwrite: bool = False, compare: bool = True
) -> Job:
    """Write the revision that is shown as a new file, in a job whose result is a report.

    Raises:
        Forbidden: if the path lies outside the folders that may be opened.
    """
    editing, source, revision = _editing(actor, artifact)
    target = allowed(path)
    document = editing.document(source, revision)

    def work(progress: Progress, cancelled: Callable[[], bool]) -> dict[str, Any]:
        written = export_onnx(
            document, target, external=external or None, overwrite=overwrite, cancelled=cancelled,
            progress=lambda done, total: progress(done, total, unit="bytes", message="writing"),
        )  # fmt: skip
        report: dict[str, Any] = {
            "revision": revision,
            "files": [{"file": name, "bytes": size, "sha256": sha} for name, size, sha in written.files],
            "folder": str(Path(target).parent),
            "bytes_reused": written.reused,
            "bytes_encoded": written.encoded,
            "onnx_checker": written.checked or "valid",
        }
        if compare:
            progress(0, 0, message="running it before and after")
            report["comparison"] = prove(source, open_model(target), cancelled=cancelled).to_json()
        with editing.lock:
            if editing.history.head == revision:
                editing.history = editing.history.written()
                workspace.current().revisions.keep(editing)
        return report

    return workspace.current().jobs.submit(
        "export", f"Saving {Path(target).name}", work,
        key=f"export {target}", artifact=reach(actor, artifact).quick, actor=actor.id,
    )  # fmt: skip


def runnable(opened: OpenModel, source: Model | None = None) -> Model:
    """The model as a file that a worker can read: itself, or its revision written to the state folder; for services."""
    if not opened.root:
        return opened.model
    held = workspace.current()
    found = held.revisions.edited(opened.root)
    if found is None:
        raise Unavailable("the edits of this model are gone", path=opened.model.path)
    target = held.revisions.written(opened.revision)
    if not target.exists():
        root = held.models.find(found.quick)
        origin = root.model if root is not None else source or open_model(found.path)
        export_onnx(found.document(origin, opened.revision), target)
    return open_model(target)


def _step(actor: Actor, artifact: str, change: Callable[[History], History]) -> str:
    editing, source, revision = _editing(actor, artifact)
    with editing.lock:
        history = editing.history
        at = history if history.head == revision else history.at(revision)
        return _show(actor, editing, source, change(at))


def _show(actor: Actor, editing: Editing, source: Model, history: History) -> str:
    editing.history = history
    held = workspace.current()
    if history.head == history.root:
        held.revisions.keep(editing)
        return reach(actor, editing.quick).id
    opened = _opened(actor, editing, source, history.head)
    editing.shown[history.head] = opened.quick
    held.revisions.keep(editing)
    return opened.id


def _opened(actor: Actor, editing: Editing, source: Model, revision: str) -> OpenModel:
    if revision == editing.history.root:
        return reach(actor, editing.quick)
    model = editing.document(source, revision).opened(revision)
    return admit(actor, model, root=editing.history.root, revision=revision)


def _editing(actor: Actor, artifact: str) -> tuple[Editing, Model, str]:
    """The edits of a model, the file they begin with, and the revision that is shown."""
    held, opened = workspace.current(), reach(actor, artifact)
    if opened.root:
        found = held.revisions.edited(opened.root)
        if found is None:
            raise Unavailable("the edits of this model are gone", path=opened.model.path, hint="Open the file again.")
        return found, reach(actor, found.quick).model, opened.revision
    if opened.model.format != "onnx":
        raise Unavailable(
            f"the graph of a {opened.model.kind} cannot be edited; an ONNX model is needed", path=opened.model.path
        )
    if not opened.digest:
        digest = identity.digest(opened.model)
        held.store.artifacts.promote(opened.quick, digest)
        opened.digest = digest
    return held.revisions.of(opened.digest, opened.model.path, opened.quick), opened.model, opened.digest
