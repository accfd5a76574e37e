import numpy as np
import pytest

from core.errors import UsageError
from core.ir import ByteRange, Model, Tensor
from core.source import Source
from core.statistics.types import TensorStats
from core.store.paging import Query
from core.store.stat_columns import stat_columns
from core.store.store import Store

COUNT = 1000


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("columns") / "m"
    path.write_bytes(b"x")
    tensors = tuple(
        Tensor(f"layers.{i % 7}.w{i}", ("float32", "int8")[i % 2], (i + 1,), ByteRange(0, 0, i)) for i in range(COUNT)
    )
    opened = Store.open()
    opened.artifacts.put_model("quick-id", Model("onnx", "ONNX model", str(path), (Source(path),), {}, tensors, (), {}))
    opened.artifacts.put_stats(
        "quick-id",
        {
            i: TensorStats(4, std=i / 3, absmax=float(i) if i % 4 else None, quantiles={"0.5": i + 0.5})
            for i in range(0, COUNT, 2)
        },
    )
    yield opened
    opened.close()


def test_rows_that_have_every_statistic(store) -> None:
    found = stat_columns(store, "quick-id", ["std", "absmax", "q500", "bytes"])
    assert found.rows.column_names == ["idx", "name", "dtype", "std", "absmax", "q500", "bytes"]
    known = [i for i in range(0, COUNT, 2) if i % 4]
    assert found.rows.column("idx").to_pylist() == known
    assert found.rows.column("absmax").to_pylist() == known
    assert found.rows.column("q500").to_pylist() == [i + 0.5 for i in known]
    assert (found.total, found.sampled) == (len(known), False)


def test_an_even_sample_where_there_are_more(store) -> None:
    found = stat_columns(store, "quick-id", ["elements"], most=300)
    idx = found.rows.column("idx").to_numpy()
    assert (found.total, found.sampled) == (COUNT, True)
    assert 150 < len(idx) <= 300
    assert len(set(np.diff(idx).tolist())) == 1


def test_a_filter_holds_and_nothing_may_be_left(store) -> None:
    found = stat_columns(store, "quick-id", ["rank"], Query(text="layers.3.", equal=(("dtype", "int8"),)))
    assert found.rows.column("idx").to_pylist() == [i for i in range(COUNT) if i % 7 == 3 and i % 2]
    assert stat_columns(store, "quick-id", ["std"], Query(text="nothing")).total == 0


def test_a_column_that_is_not_there(store) -> None:
    with pytest.raises(UsageError, match="not a number of the tensor table"):
        stat_columns(store, "quick-id", ["1; DROP TABLE tensors"])
