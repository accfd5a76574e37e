"""Pages of long tables: the order is found once as ids, a page then fetches only its rows.

Nothing is skipped with OFFSET. The order of a listing is an array of row ids in memory, found
for the first rows and extended by factors when a later page is asked for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError
from core.limits import check
from core.store.arrow import pa
from core.store.database import Database

FIRST: Final = 1024
"""Ids found for the first page of an order: few enough for a heap instead of a full sort."""

GROWTH: Final = 8
PAGE: Final = 10_000
"""Rows one page may have."""

AHEAD: Final = 4096
"""Rows read at once for who pages on: 40 pages for the price of two."""

AHEADS: Final = 4
"""Orders whose rows are kept read ahead, about 3 MB each with histograms."""

ORDERS: Final = 32
"""Orders kept in memory; one over a million rows takes 4 MB."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A table as people page through it; all texts here are our own SQL.

    Attributes:
        rows: what stands after FROM, with alias ``t`` or joined statistics ``s``.
        owner: the column that a page is restricted to.
        key: integer column that numbers the rows of one owner.
        visible: SQL expression by column of a page.
        sorts: SQL expression by sort name.
        text: column that a text filter looks into.
        equals: columns that may be compared for equality, by name.
        base: ``rows`` without the joined table, where there is one; its expressions begin with ``t.``
            or do not mention ``s.``.
    """

    rows: str
    owner: str
    key: str
    visible: Mapping[str, str]
    sorts: Mapping[str, str]
    text: str
    equals: Mapping[str, str]
    base: str = ""

    def source(self, *expressions: str) -> str:
        """What to select from: without the join where no expression needs it."""
        return self.base if self.base and not any("s." in e for e in expressions) else self.rows


@dataclass(frozen=True, slots=True)
class Query:
    """Order and filter of a listing, hashable.

    Attributes:
        sort: a name of ``Listing.sorts``; empty for file order.
        text: part of a name, upper and lower case alike.
        equal: pairs of column name and value.
    """

    sort: str = ""
    descending: bool = False
    text: str = ""
    equal: tuple[tuple[str, str], ...] = ()


FILE_ORDER: Final = Query()


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a listing.

    Attributes:
        rows: Arrow table in the order asked for.
        total: rows of the whole listing under its filter.
        start: place of the first row within it.
        next: key to give as ``after`` for the rows that follow, ``None`` at the end.
    """

    rows: Any
    total: int
    start: int
    next: int | None


@dataclass(frozen=True, slots=True)
class _Ahead:
    columns: tuple[str, ...]
    start: int
    rows: Any


@dataclass(slots=True)
class _Order:
    total: int
    ids: NDArray[np.int64]
    reached: int = -1
    ahead: _Ahead | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Pager:
    """Pages of one listing, with the orders of the last queries kept."""

    def __init__(self, database: Database, listing: Listing) -> None:
        self._database = database
        self._listing = listing
        self._orders: OrderedDict[tuple[int | str, Query], _Order] = OrderedDict()
        self._lock = threading.Lock()

    def page(
        self,
        owner: int | str,
        query: Query,
        *,
        after: int | None = None,
        start: int = 0,
        limit: int = 100,
        columns: Sequence[str] = (),
    ) -> Page:
        """Rows of ``owner`` behind the row with key ``after``, or from place ``start`` on.

        Args:
            columns: names of the visible columns wanted, all where left out.

        Raises:
            UsageError: for a sort or a column that this listing does not have.
            LimitExceeded: for more than ``PAGE`` rows at once.
        """
        check("the number of rows of a page", limit, PAGE)
        order = self._order(owner, query)
        with order.lock:
            if after is not None:
                start = self._place(owner, query, order, after) + 1
            start = min(max(start, 0), order.total)
            self._extend(owner, query, order, start + limit)
            stop = min(start + limit, len(order.ids))
            rows = self._rows(owner, query, order, start, stop, tuple(columns or self._listing.visible))
            following = int(order.ids[stop - 1]) if 0 < stop < order.total else None
        return Page(rows, order.total, start, following)

    def count(self, owner: int | str, query: Query) -> int:
        """Rows of ``owner`` under the filter."""
        return self._order(owner, query).total

    def place(self, owner: int | str, query: Query, key: int) -> int:
        """Where the row with that key stands in the order, -1 where the filter leaves it out."""
        order = self._order(owner, query)
        with order.lock:
            return self._place(owner, query, order, key)

    def forget(self, owner: int | str | None = None) -> None:
        """Drop the orders of one owner, or all: its rows or their statistics changed."""
        with self._lock:
            for kept in [k for k in self._orders if owner is None or k[0] == owner]:
                del self._orders[kept]

    def _order(self, owner: int | str, query: Query) -> _Order:
        kept = (owner, query)
        with self._lock:
            found = self._orders.get(kept)
            if found is not None:
                self._orders.move_to_end(kept)
                return found
        where, parameters = self.where(owner, query)
        row = self._database.row(f"SELECT count(*) FROM {self._listing.source()} WHERE {where}", *parameters)  # noqa: S608
        assert row is not None
        order = _Order(int(row[0]), np.empty(0, np.int64))
        with self._lock:
            order = self._orders.setdefault(kept, order)
            while len(self._orders) > ORDERS:
                self._orders.popitem(last=False)
        return order

    def _rows(
        self, owner: int | str, query: Query, order: _Order, start: int, stop: int, columns: tuple[str, ...]
    ) -> Any:
        """The rows at these places; the page after the last one brings many that follow with it."""
        ahead, follows = order.ahead, start == order.reached
        order.reached = stop
        if (
            ahead is None
            or ahead.columns != columns
            or not ahead.start <= start <= stop <= ahead.start + len(ahead.rows)
        ):
            if not follows or stop - start >= AHEAD:
                return self._fetch(owner, order.ids[start:stop], columns)
            self._extend(owner, query, order, start + AHEAD)
            ahead = order.ahead = _Ahead(columns, start, self._fetch(owner, order.ids[start : start + AHEAD], columns))
            with self._lock:
                kept = [o for o in self._orders.values() if o.ahead is not None and o is not order]
                for old in kept[: max(0, len(kept) - AHEADS + 1)]:
                    old.ahead = None
        return ahead.rows.slice(start - ahead.start, stop - start)

    def _extend(self, owner: int | str, query: Query, order: _Order, wanted: int) -> None:
        if len(order.ids) >= min(wanted, order.total):
            return
        size = FIRST
        while size < wanted:
            size *= GROWTH
        where, parameters = self.where(owner, query)
        by = self._by(query)
        rows, key = self._listing.source(by), self._listing.key
        sql = f"SELECT {key} AS k FROM {rows} WHERE {where} ORDER BY {by} LIMIT ?"  # noqa: S608
        order.ids = self._database.table(sql, *parameters, size).column("k").to_numpy().astype(np.int64)
        if len(order.ids) < size:
            order.total = len(order.ids)

    def _place(self, owner: int | str, query: Query, order: _Order, key: int) -> int:
        while True:
            found = np.flatnonzero(order.ids == key)
            if found.size:
                return int(found[0])
            if len(order.ids) >= order.total:
                return -1
            self._extend(owner, query, order, len(order.ids) + 1)

    def _fetch(self, owner: int | str, ids: NDArray[np.int64], columns: Sequence[str]) -> Any:
        listing = self._listing
        chosen = [self._known(listing.visible, name) for name in columns]
        shown = ", ".join(f'{sql} AS "{name}"' for name, sql in zip(columns, chosen, strict=True))
        sql = (
            f"SELECT {listing.key} AS paged_key, {shown} FROM {listing.source(*chosen)} "  # noqa: S608
            f"JOIN (SELECT unnest(?::INTEGER[]) AS wanted) ON {listing.key} = wanted "
            f"WHERE {listing.owner} = ? AND {listing.key} BETWEEN ? AND ?"  # lets row groups be skipped
        )
        ends = (int(ids.min()), int(ids.max())) if ids.size else (0, -1)
        table = self._database.table(sql, ids.tolist(), owner, *ends)
        rank = {key: place for place, key in enumerate(ids.tolist())}
        places = np.array([rank[key] for key in table.column("paged_key").to_pylist()], np.int64)
        return table.take(pa.array(np.argsort(places))).drop_columns(["paged_key"])

    def _by(self, query: Query) -> str:
        key = self._listing.key
        way = "DESC" if query.descending else "ASC"
        if not query.sort:
            return f"{key} {way}"
        return f"{self._known(self._listing.sorts, query.sort)} {way} NULLS LAST, {key}"

    def where(self, owner: int | str, query: Query) -> tuple[str, list[object]]:
        """The condition of a filter, as text of our own, and its parameters."""
        terms, parameters = [f"{self._listing.owner} = ?"], list[object]([owner])
        if query.text:
            terms.append(f"{self._listing.text} ILIKE ? ESCAPE '\\'")
            parameters.append(f"%{_escaped(query.text)}%")
        for name, value in query.equal:
            terms.append(f"{self._known(self._listing.equals, name)} = ?")
            parameters.append(value)
        return " AND ".join(terms), parameters

    def _known(self, names: Mapping[str, str], name: str) -> str:
        if name not in names:
            raise UsageError(f"{name!r} is not a column of this table", hint=f"Known are {', '.join(names)}.")
        return names[name]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
