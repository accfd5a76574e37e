"""Pages of the database as data frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.store.paging import Page, Query

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class TablePage:
    """Some rows of a table.

    Attributes:
        rows: the rows in the order asked for.
        total: rows of the whole table under its filter.
        start: place of the first row.
        next: give it as ``after`` for the rows that follow; ``None`` at the end.
    """

    rows: pd.DataFrame
    total: int
    start: int
    next: int | None


def query(sort: str, descending: bool, text: str, **equal: str) -> Query:
    """A query; empty values of ``equal`` do not filter."""
    return Query(sort, descending, text, tuple((name, value) for name, value in equal.items() if value))


def page(found: Page) -> TablePage:
    """A page with its rows as a data frame; list columns hold Python lists."""
    return TablePage(frame(found.rows), found.total, found.start, found.next)


def frame(table: Any) -> pd.DataFrame:
    """An Arrow table as a data frame; list columns hold Python lists."""
    import pyarrow as pa

    out: pd.DataFrame = table.to_pandas()
    for field in table.schema:
        if pa.types.is_list(field.type):
            out[field.name] = table.column(field.name).to_pylist()
    return out
