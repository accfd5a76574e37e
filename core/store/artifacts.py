"""Artifacts and where they were opened; tensors, nodes and values of each; input recipes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.errors import NotFound
from core.ir import Model
from core.statistics.types import TensorStats
from core.store import listings, model_rows, stats_rows
from core.store.arrow import clamp, constant, insert, pa
from core.store.database import Database
from core.store.paging import FILE_ORDER, Page, Pager, Query

PREFIX: Final = 8
"""Characters of an id that are enough to name an artifact."""

_CONTENT: Final = ("tensors", "nodes", '"values"')
_KEPT: Final = ("region_edits", "node_data")


@dataclass(frozen=True, slots=True)
class Artifact:
    """One known file or folder, open or not.

    Attributes:
        key: number in this database.
        id: SHA-256 where known, else the quick identity of ``path``.
        quick: quick identity of the place it was last opened at.
        verdict: worst severity of its findings: ``error``, ``warning``, ``info`` or ``ok``.
        opened_at: seconds since 1970.
        uploaded: whether it lies in the state folder's uploads.
    """

    key: int
    id: str
    digest: str
    quick: str
    path: str
    format: str
    kind: str
    size_bytes: int
    files: int
    producer: str
    tensors: int
    nodes: int
    parameters: int
    verdict: str
    findings: int
    opened_at: float
    uploaded: bool

    @property
    def name(self) -> str:
        """File or folder name."""
        return self.path.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]


_SELECT: Final = (
    "SELECT a.key, coalesce(a.digest, l.quick), coalesce(a.digest, ''), l.quick, l.path, a.format, a.kind, "
    "a.size_bytes, a.files, a.producer, a.tensors, a.nodes, a.parameters, a.verdict, a.findings, l.opened_at, "
    "l.uploaded FROM artifacts AS a JOIN locations AS l ON l.artifact = a.key "
)


class Artifacts:
    """Everything the database knows about model files."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._keys: dict[str, int] = {}
        self.tensors = Pager(database, listings.TENSORS)
        self.nodes = Pager(database, listings.NODES)
        self.values = Pager(database, listings.VALUES)

    def put_model(self, quick: str, model: Model, *, uploaded: bool = False, now: float | None = None) -> Artifact:
        """Record an opened model under its quick identity; rewrites its rows only where they changed."""
        verdict, at = verdict_of(model), time.time() if now is None else now
        with self._database.writing() as cursor:
            known = self._database.row("SELECT artifact FROM locations WHERE quick = ?", quick)
            key = int(known[0]) if known else int(cursor.execute("SELECT nextval('artifact_keys')").fetchall()[0][0])
            content = _content(model, key)
            mark = model_rows.mark([table for _, table in content])
            before = self._database.row("SELECT mark, digest FROM artifacts WHERE key = ?", key)
            cursor.execute(
                f"INSERT OR REPLACE INTO artifacts VALUES ({', '.join('?' * 13)})",  # noqa: S608
                [
                    key, before[1] if before else None, model.format, model.kind, clamp(model.size_bytes),
                    len(model.sources), model.producer, len(model.tensors), model.node_count,
                    clamp(model.parameters), verdict, len(model.findings), mark,
                ],
            )  # fmt: skip
            cursor.execute(
                "INSERT OR REPLACE INTO locations VALUES (?, ?, ?, ?, ?)", [quick, key, model.path, at, uploaded]
            )
            if before is None or before[0] != mark:
                self._rewrite(cursor, key, content)
        return self.find(quick)

    def promote(self, quick: str, digest: str) -> Artifact:
        """Give an artifact its SHA-256; one that is already known under it takes over the location.

        Statistics, traces and recipes of both stay: what the older one lacks it gets.
        """
        with self._database.writing() as cursor:
            key = self.find(quick).key
            same = self._database.row("SELECT key FROM artifacts WHERE digest = ? AND key <> ?", digest, key)
            if same is None:
                cursor.execute("UPDATE artifacts SET digest = ? WHERE key = ?", [digest, key])
            else:
                self._merge(cursor, key, int(same[0]))
        return self.find(quick)

    def find(self, artifact: str) -> Artifact:
        """The artifact with that SHA-256, quick identity or unique beginning of at least 8 characters.

        Raises:
            NotFound: if none has it, or several.
        """
        if len(artifact) < PREFIX:
            raise NotFound(f"no model is known as {artifact[:80]!r}")
        rows = self._database.rows(
            _SELECT + "WHERE starts_with(l.quick, ?) OR starts_with(a.digest, ?) ORDER BY l.opened_at DESC LIMIT 100",
            artifact,
            artifact,
        )
        exact = [row for row in rows if artifact in (row[2], row[3])]
        found = exact or rows
        if not found:
            raise NotFound(f"no model is known as {artifact[:80]!r}", hint="Open the file again.")
        if len({row[0] for row in found}) > 1:
            raise NotFound(f"{artifact[:80]!r} is the beginning of several ids", hint="Give more characters.")
        return Artifact(*found[0])

    def recent(self, limit: int = 50) -> list[Artifact]:
        """Paths opened last, each once, newest first."""
        rows = self._database.rows(
            _SELECT + "QUALIFY row_number() OVER (PARTITION BY l.path ORDER BY l.opened_at DESC) = 1 "
            "ORDER BY l.opened_at DESC, l.quick LIMIT ?",
            limit,
        )
        return [Artifact(*row) for row in rows]

    def forget(self, artifact: str) -> list[str]:
        """Remove an artifact and all that hangs on it; returns the ids of its traces."""
        with self._database.writing() as cursor:
            key = self.find(artifact).key
            traces = [row[0] for row in self._database.rows("SELECT id FROM traces WHERE artifact = ?", key)]
            for table in (*_CONTENT, "tensor_stats", "assigned_inputs", *_KEPT, "locations", "traces"):
                cursor.execute(f"DELETE FROM {table} WHERE artifact = ?", [key])  # noqa: S608
            for table in ("trace_values", "trace_nodes"):
                cursor.execute(f"DELETE FROM {table} WHERE list_contains(?, trace)", [traces])  # noqa: S608
            cursor.execute("DELETE FROM artifacts WHERE key = ?", [key])
        self._forget_orders(key)
        return traces

    # --- tensors, nodes, values ---------------------------------------------------------

    def tensors_page(self, artifact: str, query: Query = FILE_ORDER, **window: Any) -> Page:
        """A page of tensors with their statistics where known; ``window`` as in ``Pager.page``."""
        return self.tensors.page(self._key(artifact), query, **window)

    def nodes_page(self, artifact: str, query: Query = FILE_ORDER, **window: Any) -> Page:
        """A page of the operators of all graphs."""
        return self.nodes.page(self._key(artifact), query, **window)

    def values_page(self, artifact: str, query: Query = FILE_ORDER, **window: Any) -> Page:
        """A page of the values of all graphs."""
        return self.values.page(self._key(artifact), query, **window)

    def tensor_facets(self, artifact: str) -> Any:
        """Tensors and bytes by dtype, encoding and role, largest first, as an Arrow table."""
        return self._database.table(
            "SELECT dtype, encoding, role, count(*) AS tensors, sum(bytes)::BIGINT AS bytes "
            "FROM tensors WHERE artifact = ? GROUP BY ALL ORDER BY bytes DESC, dtype, encoding, role",
            self._key(artifact),
        )

    # --- statistics ---------------------------------------------------------------------

    def put_stats(self, artifact: str, stats: Mapping[int, TensorStats]) -> None:
        """Keep statistics by tensor index; earlier ones of the same tensors are replaced."""
        key, indexes = self._key(artifact), list(stats)
        table = pa.table(
            {
                "artifact": constant(key, len(indexes), "int32"),
                "idx": pa.array(indexes, pa.int32()),
                **stats_rows.columns([stats[i] for i in indexes]),
            }
        )
        with self._database.writing() as cursor:
            cursor.execute(
                "DELETE FROM tensor_stats WHERE artifact = ? AND idx IN (SELECT unnest(?::INTEGER[]))", [key, indexes]
            )
            insert(cursor, "tensor_stats", table)
        self.tensors.forget(key)

    def stats(self, artifact: str, tensor: int) -> TensorStats | None:
        """The statistics of one tensor, ``None`` where they were not taken yet."""
        row = self._database.row(
            f"SELECT {stats_rows.SELECT} FROM tensor_stats AS s WHERE s.artifact = ? AND s.idx = ?",  # noqa: S608
            self._key(artifact),
            tensor,
        )
        return None if row is None else stats_rows.from_row(row)

    def with_stats(self, artifact: str) -> set[int]:
        """Indexes of the tensors whose statistics are known."""
        rows = self._database.rows("SELECT idx FROM tensor_stats WHERE artifact = ?", self._key(artifact))
        return {int(row[0]) for row in rows}

    # --- inputs -------------------------------------------------------------------------

    def assign_input(self, artifact: str, name: str, recipe: str | None) -> None:
        """Keep the recipe (JSON) of one input, or take it back with ``None``."""
        key = self._key(artifact)
        with self._database.writing() as cursor:
            cursor.execute("DELETE FROM assigned_inputs WHERE artifact = ? AND name = ?", [key, name])
            if recipe is not None:
                cursor.execute("INSERT INTO assigned_inputs VALUES (?, ?, ?)", [key, name, recipe])

    def assigned_inputs(self, artifact: str) -> dict[str, str]:
        """Recipes (JSON) by input name."""
        rows = self._database.rows(
            "SELECT name, recipe FROM assigned_inputs WHERE artifact = ? ORDER BY name", self._key(artifact)
        )
        return {str(name): str(recipe) for name, recipe in rows}

    def _key(self, artifact: str) -> int:
        key = self._keys.get(artifact)
        if key is None:
            found = self.find(artifact)
            key = found.key
            if artifact in (found.quick, found.digest):
                self._keys[artifact] = key
        return key

    def _rewrite(self, cursor: Any, key: int, content: Sequence[tuple[str, Any]]) -> None:
        for table in (*_CONTENT, "tensor_stats"):
            cursor.execute(f"DELETE FROM {table} WHERE artifact = ?", [key])  # noqa: S608
        for name, table in content:
            insert(cursor, name, table)
        self._forget_orders(key)

    def _merge(self, cursor: Any, new: int, old: int) -> None:
        cursor.execute(
            "UPDATE tensor_stats SET artifact = ? WHERE artifact = ? "
            "AND idx NOT IN (SELECT idx FROM tensor_stats WHERE artifact = ?)",
            [old, new, old],
        )
        cursor.execute(
            "UPDATE assigned_inputs SET artifact = ? WHERE artifact = ? "
            "AND name NOT IN (SELECT name FROM assigned_inputs WHERE artifact = ?)",
            [old, new, old],
        )
        for table in ("locations", "traces", *_KEPT):
            cursor.execute(f"UPDATE {table} SET artifact = ? WHERE artifact = ?", [old, new])  # noqa: S608
        for table in (*_CONTENT, "tensor_stats", "assigned_inputs"):
            cursor.execute(f"DELETE FROM {table} WHERE artifact = ?", [new])  # noqa: S608
        cursor.execute("DELETE FROM artifacts WHERE key = ?", [new])
        self._forget_orders(new)
        self._forget_orders(old)

    def _forget_orders(self, key: int) -> None:
        self._keys.clear()
        for pager in (self.tensors, self.nodes, self.values):
            pager.forget(key)


def verdict_of(model: Model) -> str:
    """The worst severity of its findings, ``ok`` where it has none."""
    found = {finding.severity for finding in model.findings}
    return next((severity for severity in ("error", "warning", "info") if severity in found), "ok")


def _content(model: Model, key: int) -> list[tuple[str, Any]]:
    out = [("tensors", model_rows.tensor_rows(model.tensors, key))]
    nodes = values = 0
    for graph in model.graphs:
        out.append(("nodes", model_rows.node_rows(graph, key, nodes)))
        out.append(("values", model_rows.value_rows(graph, key, values)))
        nodes, values = nodes + graph.node_count, values + graph.value_count
    return out
