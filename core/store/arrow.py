"""Columns as Arrow arrays, the only way rows enter the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

pa: Final[Any] = pyarrow

INT64_MAX: Final = (1 << 63) - 1


def texts(items: Sequence[str]) -> Any:
    """An Arrow string column; what UTF-8 cannot hold becomes ``?`` (lone surrogates of a damaged file)."""
    try:
        return pa.array(items, pa.string())
    except UnicodeEncodeError:
        return pa.array([item.encode("utf-8", "replace").decode("utf-8") for item in items], pa.string())


def coded(codes: NDArray[Any], strings: Sequence[str]) -> Any:
    """A string column from codes into ``strings``; a negative code is null."""
    known = codes >= 0
    indices = pa.array(codes.astype(np.int32), mask=None if known.all() else ~known)
    return pa.DictionaryArray.from_arrays(indices, texts(strings))


def lists(offsets: NDArray[np.int32], items: Any, missing: NDArray[np.bool_] | None = None) -> Any:
    """A list column from CSR offsets and a flat column; ``missing`` rows are null."""
    mask = None if missing is None or not missing.any() else pa.array(missing)
    return pa.ListArray.from_arrays(pa.array(np.ascontiguousarray(offsets, np.int32)), pa.array(items), mask=mask)


def rows_of_ints(rows: Iterable[Sequence[int]]) -> Any:
    """A list column of 64-bit integers from Python sequences."""
    return pa.array([[clamp(x) for x in row] for row in rows], pa.list_(pa.int64()))


def clamp(number: int) -> int:
    """The number, or the largest that 64 bits hold."""
    return min(number, INT64_MAX)


def constant(value: object, count: int, kind: str) -> Any:
    """A column that repeats one value."""
    return pa.repeat(pa.scalar(value, getattr(pa, kind)()), count)


def insert(cursor: Any, into: str, table: Any) -> None:
    """Append an Arrow table to a database table; ``into`` is a name from our own code."""
    if table.num_rows == 0:
        return
    cursor.register("incoming", table)
    try:
        cursor.execute(f'INSERT INTO "{into}" BY NAME SELECT * FROM incoming')  # noqa: S608
    finally:
        cursor.unregister("incoming")
