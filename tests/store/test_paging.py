import numpy as np
import pytest

from core.errors import LimitExceeded, UsageError
from core.ir import ByteRange, Model, Tensor
from core.source import Source
from core.statistics.types import TensorStats
from core.store import paging
from core.store.paging import Query
from core.store.store import Store

COUNT = 3000
RNG = np.random.default_rng(7)
SIZES = RNG.integers(0, 40, COUNT).tolist()  # many ties, so that the order behind them matters
DTYPES = [("float32", "int8", "bool")[i % 3] for i in range(COUNT)]
NAMES = [f"Layer_{i % 11}.{i}%" for i in range(COUNT)]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("paging") / "m"
    path.write_bytes(b"x")
    tensors = tuple(
        Tensor(name, dtype, (size,), ByteRange(0, 0, size))
        for name, dtype, size in zip(NAMES, DTYPES, SIZES, strict=True)
    )
    opened = Store.open()
    opened.artifacts.put_model("quick-id", Model("onnx", "ONNX model", str(path), (Source(path),), {}, tensors, (), {}))
    opened.artifacts.put_stats("quick-id", {i: TensorStats(1, std=float(i % 5)) for i in range(0, COUNT, 2)})
    yield opened
    opened.close()


def walk(store, query, limit=700):
    found, after = [], None
    while True:
        page = store.artifacts.tensors_page("quick-id", query, after=after, limit=limit)
        assert page.start == len(found)
        found += page.rows.column("idx").to_pylist()
        if page.next is None:
            assert page.total == len(found)
            return found
        after = page.next


EXPECTED = {
    Query(): list(range(COUNT)),
    Query("", descending=True): list(range(COUNT))[::-1],
    Query("bytes"): sorted(range(COUNT), key=lambda i: (SIZES[i], i)),
    Query("bytes", descending=True): sorted(range(COUNT), key=lambda i: (-SIZES[i], i)),
    Query("name"): sorted(range(COUNT), key=lambda i: (NAMES[i], i)),
    Query("std", descending=True): sorted(range(COUNT), key=lambda i: (i % 2, -(i % 5), i) if not i % 2 else (1, 0, i)),
    Query("bytes", equal=(("dtype", "int8"),)): sorted(range(1, COUNT, 3), key=lambda i: (SIZES[i], i)),
    Query(text="layer_10."): [i for i in range(COUNT) if "Layer_10." in NAMES[i]],
    Query(text="_1.12"): [i for i in range(COUNT) if "_1.12" in NAMES[i]],
    Query(text="9%"): [i for i in range(COUNT) if "9%" in NAMES[i]],
    Query(text="\\"): [],
    Query(text="' OR 1=1 --"): [],
}


@pytest.mark.parametrize("query", EXPECTED, ids=str)
def test_pages_follow_each_other_in_the_order_of_python_sorting(store, query):
    assert walk(store, query) == EXPECTED[query]
    assert store.artifacts.tensors_page("quick-id", query, limit=0).total == len(EXPECTED[query])


@pytest.mark.parametrize("start", [0, 1, 1023, 1024, 2950, COUNT, COUNT + 5])
def test_a_page_can_begin_anywhere(store, start):
    query = Query("bytes")
    page = store.artifacts.tensors_page("quick-id", query, start=start, limit=100)
    assert page.rows.column("idx").to_pylist() == EXPECTED[query][start : start + 100]
    assert page.total == COUNT


def test_the_place_of_a_row_is_found(store):
    key = store.artifacts.find("quick-id").key
    for row in (0, 1500, 2999):
        assert store.artifacts.tensors.place(key, Query("bytes"), row) == EXPECTED[Query("bytes")].index(row)
    assert store.artifacts.tensors.place(key, Query(equal=(("dtype", "bool"),)), 0) == -1


def test_only_the_columns_asked_for_come(store):
    page = store.artifacts.tensors_page("quick-id", columns=("name", "std"), limit=3)
    assert page.rows.to_pydict() == {"name": NAMES[:3], "std": [0.0, None, 2.0]}


def test_new_statistics_change_the_order(store):
    before = walk(store, Query("max", descending=True))
    store.artifacts.put_stats("quick-id", {17: TensorStats(1, max=9.0)})
    assert before[0] == 0
    assert walk(store, Query("max", descending=True))[0] == 17


@pytest.mark.parametrize(
    "query", [Query("bytes; DROP TABLE tensors"), Query("paged_key"), Query(equal=(("1=1 OR t.name", "x"),))]
)
def test_a_column_that_is_not_listed_is_refused(store, query):
    with pytest.raises(UsageError, match="not a column"):
        store.artifacts.tensors_page("quick-id", query)


def test_a_page_is_bounded(store):
    with pytest.raises(LimitExceeded):
        store.artifacts.tensors_page("quick-id", limit=paging.PAGE + 1)
    with pytest.raises(UsageError):
        store.artifacts.tensors_page("quick-id", columns=("name, artifact",))
