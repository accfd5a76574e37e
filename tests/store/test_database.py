import os
import signal
import subprocess
import sys
import time

import duckdb
import pytest

from core.errors import StoreError
from core.store import migrations
from core.store.database import Database
from core.store.store import EndedJob, Store
from tests.store.made import model


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "COPY artifacts FROM '{folder}/in.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_csv('{folder}/in.csv')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM '{folder}/in.csv'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET memory_limit = '100GB'",
        "SET threads = 64",
    ],
)
def test_nothing_outside_can_be_reached_and_nothing_be_unlocked(tmp_path, sql):
    (tmp_path / "in.csv").write_text("a\n1\n")
    database = Database(tmp_path / "w.duckdb")
    with pytest.raises(duckdb.Error, match=r"(?i)permission|disabled|locked|does not exist|cannot"):
        database.cursor().execute(sql.format(folder=tmp_path)).fetchall()
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".wal") == ["in.csv", "w.duckdb"]
    database.close()


def test_variables_of_this_program_are_no_tables():
    frame = __import__("pandas").DataFrame({"secret": [1]})
    database = Database(None)
    with pytest.raises(duckdb.CatalogException):
        database.rows("SELECT * FROM frame")
    assert len(frame) == 1
    database.close()


def test_memory_and_threads_are_bounded():
    database = Database(None, memory=64 << 20, threads=1)
    limits = database.row("SELECT current_setting('memory_limit'), current_setting('threads')")
    assert limits == ("64.0 MiB", 1)
    database.close()


def test_what_was_written_is_there_after_opening_again(tmp_path):
    path = tmp_path / "w.duckdb"
    store = Store.open(path)
    store.put_job(EndedJob("1", "hash", "SHA", "q1", "local", "done", "", 1.0, 2.0))
    store.close()
    again = Store.open(path)
    assert [job.title for job in again.jobs()] == ["SHA"]
    assert again.notice == ""
    again.close()


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"\0" * 8 + b"DUCK" + b"\xff" * 5000])
def test_an_unreadable_database_is_kept_aside(tmp_path, content):
    path = tmp_path / "w.duckdb"
    path.write_bytes(content)
    store = Store.open(path)
    kept = [p for p in tmp_path.iterdir() if ".aside-" in p.name]
    assert [p.read_bytes() for p in kept] == [content]
    assert kept[0].name in store.notice
    assert store.jobs() == []
    store.close()


def test_a_newer_database_is_kept_aside_whole(tmp_path):
    path = tmp_path / "w.duckdb"
    newer = duckdb.connect(str(path))
    newer.execute("CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES (99)")
    newer.execute("CREATE TABLE precious AS SELECT 42 AS answer")
    newer.close()
    store = Store.open(path)
    assert "newer Modelglass (schema 99)" in store.notice
    store.close()
    (kept,) = (p for p in tmp_path.iterdir() if ".aside-" in p.name)
    old = duckdb.connect(str(kept), read_only=True)
    assert old.execute("SELECT answer FROM precious").fetchall() == [(42,)]
    old.close()


def test_two_databases_moved_aside_in_one_second_do_not_meet(tmp_path):
    path = tmp_path / "w.duckdb"
    for content in (b"first", b"second"):
        path.write_bytes(content)
        Store.open(path).close()
        path.unlink()
    assert sorted(p.read_bytes() for p in tmp_path.iterdir() if ".aside-" in p.name) == [b"first", b"second"]


def test_steps_are_taken_forward_one_by_one():
    connection = duckdb.connect()
    steps = {1: "CREATE TABLE two (x INTEGER)", 2: "ALTER TABLE two ADD COLUMN y INTEGER"}
    assert migrations.bring_up(connection, newest=1) == 0
    assert migrations.bring_up(connection, steps, newest=3) == 1
    assert migrations.version_of(connection) == 3
    assert [row[0] for row in connection.execute("DESCRIBE two").fetchall()] == ["x", "y"]
    assert migrations.bring_up(connection, steps, newest=3) == 3
    connection.close()


def test_every_version_has_its_step():
    assert sorted(migrations.STEPS) == list(range(1, migrations.VERSION))


def test_a_write_that_fails_leaves_nothing():
    database = Database(None)
    row = "INSERT INTO jobs VALUES ('1', 'hash', 't', '', '', 'done', '', 0, 0)"

    def fail():
        with database.writing() as cursor:
            cursor.execute(row)
            cursor.execute("INSERT INTO jobs VALUES (NULL)")

    with pytest.raises(duckdb.Error):
        fail()
    assert database.rows("SELECT id FROM jobs") == []
    with database.writing() as cursor:
        cursor.execute(row)
    assert database.rows("SELECT id FROM jobs") == [("1",)]
    database.close()


def test_a_database_held_by_another_process_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "w.duckdb"
    with _process(path, "held = Store.open(path); print('ready', flush=True); time.sleep(60)") as holder:
        assert holder.stdout.readline() == b"ready\n"
        with pytest.raises(StoreError, match="held by another process"):
            Store.open(path)
        holder.kill()
    assert [p.name for p in tmp_path.iterdir() if ".aside-" in p.name] == []


def test_a_process_killed_while_it_writes_leaves_whole_transactions(tmp_path):
    path = tmp_path / "w.duckdb"
    model(tmp_path)
    work = """
from pathlib import Path
from tests.store.made import model
from core.statistics.types import TensorStats
store = Store.open(path)
made = model(Path(path).parent)
for i in range(100000):
    store.artifacts.put_model(f'quick-{i:08d}', made)
    store.artifacts.put_stats(f'quick-{i:08d}', {k: TensorStats(k) for k in range(6)})
    print('ready', flush=True)
"""
    for delay in (0.05, 0.21, 0.4):
        with _process(path, work) as writer:
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(delay)
            os.kill(writer.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        store = Store.open(path)
        assert store.notice == ""
        whole = store.database.rows(
            "SELECT a.tensors = (SELECT count(*) FROM tensors AS t WHERE t.artifact = a.key), "
            "a.nodes = (SELECT count(*) FROM nodes AS n WHERE n.artifact = a.key), "
            "(SELECT count(*) FROM tensor_stats AS s WHERE s.artifact = a.key) IN (0, 6) FROM artifacts AS a"
        )
        assert whole
        assert all(all(row) for row in whole)
        store.close()


def _process(path, code):
    start = f"import time\nfrom core.store.store import Store\npath = {str(path)!r}\n"
    return subprocess.Popen([sys.executable, "-c", start + code], stdout=subprocess.PIPE)
