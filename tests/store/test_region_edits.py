from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from core.errors import NotFound
from core.opening import open_model
from core.store import migrations
from core.store.store import Store
from core.structure.edits import RegionEdit

NAMED = RegionEdit("rename", ("r0.0123456789ab",), (), "encoder <b>")
GROUPED = RegionEdit("group", (), ("g0.n1", "g0.n2"), "tail")


def stored(store: Store, folder: Path, quick: str) -> None:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(np.eye(2, dtype=np.float32), "w")],
    )  # fmt: skip
    path = folder / f"{quick}.onnx"
    onnx.save(helper.make_model(graph), path)
    store.artifacts.put_model(quick, open_model(path))


def test_edits_are_kept_in_order_and_reset_by_region(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    store = Store.open(path)
    stored(store, tmp_path, "quick-one")
    store.regions.add("quick-one", NAMED, "a")
    store.regions.add("quick-one", GROUPED, "b")
    store.close()
    store = Store.open(path)
    assert store.regions.edits("quick-one") == (NAMED, GROUPED)
    assert store.regions.reset("quick-one", "r0.0123456789ab") == 1
    assert store.regions.edits("quick-one") == (GROUPED,)
    assert store.regions.reset("quick-one") == 1
    assert store.regions.edits("quick-one") == ()
    store.close()


def test_edits_and_node_data_follow_the_digest(tmp_path: Path) -> None:
    store = Store.open()
    for quick in ("quick-one", "quick-two"):
        stored(store, tmp_path, quick)
    store.artifacts.promote("quick-one", "d" * 64)
    store.regions.add("quick-two", NAMED, "a")
    store.regions.put_node_data("quick-two", "mine", '{"results": {}}')
    store.artifacts.promote("quick-two", "d" * 64)  # the same content at another place
    assert store.regions.edits("quick-one") == (NAMED,)
    assert store.regions.node_data("d" * 64) == ["mine"]
    store.regions.put_node_data("quick-one", "mine", None)
    with pytest.raises(NotFound, match="no node data is called 'mine'"):
        store.regions.node_data_text("quick-one", "mine")


def test_an_older_database_gets_both_tables() -> None:
    old, new = duckdb.connect(), duckdb.connect()
    migrations.bring_up(new)
    migrations.bring_up(old)
    for table in ("region_edits", "node_data"):
        old.execute(f"DROP TABLE {table}")
    old.execute("UPDATE schema_version SET version = 1")
    assert migrations.bring_up(old) == 1
    for table in ("region_edits", "node_data"):
        columns = (
            f"SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = '{table}'"
        )
        assert old.execute(columns).fetchall() == new.execute(columns).fetchall() != []
