"""Tables: numbers as csv and pyarrow have them, text refused, no other file seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import BrokenFile, ModelError, NotFound, UnreadableFile, UsageError
from core.inputs import table
from core.inputs.produce import produce
from core.inputs.recipe import Recipe


def read(path: Path | str, **options: Any) -> np.ndarray:
    return produce(Recipe("table", options={"path": str(path), **options})).array


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "it's data.csv"
    path.write_text("a;b;name\n1;2.5;x\n3;-4e3;y\n5;0.1;z\n")
    return path


def test_columns_rows_and_axes(csv: Path) -> None:
    whole = np.array([[1, 2.5], [3, -4000], [5, 0.1]], np.float32)
    np.testing.assert_array_equal(read(csv, columns="a, b"), whole[None])
    np.testing.assert_array_equal(read(csv, columns="b,a", batch=False), whole[:, ::-1])
    np.testing.assert_array_equal(read(csv, columns="a,b", skip=1, rows=1, transpose=True), whole[1:2].T[None])
    np.testing.assert_array_equal(read(csv, columns="a,b", delimiter=";", header="yes"), whole[None])
    assert read(csv, columns="a", dtype="int64").dtype == np.int64


def test_parquet_keeps_whole_numbers_exact(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2**60 + 1], "y": [True, False]}), tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet", columns="x", dtype="int64").tolist() == [[[1], [2**60 + 1]]]
    assert read(tmp_path / "t.parquet", columns="y", dtype="bool").tolist() == [[[True], [False]]]


def test_no_header(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    assert read(tmp_path / "t.csv", header="no", batch=False).tolist() == [[1, 2], [3, 4]]
    assert read(tmp_path / "t.csv", header="yes", batch=False).tolist() == [[3, 4]]


def test_text_and_missing_columns_are_refused(csv: Path) -> None:
    with pytest.raises(UsageError, match=r"column 'name' holds text, not numbers\. Name the columns with numbers\."):
        read(csv)
    with pytest.raises(NotFound, match=r"has no column 'c'\. It has a, b, name"):
        read(csv, columns="a,c")
    with pytest.raises(UsageError, match="no rows left"):
        read(csv, columns="a", skip=3)
    with pytest.raises(UsageError, match="expected one character"):
        read(csv, delimiter=";;")


def test_empty_cells(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,\n")
    with pytest.raises(UsageError, match="column 'b' has an empty cell in row 2"):
        read(tmp_path / "t.csv")
    assert read(tmp_path / "t.csv", missing="zero").tolist() == [[[1, 2], [3, 0]]]
    assert np.isnan(read(tmp_path / "t.csv", missing="nan")[0, 1, 1])


def test_only_that_one_file_is_seen(csv: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    connection = table._connection(csv)
    assert len(connection.execute("SELECT * FROM read_csv(?)", [str(csv)]).fetchall()) == 3
    for query in (f"SELECT * FROM read_csv('{other}')", f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
                  "SET enable_external_access = true", f"ATTACH '{tmp_path}/x.db'"):  # fmt: skip
        with pytest.raises(duckdb.Error):
            connection.execute(query)
    connection.close()


@pytest.mark.parametrize("name", ["*.csv", "t?.csv", "t[1].csv"])
def test_a_pattern_is_no_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "t1.csv").write_text("a\n1\n")
    with pytest.raises(UnreadableFile):
        read(tmp_path / name)
    (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(UnreadableFile, match="would match other files"):
        read(tmp_path / name)


@pytest.mark.parametrize("data", [b"PAR1" + bytes(100), b"\0\xff\xfe" * 100, b"PAR1PAR1", b""])
def test_damaged_tables_are_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises((BrokenFile, UsageError)) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.csv", "", "http://example.org/x.csv"):
        with pytest.raises(ModelError):
            read(path)
