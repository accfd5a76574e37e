"""Opening and closing models: by path, as an upload, the sample, and what was opened before."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from app import sample, workspace
from app.actors import Actor
from app.services.models import admit
from app.services.registry import service
from core.errors import Forbidden, LimitExceeded, ModelError, UsageError
from core.limits import FILES, MIB, UPLOAD_BYTES, check
from core.opening import open_model
from core.store.artifacts import Artifact

PIECE: Final = 4 * MIB
NAME_LENGTH: Final = 120
_RESERVED: Final = frozenset({"con", "prn", "aux", "nul"} | {f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10)})


@dataclass(frozen=True, slots=True)
class Recent:
    """One file that was opened before.

    Attributes:
        here: whether something still lies at its path.
        open: whether it is open now.
    """

    artifact: Artifact
    here: bool
    open: bool


@service("owner")
def open_path(actor: Actor, path: str) -> str:
    """Open a file or folder of this machine and return its id.

    Raises:
        Forbidden: if it lies outside the folders that may be opened.
        ModelError: as ``core.opening.open_model``.
    """
    model = open_model(allowed(path))
    return admit(actor, model).id


@service("owner")
def open_sample(actor: Actor) -> str:
    """Open the bundled sample and return its id."""
    return admit(actor, open_model(Path(sample.__file__).with_name("sample.onnx"))).id


@service("owner")
def open_upload(actor: Actor, name: str, stream: BinaryIO) -> str:
    """Store one uploaded file and open it; see ``open_uploads``."""
    return _opened(actor, [(name, stream)])


@service("owner")
def open_uploads(actor: Actor, files: Sequence[tuple[str, BinaryIO]]) -> str:
    """Store the files of one artifact (a model and its data files) and open the first of them.

    They are copied in pieces; the same content uploaded again is kept once.

    Raises:
        LimitExceeded: beyond ``limits.UPLOAD_BYTES`` in all, or where the disk would run full.
        ModelError: as ``core.opening.open_model``.
    """
    return _opened(actor, files)


@service("owner")
def close(actor: Actor, artifact: str) -> None:
    """Close a model and give its memory back."""
    held = workspace.current()
    found = held.models.find(artifact)
    if found is not None:
        held.models.close(found.id)


@service("owner")
def reopen(actor: Actor, artifact: str) -> str:
    """Open whatever lies at the path of a model now, and return its id, a new one where it changed."""
    held = workspace.current()
    known = held.store.artifacts.find(artifact)
    path = known.path if known.uploaded else allowed(known.path)
    model = open_model(path)
    held.models.close(known.quick)
    return admit(actor, model, uploaded=known.uploaded).id


@service("owner")
def recent(actor: Actor, limit: int = 20) -> list[Recent]:
    """Files opened last, newest first, with the verdict of their findings."""
    held = workspace.current()
    open_now = {found.quick for found in held.models.all()}
    return [
        Recent(artifact, os.path.exists(artifact.path), artifact.quick in open_now)
        for artifact in held.store.artifacts.recent(limit)
        if held.revisions.find(artifact.quick) is None
    ]


@service("owner")
def forget(actor: Actor, artifact: str) -> None:
    """Remove a model from the recent list with its statistics and traces; uploads are deleted, other files stay."""
    held = workspace.current()
    known = held.store.artifacts.find(artifact)
    held.models.close(known.quick)
    held.models.close(known.id)
    for trace in held.store.artifacts.forget(known.quick):
        held.spools.remove(trace)
    if known.uploaded and Path(known.path).parent.parent == held.uploads:
        shutil.rmtree(Path(known.path).parent, ignore_errors=True)


def allowed(path: str) -> str:
    """The absolute path, if it may be opened; for services only.

    Raises:
        UsageError: if it is no path.
        Forbidden: if it lies outside the folders that may be opened.
    """
    text = path.strip().strip("\"'")
    if not text or "\0" in text:
        raise UsageError("no path was given", hint="Type the path of a model file or folder.")
    found = Path(os.path.abspath(Path(text).expanduser()))
    roots = workspace.current().roots
    if roots and not any(found.resolve().is_relative_to(root.resolve()) for root in roots):
        raise Forbidden("lies outside the folders that may be opened", path=str(found))
    return str(found)


def safe_name(name: str) -> str:
    """A file name that is only a name: no folders, no control or reserved characters, not hidden."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(c if c.isalnum() or c in "._-+ ()[]" else "_" for c in base if c.isprintable())
    stem, dot, suffix = kept.strip(" .").rpartition(".")
    suffix = suffix if dot else ""
    stem = stem if dot else kept.strip(" .")
    if stem.lower().split(".")[0] in _RESERVED:
        stem = "_" + stem
    tail = f".{suffix}" if suffix else ""
    room = NAME_LENGTH - len(tail.encode()[:20])
    return (stem.encode()[:room].decode("utf-8", "ignore") or "model") + tail.encode()[:20].decode("utf-8", "ignore")


def _opened(actor: Actor, files: Sequence[tuple[str, BinaryIO]]) -> str:
    if not files:
        raise UsageError("no file was uploaded")
    check("the number of uploaded files", len(files), FILES)
    folder, names = _stored(files)
    try:
        model = open_model(folder / names[0])
    except ModelError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return admit(actor, model, uploaded=True).id


def _stored(files: Sequence[tuple[str, BinaryIO]]) -> tuple[Path, list[str]]:
    """Copy the files into a folder named by their content; an equal one already there is used instead."""
    uploads = workspace.current().uploads
    arriving = uploads / f".{secrets.token_hex(8)}"
    arriving.mkdir(mode=0o700)
    whole, names, total = hashlib.sha256(), list[str](), 0
    try:
        for name, stream in files:
            base = safe_name(name)
            if base in names:
                raise UsageError(f"two uploaded files are called {base!r}")
            total, digest = _copied(stream, arriving / base, total)
            whole.update(f"{base}\0{digest}\n".encode())
            names.append(base)
        target = uploads / whole.hexdigest()[:32]
        if not all((target / name).is_file() for name in names):
            shutil.rmtree(target, ignore_errors=True)
            arriving.rename(target)
    except OSError as error:
        raise UsageError(f"the upload cannot be stored: {error.strerror}") from None
    finally:
        shutil.rmtree(arriving, ignore_errors=True)
    return target, names


def _copied(stream: BinaryIO, path: Path, before: int) -> tuple[int, str]:
    digest, total = hashlib.sha256(), before
    with open(path, "xb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
        while piece := stream.read(PIECE):
            total += len(piece)
            if total > UPLOAD_BYTES:
                raise LimitExceeded(f"an upload may have {UPLOAD_BYTES} bytes", hint="Open it by path instead.")
            if shutil.disk_usage(path.parent).free < max(len(piece), 64 * MIB):
                raise LimitExceeded("the disk of the state folder is full", hint="Make room, or open it by path.")
            digest.update(piece)
            file.write(piece)
    return total, digest.hexdigest()
