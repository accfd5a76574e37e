"""The revisions of one artifact: a tree of committed edits with a place to stand, kept as text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from core.edits.kinds import Edit, from_json, script, to_json
from core.errors import BrokenFile, NotFound, UsageError

VERSION: Final = 1
MOST: Final = 10_000
"""Revisions of one artifact."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One committed edit on top of a parent.

    Attributes:
        id: 64 hex digits over the parent's id and the edit, so that the same edits give the same id.
        parent: the id it was made from; the artifact's digest for the first.
        name: what the person calls it, may be empty.
    """

    id: str
    parent: str
    edit: Edit
    name: str = ""


@dataclass(frozen=True)
class History:
    """Revisions of an artifact. A change makes another history.

    Attributes:
        root: digest of the artifact as opened.
        revisions: by id.
        head: the id that is shown; ``root`` where nothing is edited.
        undone: heads that were left by undo, the nearest last.
        saved: the id that was last written to a file, ``root`` at the beginning.
    """

    root: str
    revisions: Mapping[str, Revision] = field(default_factory=dict[str, Revision])
    head: str = ""
    undone: tuple[str, ...] = ()
    saved: str = ""

    @staticmethod
    def of(root: str) -> History:
        """The history of an artifact nobody edited yet."""
        return History(root, {}, root, (), root)

    @property
    def dirty(self) -> bool:
        """Whether what is shown differs from what was last written."""
        return self.head != self.saved

    def chain(self, revision: str | None = None) -> list[Revision]:
        """The revisions from the root to ``revision`` (the head), oldest first.

        Raises:
            NotFound: if there is no such revision.
        """
        at, found = self.head if revision is None else self.resolve(revision), list[Revision]()
        while at != self.root:
            found.append(self.revisions[at])
            at = self.revisions[at].parent
        return found[::-1]

    def edits(self, revision: str | None = None) -> list[Edit]:
        """The edits from the root to ``revision`` (the head)."""
        return [item.edit for item in self.chain(revision)]

    def script(self, revision: str | None = None) -> str:
        """The same as an edit script."""
        return script(self.edits(revision))

    def committed(self, edit: Edit) -> History:
        """With one more edit on top of the head; what was undone before it becomes a branch."""
        edit = from_json(to_json(edit))  # whole numbers where fractions may stand are written as such
        made = revision_id(self.head, edit)
        if made not in self.revisions and len(self.revisions) >= MOST:
            raise UsageError(f"an artifact keeps at most {MOST} revisions", hint="Save the file and open it anew.")
        revisions = {**self.revisions, made: self.revisions.get(made) or Revision(made, self.head, edit)}
        return replace(self, revisions=revisions, head=made, undone=())

    def undo(self) -> History:
        """One edit back.

        Raises:
            UsageError: if nothing is left to undo.
        """
        if self.head == self.root:
            raise UsageError("there is nothing to undo")
        return replace(self, head=self.revisions[self.head].parent, undone=(*self.undone, self.head))

    def redo(self) -> History:
        """Forward again to what was undone last.

        Raises:
            UsageError: if nothing was undone.
        """
        if not self.undone:
            raise UsageError("there is nothing to redo")
        return replace(self, head=self.undone[-1], undone=self.undone[:-1])

    def at(self, revision: str) -> History:
        """Standing at another revision, such as one of another branch."""
        return replace(self, head=self.resolve(revision), undone=())

    def named(self, revision: str, name: str) -> History:
        """With a name for a revision."""
        found = self.resolve(revision)
        if found == self.root:
            raise UsageError("the opened file has its own name")
        return replace(self, revisions={**self.revisions, found: replace(self.revisions[found], name=name)})

    def written(self) -> History:
        """With the head as what was last saved."""
        return replace(self, saved=self.head)

    def recovered(self) -> History:
        """As read back after a crash: what is edited counts as not saved."""
        return replace(self, saved=self.root)

    def children(self, revision: str) -> list[Revision]:
        """Revisions made from one."""
        return [item for item in self.revisions.values() if item.parent == revision]

    def resolve(self, revision: str) -> str:
        """The full id of a revision said by id, its beginning, or name.

        Raises:
            NotFound: if there is none, or several begin like that.
        """
        known = [self.root, *self.revisions]
        if revision in known:
            return revision
        begun = [item for item in known if len(revision) >= 6 and item.startswith(revision)]
        begun += [item.id for item in self.revisions.values() if revision and item.name == revision]
        if len(set(begun)) != 1:
            raise NotFound(
                f"there is no revision {revision[:200]!r}" if not begun else f"several revisions match {revision!r}"
            )
        return begun[0]

    # --- as text -------------------------------------------------------------------------

    def dump(self) -> str:
        """The history as JSON text."""
        rows = [
            {"id": item.id, "parent": item.parent, "edit": to_json(item.edit), "name": item.name}
            for item in self.revisions.values()
        ]
        kept = {"version": VERSION, "root": self.root, "head": self.head, "saved": self.saved, "undone": self.undone}
        return json.dumps({**kept, "revisions": rows}, ensure_ascii=False, indent=1)

    @staticmethod
    def load(text: str) -> History:
        """A history out of its text, checked link by link.

        Raises:
            BrokenFile: if it is damaged; it can be set aside and begun anew.
        """
        try:
            found = cast(dict[str, Any], json.loads(text))
            if found["version"] != VERSION:
                raise BrokenFile(
                    "was written by another version", field="version", expected=VERSION, found=found["version"]
                )
            history = History.of(_id(found["root"]))
            revisions = dict[str, Revision]()
            for row in cast(list[dict[str, Any]], found["revisions"])[:MOST]:
                edit = from_json(row["edit"])
                parent = row["parent"]
                if parent != history.root and parent not in revisions:
                    raise BrokenFile("a revision has no parent", field="parent", found=str(parent)[:80])
                if revision_id(parent, edit) != row["id"]:
                    raise BrokenFile(
                        "a revision does not bear the id of its edit", field="id", found=str(row["id"])[:80]
                    )
                revisions[row["id"]] = Revision(row["id"], parent, edit, str(row.get("name", "")))
            history = replace(history, revisions=revisions)
            undone = tuple(history.resolve(str(item)) for item in found.get("undone", ()))
            return replace(
                history, head=history.resolve(found["head"]), saved=history.resolve(found["saved"]), undone=undone
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as error:
            raise BrokenFile(f"the history of edits cannot be read: {error}") from None


def revision_id(parent: str, edit: Edit) -> str:
    """The id of an edit on top of a parent: SHA-256 over both, 64 hex digits."""
    text = json.dumps(to_json(edit), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(f"{parent}\n{text}".encode()).hexdigest()


def _id(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("the root is no digest")
    return value
