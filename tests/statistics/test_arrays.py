import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.dtypes import DTYPES, dtype_of
from core.errors import UsageError
from core.statistics.arrays import of_array
from core.statistics.types import TensorStats
from tests.statistics import oracle

NUMBERS = ["float16", "float32", "float64", "int8", "int16", "int32", "uint8", "uint16", "uint32", "bool"]
SMALLEST_NORMAL = {name: float(np.finfo(name).smallest_normal) for name in ("float16", "float32", "float64")}
SMALL_FLOATS = {d.name: d for d in DTYPES.values() if d.mini is not None or d.name == "bfloat16"}
ML_NAMES = {
    name: name.replace("float8e", "float8_e").replace("float6e", "float6_e").replace("float4e", "float4_e")
    for name in SMALL_FLOATS
}
ML_NAMES["float8e8m0"] = "float8_e8m0fnu"
for odd in ("float6e2m3", "float6e3m2", "float4e2m1"):
    ML_NAMES[odd] += "fn"


def arrays(name: str) -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9)
    return hnp.arrays(name, shapes, elements=hnp.from_dtype(np.dtype(name)))


@pytest.mark.parametrize("name", NUMBERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_statistic_is_numpys(name: str, data: st.DataObject) -> None:
    array = data.draw(arrays(name))
    view = array[..., ::-2] if array.ndim and data.draw(st.booleans()) else array
    oracle.check(of_array(view), view, SMALLEST_NORMAL.get(name, 0.0))


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int16", "uint16", "int8"])
def test_many_elements_with_everything_in_them(name: str) -> None:
    random = np.random.default_rng(1)
    array = random.integers(0, 256, 300_000 * np.dtype(name).itemsize, dtype=np.uint8).view(name).reshape(3, -1)
    oracle.check(of_array(array), array, SMALLEST_NORMAL.get(name, 0.0))
    oracle.check(of_array(array.astype(array.dtype.newbyteorder(">"))), array, SMALLEST_NORMAL.get(name, 0.0))


def test_histogram_is_that_of_numpy() -> None:
    array = np.random.default_rng(2).standard_normal(50_000)
    counts, edges = np.histogram(array, 10)
    found = of_array(array, bins=10).histogram
    assert list(found.counts) == counts.tolist()
    assert list(found.edges) == edges.tolist()
    # one value: numpy widens the range by a half to both sides
    assert of_array(np.full(5, 3.0), bins=2).histogram.edges == (2.5, 3.0, 3.5)
    assert of_array(np.full(5, 3.0), bins=2).histogram.counts == (0, 5)


@pytest.mark.parametrize("name", sorted(SMALL_FLOATS))
def test_small_floats_are_those_of_ml_dtypes(name: str) -> None:
    other, dtype = np.dtype(getattr(ml_dtypes, ML_NAMES[name])), SMALL_FLOATS[name]
    codes = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    codes = np.concatenate([codes, np.random.default_rng(3).permutation(codes)[: codes.size // 3]])
    with np.errstate(invalid="ignore"):  # signalling NaN patterns
        numbers = codes.view(other).astype(np.float64)
    smallest = float(ml_dtypes.finfo(other).smallest_normal) if name != "float8e8m0" else 0.0
    oracle.check(of_array(codes, dtype), numbers, smallest)
    oracle.check(of_array(codes[:30], dtype), numbers[:30], smallest)
    oracle.check(of_array(codes.view(other), dtype), numbers, smallest)


@pytest.mark.parametrize(("name", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15), ("int2", -2, 1), ("uint1", 0, 1)])
def test_numbers_below_a_byte(name: str, low: int, high: int) -> None:
    array = np.random.default_rng(4).integers(low, high + 1, 1000).astype(np.int8 if low else np.uint8)
    oracle.check(of_array(array, dtype_of(name)), array)


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_integers_beyond_53_bits(name: str) -> None:
    bounds = np.iinfo(name)
    array = np.random.default_rng(5).integers(bounds.min, bounds.max, 4001, dtype=name, endpoint=True)
    oracle.check(of_array(array), array)
    near = np.array([2**53 + 1, 2**53 + 3, 2**53 + 1], name)
    found = of_array(near)
    assert found.min == float(2**53 + 1)
    assert found.quantiles["0.5"] == float(2**53 + 1)


def test_complex_counts_by_magnitude() -> None:
    array = np.array([3 + 4j, 0j, complex(np.nan, 1), complex(np.inf, np.nan), complex(-np.inf, 0)], np.complex64)
    found = of_array(array)
    assert (found.count, found.nan, found.pos_inf, found.zero) == (5, 2, 1, 1)
    assert (found.min, found.max, found.mean) == (0.0, 5.0, 2.5)


def test_text_is_only_counted() -> None:
    for array in (np.array(["a", "b"]), np.array(["a", None], object)):
        assert of_array(array) == TensorStats(count=2)
    assert of_array(np.zeros(3, np.uint8), dtype_of("opaque")) == TensorStats(count=3)


def test_negative_zero_is_zero() -> None:
    found = of_array(np.array([-0.0, 0.0], np.float32))
    assert found.zero == 2
    assert str(found.min) == "0.0"


def test_no_bins() -> None:
    with pytest.raises(UsageError, match="at least one bin"):
        of_array(np.zeros(3), bins=0)


@pytest.mark.parametrize("array", [np.array([1.0, np.nan, -np.inf]), np.zeros(0), np.full(3, 1.7e308), np.arange(9)])
def test_json_and_back(array: np.ndarray) -> None:
    import json

    stats = of_array(array)
    text = json.dumps(stats.to_json(), allow_nan=False)
    assert TensorStats.from_json(json.loads(text)) == stats
