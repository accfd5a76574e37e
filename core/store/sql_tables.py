"""The tables that a person's own SQL sees: copies of the store's, of the models given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.limits import check
from core.statistics.types import QUANTILES
from core.store.database import Database

ROWS: Final = 2_000_000
"""Rows of all tables of one query together."""

_STATS: Final[Mapping[str, str]] = {
    **{
        name: f"s.{name}"
        for name in (
            "count", "nan", "pos_inf", "neg_inf", "zero", "subnormal",
            "min", "max", "mean", "std", "absmax", "l1", "l2",
        )
    },
    **{f"q{int(q * 1000):03d}": f"s.quantiles[{i + 1}]" for i, q in enumerate(QUANTILES)},
    "exact": "s.exact",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SqlTable:
    """One table as a query sees it; all texts here are our own SQL.

    Attributes:
        about: what a row is.
        source: what stands after FROM.
        owner: the column that holds the key of the model.
        columns: SQL expression by name.
    """

    about: str
    source: str
    owner: str
    columns: Mapping[str, str]


def _of(alias: str, names: str) -> dict[str, str]:
    return {name: f"{alias}.{name}" for name in names.split()}


_TRACED: Final = "JOIN traces AS t ON t.id = s.trace"

TABLES: Final[Mapping[str, SqlTable]] = {
    "models": SqlTable(
        "one model", "artifacts AS a", "a.key",
        {
            "model": "a.key",
            "name": r"(SELECT regexp_extract(arg_max(path, opened_at), '[^/\\]+[/\\]?$') FROM locations "
            "WHERE artifact = a.key)",
            **_of("a", "format kind size_bytes files producer tensors nodes parameters verdict findings"),
        },
    ),
    "tensors": SqlTable(
        "one stored tensor", "tensors AS t", "t.artifact",
        {
            "model": "t.artifact", "tensor": "t.idx",
            **_of("t", "name dtype encoding shape elements bytes source start stop role graph quantized problem"),
        },
    ),
    "statistics": SqlTable(
        "one tensor whose statistics were taken",
        "tensor_stats AS s JOIN tensors AS t ON t.artifact = s.artifact AND t.idx = s.idx", "s.artifact",
        {"model": "s.artifact", "tensor": "s.idx", **_of("t", "name dtype"), **_STATS},
    ),
    "nodes": SqlTable(
        "one operator", "nodes AS n", "n.artifact",
        {
            "model": "n.artifact", "id": "'g' || n.graph || '.n' || n.idx",
            **_of("n", "graph row name op_type domain scope inputs outputs"),
        },
    ),
    "graph_values": SqlTable(
        "one value between operators", '"values" AS v', "v.artifact",
        {
            "model": "v.artifact", "id": "'g' || v.graph || '.v' || v.idx",
            **_of("v", "graph row name dtype shape producer consumers tensor is_input is_output"),
        },
    ),
    "traces": SqlTable(
        "one run", "traces AS t", "t.artifact",
        {
            "model": "t.artifact", "trace": "t.id", "created_at": "to_timestamp(t.created_at)::TIMESTAMP",
            **_of("t", "engine provider status reason elapsed_s peak_rss_bytes"),
        },
    ),
    "trace_values": SqlTable(
        "one value of a run", f"trace_values AS s {_TRACED}", "t.artifact",
        {
            "model": "t.artifact", **_of("s", "trace row id name node step dtype shape"),
            "stored": "s.start >= 0", **_STATS,
        },
    ),
    "trace_nodes": SqlTable(
        "one operator of a run", f"trace_nodes AS s {_TRACED}", "t.artifact",
        {"model": "t.artifact", **_of("s", "trace row id name op_type latency_us provider")},
    ),
}  # fmt: skip


def copies(database: Database, models: Sequence[int], text: str) -> dict[str, Any]:
    """Arrow copies by name, of the rows that belong to the models given; of tables that ``text`` does not
    name, only the columns.

    Raises:
        LimitExceeded: if they have more than ``ROWS`` rows together.
    """
    words = {word.lower() for word in re.findall(r"\w+", text)}
    named = [name for name in TABLES if name in words]
    total = sum(count(database, models, name) for name in named)
    check("the number of rows of the tables of this query", total, ROWS)
    return {name: _copy(database, models if name in named else (), name) for name in TABLES}


def count(database: Database, models: Sequence[int], name: str) -> int:
    """Rows of one table that belong to the models given."""
    table = TABLES[name]
    row = database.row(f"SELECT count(*) FROM {table.source} WHERE {_mine(table)}", list(models))  # noqa: S608
    assert row is not None
    return int(row[0])


def columns(database: Database, name: str) -> list[tuple[str, str]]:
    """Name and SQL type of each column of one table."""
    table = TABLES[name]
    rows = database.rows(f"DESCRIBE SELECT {_shown(table)} FROM {table.source}")  # noqa: S608
    return [(str(row[0]), str(row[1])) for row in rows]


def _copy(database: Database, models: Sequence[int], name: str) -> Any:
    table = TABLES[name]
    return database.table(
        f"SELECT {_shown(table)} FROM {table.source} WHERE {_mine(table)}",  # noqa: S608
        list(models),
    )


def _shown(table: SqlTable) -> str:
    return ", ".join(f'{sql} AS "{name}"' for name, sql in table.columns.items())


def _mine(table: SqlTable) -> str:
    return f"{table.owner} IN (SELECT unnest(?::INTEGER[]))"
