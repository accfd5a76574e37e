"""Traces: what was run, under which limits and consent, and what every value came out as."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.errors import NotFound
from core.ir import Finding
from core.store import listings, stats_rows
from core.store.arrow import constant, insert, pa, rows_of_ints, texts
from core.store.artifacts import Artifacts
from core.store.database import Database
from core.store.paging import FILE_ORDER, Page, Pager, Query
from core.trace.types import Approval, NodeTiming, RunInput, RunLimits, TracedValue, TraceRequest, TraceResult


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One run as kept: everything but its values and node latencies.

    Attributes:
        artifact: id of the model.
        created_at, approved_at: seconds since 1970.
        values, nodes: how many of each were recorded.
    """

    id: str
    artifact: str
    created_at: float
    actor: str
    approved_at: float
    fingerprint: str
    engine: str
    provider: str
    status: str
    reason: str
    elapsed_s: float
    peak_rss_bytes: int
    optimisation: str
    latency_optimisation: str
    inputs: tuple[RunInput, ...]
    limits: RunLimits
    held: dict[str, str]
    findings: tuple[Finding, ...]
    values: int
    nodes: int


_SELECT: Final = (
    "SELECT t.id, coalesce(a.digest, (SELECT max(quick) FROM locations WHERE artifact = a.key), ''), t.created_at, "
    "t.actor, t.approved_at, t.fingerprint, t.engine, t.provider, t.status, t.reason, t.elapsed_s, t.peak_rss_bytes, "
    "t.optimisation, t.latency_optimisation, t.inputs, t.limits, t.held, t.findings, "
    "(SELECT count(*) FROM trace_values AS v WHERE v.trace = t.id), "
    "(SELECT count(*) FROM trace_nodes AS n WHERE n.trace = t.id) "
    "FROM traces AS t LEFT JOIN artifacts AS a ON a.key = t.artifact "
)
_VALUES: Final = (
    "SELECT s.id, s.name, s.node, s.dtype, s.shape, s.step, s.start, s.stop, s.reason, "  # noqa: S608
    f"{stats_rows.SELECT} FROM trace_values AS s WHERE s.trace = ?"
)


class Traces:
    """The runs the database knows."""

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        self._database = database
        self._artifacts = artifacts
        self.values = Pager(database, listings.TRACE_VALUES)
        self.nodes = Pager(database, listings.TRACE_NODES)

    def put_trace(
        self,
        trace: str,
        artifact: str,
        request: TraceRequest,
        approval: Approval,
        result: TraceResult,
        *,
        now: float | None = None,
    ) -> None:
        """Keep one run in one transaction; a run of the same id is replaced."""
        head = [
            trace, self._artifacts.find(artifact).key, time.time() if now is None else now, approval.actor,
            approval.at, approval.fingerprint, result.engine, result.provider, result.status, result.reason,
            result.elapsed_s, result.peak_rss_bytes, result.optimisation, result.latency_optimisation,
            json.dumps([asdict(i) for i in result.inputs or request.inputs]), json.dumps(asdict(request.limits)),
            json.dumps(result.held), json.dumps([asdict(f) for f in result.findings]),
        ]  # fmt: skip
        with self._database.writing() as cursor:
            self._delete(cursor, trace)
            cursor.execute(f"INSERT INTO traces VALUES ({', '.join('?' * len(head))})", head)  # noqa: S608
            insert(cursor, "trace_values", _value_rows(trace, result.values))
            insert(cursor, "trace_nodes", _node_rows(trace, result.nodes))
        self._forget_orders(trace)

    def record(self, trace: str) -> TraceRecord:
        """The run of that id.

        Raises:
            NotFound: if there is none.
        """
        row = self._database.row(_SELECT + "WHERE t.id = ?", trace)
        if row is None:
            raise NotFound(f"no trace is known as {trace[:80]!r}")
        return _record(row)

    def of_artifact(self, artifact: str, limit: int = 200) -> list[TraceRecord]:
        """Runs of one model, newest first."""
        key = self._artifacts.find(artifact).key
        rows = self._database.rows(
            _SELECT + "WHERE t.artifact = ? ORDER BY t.created_at DESC, t.id LIMIT ?", key, limit
        )
        return [_record(row) for row in rows]

    def values_page(self, trace: str, query: Query = FILE_ORDER, **window: Any) -> Page:
        """A page of the values of a run with their statistics."""
        return self.values.page(trace, query, **window)

    def nodes_page(self, trace: str, query: Query = FILE_ORDER, **window: Any) -> Page:
        """A page of the node latencies of a run."""
        return self.nodes.page(trace, query, **window)

    def depth(self, trace: str) -> Any:
        """All values of a run in the order of execution, without histograms, as an Arrow table."""
        listing = listings.TRACE_VALUES
        shown = ", ".join(f'{sql} AS "{name}"' for name, sql in listing.visible.items() if name != "histogram")
        return self._database.table(
            f"SELECT {shown} FROM {listing.rows} WHERE s.trace = ? ORDER BY s.row",  # noqa: S608
            trace,
        )

    def value(self, trace: str, value: str, step: int = 0) -> TracedValue:
        """One value of a run.

        Raises:
            NotFound: if the run has no such value.
        """
        row = self._database.row(f"{_VALUES} AND s.id = ? AND s.step = ? ORDER BY s.row", trace, value, step)
        if row is None:
            raise NotFound(f"trace {trace[:80]!r} has no value {value[:80]!r} at step {step}")
        return _value(row)

    def all_values(self, trace: str) -> list[TracedValue]:
        """Every value of a run with its statistics, in the order of execution."""
        return [_value(row) for row in self._database.rows(f"{_VALUES} ORDER BY s.row", trace)]

    def place_value(self, trace: str, value: str, step: int, start: int, stop: int) -> None:
        """Say where the elements of a value lie that were fetched after the run."""
        with self._database.writing() as cursor:
            cursor.execute(
                "UPDATE trace_values SET start = ?, stop = ?, reason = '' WHERE trace = ? AND id = ? AND step = ?",
                [start, stop, trace, value, step],
            )
        self._forget_orders(trace)

    def stored(self, trace: str) -> int:
        """How many values of a run have their elements on disk."""
        row = self._database.row("SELECT count(*) FROM trace_values WHERE trace = ? AND start >= 0", trace)
        return 0 if row is None else int(row[0])

    def steps(self, trace: str, value: str) -> list[int]:
        """The executions of its graph in which a value was captured, e.g. iterations of a loop."""
        rows = self._database.rows(
            "SELECT DISTINCT step FROM trace_values WHERE trace = ? AND id = ? ORDER BY step", trace, value
        )
        return [row[0] for row in rows]

    def forget(self, trace: str) -> None:
        """Remove one run."""
        with self._database.writing() as cursor:
            self._delete(cursor, trace)
        self._forget_orders(trace)

    def _delete(self, cursor: Any, trace: str) -> None:
        cursor.execute("DELETE FROM traces WHERE id = ?", [trace])
        for table in ("trace_values", "trace_nodes"):
            cursor.execute(f"DELETE FROM {table} WHERE trace = ?", [trace])  # noqa: S608

    def _forget_orders(self, trace: str) -> None:
        self.values.forget(trace)
        self.nodes.forget(trace)


def _record(row: Sequence[Any]) -> TraceRecord:
    inputs, limits, held, findings, values, nodes = row[14:]
    return TraceRecord(
        *row[:14],
        inputs=tuple(_input(item) for item in json.loads(inputs)),
        limits=RunLimits(**json.loads(limits)),
        held=json.loads(held),
        findings=tuple(Finding(**f) for f in json.loads(findings)),
        values=values,
        nodes=nodes,
    )


def _value(row: Sequence[Any]) -> TracedValue:
    id_, name, node, dtype, shape, at, start, stop, reason = row[:9]
    return TracedValue(id_, name, node, dtype, tuple(shape), stats_rows.from_row(row[9:]), at, start, stop, reason)


def _input(item: dict[str, Any]) -> RunInput:
    item["shape"] = tuple(item["shape"])
    return RunInput(**item)


def _value_rows(trace: str, values: Sequence[TracedValue]) -> Any:
    return pa.table(
        {
            "trace": constant(trace, len(values), "string"),
            "row": pa.array(range(len(values)), pa.int32()),
            **{name: texts([getattr(v, name) for v in values]) for name in ("id", "name", "node", "dtype", "reason")},
            "step": pa.array([v.step for v in values], pa.int32()),
            "shape": rows_of_ints(v.shape for v in values),
            "start": pa.array([v.start for v in values], pa.int64()),
            "stop": pa.array([v.stop for v in values], pa.int64()),
            **stats_rows.columns([v.stats for v in values]),
        }
    )


def _node_rows(trace: str, nodes: Sequence[NodeTiming]) -> Any:
    return pa.table(
        {
            "trace": constant(trace, len(nodes), "string"),
            "row": pa.array(range(len(nodes)), pa.int32()),
            **{name: texts([getattr(n, name) for n in nodes]) for name in ("id", "name", "op_type", "provider")},
            "latency_us": pa.array([n.latency_us for n in nodes], pa.float64()),
        }
    )
