import hashlib
import re

import pytest

from core import identity
from core.errors import Cancelled, NotFound, SourceChanged
from core.ir import Model
from core.source import Source
from core.statistics.types import QUANTILES, Histogram, TensorStats
from core.store.arrow import INT64_MAX
from core.store.paging import Query
from core.store.store import Store
from tests.store.made import NAMES, model

STATS = TensorStats(
    10, 1, 2, 3, 4, 5, -1.5, 2.5, 0.25, 1.0, 2.5, 7.0, 3.0,
    {f"{q:g}": q * 10 for q in QUANTILES}, Histogram((0.0, 0.5, 1.0), (3, 7)), exact=False, error=0.01,
)  # fmt: skip


@pytest.fixture
def store():
    opened = Store.open()
    yield opened
    opened.close()


def test_tensors_come_back_as_the_model_has_them(store, tmp_path):
    made = model(tmp_path)
    store.artifacts.put_model("quick-id", made)
    rows = store.artifacts.tensors_page("quick-id").rows.to_pylist()
    for row, tensor in zip(rows, made.tensors, strict=True):
        assert row["name"] == tensor.name.encode("utf-8", "replace").decode()
        assert (row["dtype"], row["encoding"], tuple(row["shape"])) == (tensor.dtype, tensor.encoding, tensor.shape)
        assert (row["role"], row["graph"], row["problem"]) == (tensor.role, tensor.graph, tensor.problem)
        assert row["elements"] == min(tensor.elements, INT64_MAX)
    assert [(r["source"], r["start"], r["stop"]) for r in rows][:3] == [(0, 0, 128), (-1, -1, -1), (-1, -1, -1)]
    assert [r["bytes"] for r in rows] == [128, 8, 4, 1, 0, INT64_MAX]
    assert [r["quantized"] for r in rows] == [False, False, False, True, False, False]


def test_nodes_and_values_come_back_as_the_graphs_give_them(store, tmp_path):
    made = model(tmp_path)
    store.artifacts.put_model("quick-id", made)
    nodes = store.artifacts.nodes_page("quick-id").rows.to_pylist()
    expected = [node for graph in made.graphs for node in graph.nodes()]
    assert [(r["id"], r["name"], r["op_type"], r["domain"], r["scope"]) for r in nodes] == [
        (n.id, n.name, n.op_type, n.domain, n.scope) for n in expected
    ]
    kept = store.database.rows("SELECT inputs, outputs FROM nodes ORDER BY row")
    assert [(tuple(i), tuple(o)) for i, o in kept] == [(n.inputs, n.outputs) for n in expected]
    values = store.artifacts.values_page("quick-id").rows.to_pylist()
    wanted = [value for graph in made.graphs for value in graph.values()]
    assert [r["id"] for r in values] == [v.id for v in wanted]
    for row, value in zip(values, wanted, strict=True):
        shape = None if value.shape is None else ["?" if d is None else str(d) for d in value.shape]
        assert (row["dtype"], row["shape"]) == (value.dtype, shape)
        assert (row["producer"], row["consumers"], row["tensor"]) == (
            value.producer, len(value.consumers), value.tensor,
        )  # fmt: skip
        assert (row["is_input"], row["is_output"]) == (value.is_input, value.is_output)


def test_the_record_says_what_the_file_is(store, tmp_path):
    found = store.artifacts.put_model("quick-id", model(tmp_path), now=5.0)
    assert (found.id, found.digest, found.name) == ("quick-id", "", "m.onnx")
    assert (found.tensors, found.nodes, found.verdict, found.findings) == (6, 3, "warning", 1)
    assert (found.parameters, found.opened_at, found.producer) == (INT64_MAX, 5.0, "hand 1")


def test_reopening_an_equal_model_keeps_its_rows_and_statistics(store, tmp_path):
    made = model(tmp_path)
    key = store.artifacts.put_model("quick-id", made).key
    store.artifacts.put_stats("quick-id", {0: STATS})
    assert store.artifacts.put_model("quick-id", made).key == key
    assert store.artifacts.stats("quick-id", 0) == STATS
    changed = Model(**{**vars(made), "tensors": made.tensors[:1]})
    store.artifacts.put_model("quick-id", changed)
    assert store.artifacts.tensors_page("quick-id").total == 1
    assert store.artifacts.stats("quick-id", 0) is None


def test_statistics_come_back_and_replace_earlier_ones(store, tmp_path):
    store.artifacts.put_model("quick-id", model(tmp_path))
    store.artifacts.put_stats("quick-id", {0: TensorStats(1), 3: TensorStats(0)})
    store.artifacts.put_stats("quick-id", {0: STATS})
    assert store.artifacts.stats("quick-id", 0) == STATS
    assert store.artifacts.stats("quick-id", 3) == TensorStats(0)
    assert store.artifacts.stats("quick-id", 1) is None
    assert store.artifacts.with_stats("quick-id") == {0, 3}
    row = store.artifacts.tensors_page("quick-id", Query("absmax", descending=True)).rows.to_pylist()[0]
    assert (row["idx"], row["inf"], row["q500"], row["histogram"]) == (0, 5, 5.0, [3, 7])


def test_the_hash_gives_an_artifact_its_name(store, tmp_path):
    store.artifacts.put_model("quick-id", model(tmp_path))
    store.artifacts.put_stats("quick-id", {0: STATS})
    found = store.artifacts.promote("quick-id", "d" * 64)
    assert found.id == "d" * 64
    for name in ("quick-id", "d" * 64, "d" * 8):
        assert store.artifacts.find(name).key == found.key
    assert store.artifacts.stats("d" * 64, 0) == STATS


def test_the_same_bytes_at_two_places_become_one_artifact(store, tmp_path):
    store.artifacts.put_model("quick-one", model(tmp_path, "one.onnx"), now=1.0)
    store.artifacts.put_stats("quick-one", {0: STATS})
    store.artifacts.promote("quick-one", "d" * 64)
    store.artifacts.put_model("quick-two", model(tmp_path, "two.onnx"), now=2.0)
    store.artifacts.put_stats("quick-two", {0: TensorStats(7), 1: TensorStats(8)})
    store.artifacts.assign_input("quick-two", "x", "{}")
    merged = store.artifacts.promote("quick-two", "d" * 64)
    assert merged.key == store.artifacts.find("quick-one").key
    assert store.artifacts.find("d" * 64).name == "two.onnx"
    assert (store.artifacts.stats("quick-two", 0), store.artifacts.stats("quick-two", 1)) == (STATS, TensorStats(8))
    assert store.artifacts.assigned_inputs("quick-one") == {"x": "{}"}
    assert store.artifacts.tensors_page("quick-one").total == 6
    assert store.database.rows("SELECT count(*) FROM tensors") == [(6,)]
    assert [found.name for found in store.artifacts.recent()] == ["two.onnx", "one.onnx"]


def test_recent_shows_each_path_once_newest_first(store, tmp_path):
    for at, (quick, name) in enumerate([("quick-a1", "a"), ("quick-b1", "b"), ("quick-a2", "a")]):
        store.artifacts.put_model(quick, model(tmp_path, name), now=float(at))
    assert [found.quick for found in store.artifacts.recent()] == ["quick-a2", "quick-b1"]
    assert len(store.artifacts.recent(limit=1)) == 1


def test_an_unknown_or_ambiguous_id_is_named(store, tmp_path):
    store.artifacts.put_model("quick-abc-1", model(tmp_path, "a"))
    store.artifacts.put_model("quick-abc-2", model(tmp_path, "b"))
    for text, words in (("nothing-like-it", "no model"), ("quick-a", "no model"), ("quick-abc", "several ids")):
        with pytest.raises(NotFound, match=words):
            store.artifacts.find(text)
    assert store.artifacts.find("quick-abc-2").name == "b"


def test_forgetting_removes_every_row(store, tmp_path):
    store.artifacts.put_model("quick-id", model(tmp_path))
    store.artifacts.put_stats("quick-id", {0: STATS})
    store.artifacts.assign_input("quick-id", "x", "{}")
    store.artifacts.forget("quick-id")
    with pytest.raises(NotFound):
        store.artifacts.tensors_page("quick-id")
    for table in ("artifacts", "locations", "tensors", "nodes", '"values"', "tensor_stats", "assigned_inputs"):
        assert store.database.rows(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_a_recipe_is_replaced_and_taken_back(store, tmp_path):
    store.artifacts.put_model("quick-id", model(tmp_path))
    for recipe in ('{"kind": "ones"}', '{"kind": "zeros"}'):
        store.artifacts.assign_input("quick-id", "x", recipe)
    assert store.artifacts.assigned_inputs("quick-id") == {"x": '{"kind": "zeros"}'}
    store.artifacts.assign_input("quick-id", "x", None)
    assert store.artifacts.assigned_inputs("quick-id") == {}


def test_facets_add_up(store, tmp_path):
    store.artifacts.put_model("quick-id", model(tmp_path))
    rows = store.artifacts.tensor_facets("quick-id").to_pylist()
    assert sum(row["tensors"] for row in rows) == len(NAMES)
    assert {row["dtype"] for row in rows} == {"float32", "float16", "int4", "int8"}


def test_the_digest_of_one_file_is_its_own_hash(tmp_path):
    made = model(tmp_path, content=b"abc" * 1000)
    told = []
    assert identity.digest(made, lambda done, total: told.append((done, total))) == (
        hashlib.sha256(b"abc" * 1000).hexdigest()
    )
    assert told[-1] == (3000, 3000)


def test_the_digest_of_several_files_does_not_depend_on_their_order(tmp_path):
    one, two = model(tmp_path, "b", b"1"), model(tmp_path, "a", b"2")
    lines = "".join(f"{n}\0{hashlib.sha256(c).hexdigest()}\n" for n, c in (("a", b"2"), ("b", b"1")))
    for sources in ((*one.sources, *two.sources), (*two.sources, *one.sources)):
        both = Model(**{**vars(one), "sources": sources})
        assert identity.digest(both) == hashlib.sha256(lines.encode()).hexdigest()


def test_hashing_stops_when_asked_and_sees_changes(tmp_path):
    made = model(tmp_path)
    with pytest.raises(Cancelled):
        identity.digest(made, cancelled=lambda: True)
    (tmp_path / "m.onnx").write_bytes(b"y" * 257)
    with pytest.raises(SourceChanged):
        identity.digest(made)


def test_the_quick_identity_depends_on_place_size_and_time(tmp_path):
    first = model(tmp_path)
    again = Model(**{**vars(first), "sources": (Source(first.path),)})
    assert identity.quick(first) == identity.quick(again)
    assert re.fullmatch("q[0-9a-f]{16}", identity.quick(first))
    others = [model(tmp_path, "other"), model(tmp_path, content=b"z")]
    assert len({identity.quick(m) for m in (first, *others)}) == 3
