import pytest

from core.errors import NotFound
from core.ir import Finding
from core.statistics.types import TensorStats
from core.store.paging import Query
from core.store.store import Store
from core.trace.types import Approval, NodeTiming, RunInput, RunLimits, TracedValue, TraceRequest, TraceResult
from tests.store.made import model
from tests.store.test_artifacts import STATS

INPUT = RunInput("x", "float32", (1, 2), "0000.npy", "ab", "zeros")
REQUEST = TraceRequest("/m.onnx", "quick-id", (INPUT,), RunLimits(time=5.0))
APPROVAL = Approval(REQUEST.fingerprint(), "ann", 3.0)
VALUES = (
    TracedValue("g0.v0", "x", "", "float32", (1, 2), TensorStats(2, absmax=1.0), start=0, stop=8),
    TracedValue("g0.v2", "y", "g0.n0", "float32", (1, 4), STATS, start=8, stop=24),
    TracedValue("g1.v0", "inside", "g1.n0", "int64", (), None, step=0, reason="beyond the store limit"),
    TracedValue("g1.v0", "inside", "g1.n0", "int64", (), TensorStats(1, absmax=9.0), step=1),
)
NODES = (NodeTiming("g0.n0", "first", "MatMul", 12.5, "CPU"), NodeTiming("g0.n1", "second", "Clip", None))


def result(status="complete", values=VALUES, nodes=NODES):
    findings = (Finding("run.nan", "warning", "NaN in y.", "value g0.v2"),)
    return TraceResult(
        status, "onnxruntime", "CPU", "", 1.5, 99, (INPUT,), values, nodes, findings, "/spool", {"time": "outside"}
    )


@pytest.fixture
def store(tmp_path):
    opened = Store.open()
    opened.artifacts.put_model("quick-id", model(tmp_path))
    opened.traces.put_trace("run-1", "quick-id", REQUEST, APPROVAL, result(), now=10.0)
    yield opened
    opened.close()


def test_a_run_comes_back_as_it_was(store):
    found = store.traces.record("run-1")
    assert (found.artifact, found.actor, found.approved_at, found.created_at) == ("quick-id", "ann", 3.0, 10.0)
    assert (found.status, found.elapsed_s, found.peak_rss_bytes) == ("complete", 1.5, 99)
    assert found.fingerprint == REQUEST.fingerprint()
    assert (found.inputs, found.limits, found.held) == ((INPUT,), REQUEST.limits, {"time": "outside"})
    assert found.findings == result().findings
    assert (found.values, found.nodes) == (4, 2)


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.id}.{v.step}")
def test_every_value_comes_back(store, value):
    assert store.traces.value("run-1", value.id, value.step) == value


def test_values_are_paged_in_the_order_of_execution_or_sorted(store):
    page = store.traces.values_page("run-1")
    assert page.rows.column("id").to_pylist() == [v.id for v in VALUES]
    assert page.rows.column("stored").to_pylist() == [True, True, False, False]
    ranked = store.traces.values_page("run-1", Query("absmax", descending=True)).rows
    assert ranked.column("absmax").to_pylist() == [9.0, 2.5, 1.0, None]
    one = store.traces.values_page("run-1", Query(equal=(("node", "g0.n0"),)))
    assert one.rows.column("name").to_pylist() == ["y"]
    assert store.traces.depth("run-1").column("row").to_pylist() == [0, 1, 2, 3]


def test_latencies_come_back_with_the_unknown_ones_last(store):
    rows = store.traces.nodes_page("run-1", Query("latency_us", descending=True)).rows.to_pylist()
    assert [(r["id"], r["op_type"], r["latency_us"]) for r in rows] == [
        ("g0.n0", "MatMul", 12.5),
        ("g0.n1", "Clip", None),
    ]


def test_a_run_that_left_nothing_is_kept_too(store):
    store.traces.put_trace("run-2", "quick-id", REQUEST, APPROVAL, result("failed", (), ()), now=11.0)
    assert [r.id for r in store.traces.of_artifact("quick-id")] == ["run-2", "run-1"]
    assert store.traces.values_page("run-2").total == 0


def test_a_run_of_the_same_id_is_replaced(store):
    store.traces.put_trace("run-1", "quick-id", REQUEST, APPROVAL, result("partial", VALUES[:1], ()), now=12.0)
    assert store.traces.record("run-1").status == "partial"
    assert store.traces.values_page("run-1").total == 1


def test_runs_follow_their_model_to_its_hash_and_leave_with_it(store):
    store.artifacts.promote("quick-id", "d" * 64)
    assert store.traces.record("run-1").artifact == "d" * 64
    assert [r.id for r in store.traces.of_artifact("d" * 64)] == ["run-1"]
    assert store.artifacts.forget("quick-id") == ["run-1"]
    with pytest.raises(NotFound):
        store.traces.record("run-1")
    assert store.database.rows("SELECT count(*) FROM trace_values") == [(0,)]


def test_what_is_not_there_is_named(store):
    for call in (
        lambda: store.traces.record("run-9"),
        lambda: store.traces.value("run-1", "g0.v99"),
        lambda: store.traces.value("run-1", "g0.v0", step=5),
    ):
        with pytest.raises(NotFound):
            call()
    store.traces.forget("run-1")
    assert store.traces.of_artifact("quick-id") == []
