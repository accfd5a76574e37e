"""Edited models of this workspace: their documents in memory, their histories in the state folder."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from app.log import logger
from core.edits.apply import apply
from core.edits.onnx_document import OnnxDocument
from core.edits.revisions import History
from core.errors import BrokenFile
from core.ir import Model

_DOCUMENTS: Final = 6
"""States of one model that are held ready; others are made again from the file."""

_FILES: Final = 4
"""Written states that are kept for runs."""


@dataclass
class Editing:
    """The edits of one opened file.

    Attributes:
        path, quick: of the file as opened.
        history: its revisions.
        shown: quick identity by revision that was shown, so that a link to one finds it again.
    """

    path: str
    quick: str
    history: History
    shown: dict[str, str] = field(default_factory=dict[str, str])
    lock: threading.RLock = field(default_factory=threading.RLock)
    _documents: OrderedDict[str, OnnxDocument] = field(default_factory=OrderedDict[str, OnnxDocument])

    def document(self, source: Model, revision: str) -> OnnxDocument:
        """The document of a revision, made from the nearest one that is held; reads the file."""
        with self.lock:
            if revision in self._documents:
                self._documents.move_to_end(revision)
                return self._documents[revision]
            if revision == self.history.root:
                made = OnnxDocument.of(source)
            else:
                step = self.history.revisions[revision]
                made = apply(self.document(source, step.parent), step.edit)
            return self.hold(revision, made)

    def hold(self, revision: str, document: OnnxDocument) -> OnnxDocument:
        """Keep the document of a revision ready."""
        with self.lock:
            self._documents[revision] = document
            while len(self._documents) > _DOCUMENTS:
                self._documents.popitem(last=False)
            return document


class Revisions:
    """Every edited file by the digest it was opened with; histories are written after each change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"
        self._editings: dict[str, Editing] = {}
        self._lock = threading.Lock()
        folder.mkdir(mode=0o700, exist_ok=True)
        self.files.mkdir(mode=0o700, exist_ok=True)
        for path in sorted(folder.glob("*.json")):
            self._load(path)

    def of(self, digest: str, path: str, quick: str) -> Editing:
        """The edits of a file, none where it was never edited."""
        with self._lock:
            found = self._editings.get(digest)
            if found is None:
                found = self._editings[digest] = Editing(path, quick, History.of(digest))
            found.path, found.quick = path, quick
            return found

    def edited(self, digest: str) -> Editing | None:
        """The edits of a file where there are any."""
        found = self._editings.get(digest)
        return found if found is not None and found.history.revisions else None

    def find(self, quick: str) -> tuple[Editing, str] | None:
        """The edited file and revision that were shown under a quick identity."""
        for editing in list(self._editings.values()):
            for revision, shown in editing.shown.items():
                if shown == quick:
                    return editing, revision
        return None

    def keep(self, editing: Editing) -> None:
        """Write a history; a crash leaves the old one or the new one.

        Raises:
            OSError: if the state folder cannot be written.
        """
        data = {
            "path": editing.path,
            "quick": editing.quick,
            "shown": editing.shown,
            "history": json.loads(editing.history.dump()),
        }
        target = self.folder / f"{editing.history.root}.json"
        beside = target.with_suffix(f".{secrets.token_hex(4)}.part")
        with open(beside, "x", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            json.dump(data, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)

    def written(self, revision: str) -> Path:
        """Where a revision is written for runs; the oldest ones make room."""
        found = sorted(self.files.glob("*.onnx"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in found[_FILES:]:
            for path in (old, *self.files.glob(f"{old.name}*.data")):
                path.unlink(missing_ok=True)
        return self.files / f"{revision}.onnx"

    def _load(self, path: Path) -> None:
        try:
            data: dict[str, Any] = json.loads(path.read_text("utf-8"))
            history = History.load(json.dumps(data["history"]))
            if history.root != path.stem:
                raise BrokenFile("is the history of another file", path=str(path))
            shown = {str(key): str(value) for key, value in data["shown"].items()}
            self._editings[history.root] = Editing(str(data["path"]), str(data["quick"]), history, shown)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, BrokenFile) as error:
            aside = path.with_suffix(f".damaged-{int(time.time())}")
            logger("edits").warning("the history of edits %s is damaged and was set aside: %s", path.name, error)
            path.replace(aside)
