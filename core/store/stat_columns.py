"""Statistics of many tensors as columns, for charts: all of them, or an even sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.errors import UsageError
from core.store import listings
from core.store.paging import FILE_ORDER, Query
from core.store.store import Store

MOST: Final = 20_000
"""Tensors that one chart shows."""

_ALWAYS: Final = ("idx", "name", "dtype")


@dataclass(frozen=True, slots=True)
class StatColumns:
    """Tensors that have every statistic asked for.

    Attributes:
        rows: Arrow table in file order with ``idx``, ``name``, ``dtype`` and the columns asked for.
        total: how many such tensors there are.
        sampled: whether ``rows`` is an even sample of them.
    """

    rows: Any
    total: int
    sampled: bool


def stat_columns(
    store: Store, artifact: str, names: Sequence[str], query: Query = FILE_ORDER, *, most: int = MOST
) -> StatColumns:
    """Columns of the tensor table where all of ``names`` are known, at most ``most`` rows, evenly spaced.

    Args:
        names: columns by which tensors can be sorted, e.g. ``bytes``, ``std``, ``q500``.
        query: a filter; its order is not used.

    Raises:
        UsageError: for a column that is not there or cannot be put on an axis.
    """
    listing = listings.TENSORS
    unknown = [name for name in names if name not in listing.sorts]
    if unknown:
        raise UsageError(
            f"{unknown[0]!r} is not a number of the tensor table", hint=f"Known are {', '.join(listing.sorts)}."
        )
    where, parameters = store.artifacts.tensors.where(store.artifacts.find(artifact).key, query)
    wanted = {name: listing.visible.get(name, listing.sorts[name]) for name in dict.fromkeys((*_ALWAYS, *names))}
    shown = ", ".join(f'{sql} AS "{name}"' for name, sql in wanted.items())
    known = " AND ".join(f"({wanted[name]}) IS NOT NULL" for name in names) or "true"
    inner = (
        f"SELECT {shown}, row_number() OVER (ORDER BY t.idx) - 1 AS place, count(*) OVER () AS total "  # noqa: S608
        f"FROM {listing.source(*wanted.values())} WHERE {where} AND {known}"
    )
    table = store.database.table(
        f"SELECT * FROM ({inner}) WHERE place % ((total + ? - 1) // ?) = 0 ORDER BY place",  # noqa: S608
        *parameters, most, most,
    )  # fmt: skip
    total = int(table.column("total")[0].as_py()) if table.num_rows else 0
    return StatColumns(table.drop_columns(["place", "total"]), total, table.num_rows < total)
