"""What persons changed about the regions of a model, and node data that they brought, by artifact."""

from __future__ import annotations

import json
import time

from core.errors import NotFound, UsageError
from core.store.artifacts import Artifacts
from core.store.database import Database
from core.structure.edits import RegionEdit, edit_from_json

MOST = 10_000
"""Edits of one model."""


class Regions:
    """Region edits and node data that the database knows."""

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        self._database = database
        self._artifacts = artifacts

    def edits(self, artifact: str) -> tuple[RegionEdit, ...]:
        """Edits of a model, oldest first."""
        rows = self._database.rows(
            "SELECT edit FROM region_edits WHERE artifact = ? ORDER BY changed_at, row",
            self._artifacts.find(artifact).key,
        )
        return tuple(edit_from_json(json.loads(row[0])) for row in rows)

    def add(self, artifact: str, edit: RegionEdit, actor: str) -> None:
        """Keep one more edit.

        Raises:
            UsageError: if the model has too many.
        """
        key, row = self._artifacts.find(artifact).key, len(self.edits(artifact))
        if row >= MOST:
            raise UsageError(f"this model has {row:,} region edits", hint="Reset some first.")
        with self._database.writing() as cursor:
            cursor.execute(
                "INSERT INTO region_edits VALUES (?, ?, ?, ?, ?)",
                [key, row, json.dumps(edit.to_json()), actor, time.time()],
            )

    def reset(self, artifact: str, region: str = "") -> int:
        """Forget the edits that name this region, all where none is given; returns how many."""
        key, before = self._artifacts.find(artifact).key, self.edits(artifact)
        kept = [edit for edit in before if region and region not in edit.regions]
        with self._database.writing() as cursor:
            cursor.execute("DELETE FROM region_edits WHERE artifact = ?", [key])
            for row, edit in enumerate(kept):
                cursor.execute(
                    "INSERT INTO region_edits VALUES (?, ?, ?, ?, ?)",
                    [key, row, json.dumps(edit.to_json()), "", float(row)],
                )
        return len(before) - len(kept)

    # --- node data ----------------------------------------------------------------------

    def node_data(self, artifact: str) -> list[str]:
        """Names of the node data of a model."""
        rows = self._database.rows(
            "SELECT DISTINCT name FROM node_data WHERE artifact = ? ORDER BY name", self._artifacts.find(artifact).key
        )
        return [str(row[0]) for row in rows]

    def node_data_text(self, artifact: str, name: str) -> str:
        """The JSON of that name.

        Raises:
            NotFound: if there is none.
        """
        row = self._database.row(
            "SELECT data FROM node_data WHERE artifact = ? AND name = ? ORDER BY changed_at DESC",
            self._artifacts.find(artifact).key, name,
        )  # fmt: skip
        if row is None:
            raise NotFound(f"no node data is called {name[:80]!r}")
        return str(row[0])

    def put_node_data(self, artifact: str, name: str, text: str | None) -> None:
        """Keep the JSON under a name, or take it back with ``None``."""
        key = self._artifacts.find(artifact).key
        with self._database.writing() as cursor:
            cursor.execute("DELETE FROM node_data WHERE artifact = ? AND name = ?", [key, name])
            if text is not None:
                cursor.execute("INSERT INTO node_data VALUES (?, ?, ?, ?)", [key, name, text, time.time()])
