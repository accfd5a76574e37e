import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.errors import Cancelled, LimitExceeded, UsageError
from core.limits import MIB
from core.statistics.types import TensorStats
from core.store import sql, sql_tables
from core.store.sql import SqlLimits
from core.store.store import Store
from tests.store import made

TABLES = {
    "tensors": pa.table({"name": ["a", "b", "c"], "bytes": [30, 10, 20], "shape": [[1, 2], [], [3]]}),
    "nodes": pa.table({"op_type": ["Add", "Mul"]}),
}


def run(text: str, **limits):
    return sql.run(TABLES, text, SqlLimits(**{"seconds": 20.0, **limits}))


def test_a_select_over_the_tables() -> None:
    found = run("SELECT name, bytes * 2 AS twice, len(shape) AS rank FROM tensors ORDER BY bytes;")
    assert found.rows.to_pydict() == {"name": ["b", "c", "a"], "twice": [20, 40, 60], "rank": [0, 1, 2]}
    assert not found.cut
    assert run("WITH t AS (FROM tensors) SELECT count(*) AS n FROM t, nodes").rows.to_pydict() == {"n": [6]}
    assert run("SELECT 1 WHERE false").rows.num_rows == 0


def test_long_results_are_cut() -> None:
    found = run("SELECT i FROM range(100000) AS t(i)", rows=5000)
    assert found.rows.column("i").to_pylist() == list(range(5000))
    assert found.cut
    exactly = run("SELECT i FROM range(5000) AS t(i)", rows=5000)
    assert (exactly.rows.num_rows, exactly.cut) == (5000, False)
    wide = run("SELECT repeat('x', 100000) AS x FROM range(1000)", result_bytes=2 * MIB)
    assert wide.cut
    assert 0 < wide.rows.num_rows <= 21  # 2 MiB hold 20 rows of 100,000 letters


OTHER = {
    "COPY (SELECT 1) TO 'out.csv'": "this is COPY",
    "COPY tensors FROM '/etc/passwd'": "this is COPY",
    "ATTACH 'other.duckdb'": "this is ATTACH",
    "INSTALL httpfs": "this is INSTALL or LOAD",
    "LOAD httpfs": "this is INSTALL or LOAD",
    "PRAGMA database_list": "this is PRAGMA",
    "SET memory_limit = '100GB'": "this is SET",
    "RESET memory_limit": "only one SELECT",
    "CALL pragma_version()": "this is CALL",
    "EXPORT DATABASE 'out'": "this is EXPORT",
    "CREATE TABLE x AS SELECT 1": "this is CREATE",
    "DROP TABLE tensors": "this is DROP",
    "INSERT INTO tensors VALUES ('x', 1, [])": "this is INSERT",
    "WITH x AS (SELECT 1) DELETE FROM tensors": "this is DELETE",
    "EXPLAIN ANALYZE SELECT 1": "this is EXPLAIN",
    "SELECT 1; SELECT 2": "this is 2 statements",
    "SELECT 1; COPY (SELECT 1) TO 'out.csv'": "this is 2 statements",
    "-- nothing": "this is empty",
}


@pytest.mark.parametrize("text", OTHER)
def test_only_one_select_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=OTHER[text]) as caught:
        run(text)
    assert "reads the tables of this page" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


OUTSIDE = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/proc/self/environ')",
    "SELECT * FROM parquet_scan('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'tensors.arrow'",
    "SELECT * FROM read_csv('https://example.com/x.csv')",
    "FROM query('COPY (SELECT 1) TO ''out.csv''')",
    "SELECT getenv('HOME')",
    "SELECT * FROM artifacts",
]


@pytest.mark.parametrize("text", OUTSIDE)
def test_nothing_outside_is_reached(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(text)
    assert "root:" not in str(caught.value)


def test_what_a_query_can_look_up_says_nothing_of_this_machine() -> None:
    home = str(Path.home())
    for text in ("SELECT * FROM duckdb_settings()", "SELECT * FROM duckdb_databases()"):
        assert home not in str(run(text).rows.to_pydict())


def test_a_query_without_end_is_stopped() -> None:
    begun = time.monotonic()
    endless = "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT max(i) FROM t"
    with pytest.raises(LimitExceeded, match="stopped after 1 s"):
        run(endless, seconds=1.0)
    assert time.monotonic() - begun < 15
    never = "SELECT count(*) FROM range(10000000) a, range(10000000) b, range(10000000) c WHERE a.range % 7 = b.range"
    with pytest.raises(LimitExceeded, match="stopped after 1 s"):
        run(never, seconds=1.0)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM range(1000000000) t(a) ORDER BY hash(a)",
        "SELECT list(a) FROM range(300000000) t(a)",
        "SELECT len(range(4000000000))",  # one allocation of 32 GB, past the database's own count
        "SELECT length(repeat('x', 4000000000))",
    ],
)
def test_a_query_that_wants_all_memory_is_stopped(text: str) -> None:
    with pytest.raises(LimitExceeded, match="more than 512 MiB of memory"):
        run(text)


def test_a_query_is_stopped_when_asked() -> None:
    stop = threading.Event()
    threading.Timer(0.6, stop.set).start()
    with pytest.raises(Cancelled, match="the query was stopped"):
        sql.run(TABLES, "SELECT count(*) FROM range(100000000000)", cancelled=stop.is_set)


def test_mistakes_are_explained() -> None:
    with pytest.raises(UsageError, match=r"Parser Error: syntax error"):
        run("SELEC 1")
    with pytest.raises(UsageError, match=r'(?s)column "nme" not found.*\(line 2\)$'):
        run("SELECT 1,\n  nme FROM tensors")
    with pytest.raises(UsageError, match="tensor does not exist") as caught:
        run("SELECT * FROM tensor")
    assert caught.value.hint == "Tables are tensors, nodes."
    with pytest.raises(UsageError, match="there is no query"):
        run(" \n")
    with pytest.raises(LimitExceeded, match="characters of a query"):
        run("SELECT " + "1" * sql.TEXT)
    with pytest.raises(UsageError, match="expression depth"):
        run("SELECT " + "(" * 9000 + "1" + ")" * 9000)


def test_no_process_and_no_folder_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run("SELECT 1")
    with pytest.raises(LimitExceeded):
        run("SELECT count(*) FROM range(100000000000)", seconds=0.5)
    assert list(tmp_path.iterdir()) == []
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"sql_child.py" in _command(path)]
    assert left == []


def _command(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended just now
        return b""


# --- what a query sees ----------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    opened = Store.open()
    opened.artifacts.put_model("quick-one", made.model(tmp_path, "one.onnx"))
    opened.artifacts.put_model("quick-two", made.model(tmp_path, "two.onnx", b"y" * 99))
    stats = TensorStats(32, nan=1, min=-1.0, max=2.0, mean=0.5, std=0.25, quantiles={"0.5": 0.125})
    opened.artifacts.put_stats("quick-one", {0: stats})
    yield opened
    opened.close()


def ask(store, text: str, *models: str):
    keys = [store.artifacts.find(model).key for model in models]
    return sql.run(sql_tables.copies(store.database, keys, text), text).rows.to_pydict()


def test_only_the_models_given_are_there(store) -> None:
    assert ask(store, "SELECT name FROM models", "quick-one") == {"name": ["one.onnx"]}
    assert ask(store, "SELECT count(*) AS n FROM TENSORS", "quick-two") == {"n": [6]}
    both = "SELECT m.name, count(*) AS n FROM tensors JOIN models AS m USING (model) GROUP BY ALL ORDER BY ALL"
    assert ask(store, both, "quick-one", "quick-two") == {"name": ["one.onnx", "two.onnx"], "n": [6, 6]}
    assert ask(store, both) == {"name": [], "n": []}


def test_names_of_a_file_are_data(store) -> None:
    found = ask(store, "SELECT name FROM tensors ORDER BY tensor", "quick-one")["name"]
    assert found[:4] == list(made.NAMES[:4])
    assert found[5] == made.NAMES[5]


def test_statistics_nodes_and_values(store) -> None:
    text = "SELECT name, nan, std, q500 FROM statistics WHERE std < 1"
    assert ask(store, text, "quick-one", "quick-two") == {
        "name": [made.NAMES[0]], "nan": [1], "std": [0.25], "q500": [0.125],
    }  # fmt: skip
    text = (
        "SELECT n.id, v.name FROM nodes n JOIN graph_values v ON n.graph = v.graph AND n.outputs[1] = v.row ORDER BY 1"
    )
    assert ask(store, text, "quick-one")["id"][:2] == ["g0.n0", "g0.n1"]


def test_every_column_has_a_type_and_every_table_can_be_read(store) -> None:
    for name, table in sql_tables.TABLES.items():
        known = sql_tables.columns(store.database, name)
        assert [column for column, _ in known] == list(table.columns)
        assert list(ask(store, f"FROM {name}", "quick-one")) == list(table.columns)


def test_too_many_rows_are_refused(store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_tables, "ROWS", 5)
    with pytest.raises(LimitExceeded, match="rows of the tables"):
        ask(store, "FROM tensors", "quick-one")
    assert ask(store, "FROM models", "quick-one")["format"] == ["onnx"]


def test_a_million_rows_are_copied_within_memory() -> None:
    tables = {"tensors": pa.table({"bytes": np.arange(1_000_000)})}
    assert sql.run(tables, "SELECT sum(bytes) AS s FROM tensors").rows.to_pydict() == {"s": [499_999_500_000]}
