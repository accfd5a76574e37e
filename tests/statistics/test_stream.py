import numpy as np
import pytest

from core.dtypes import dtype_of, pack
from core.errors import Cancelled
from core.statistics import vectors
from core.statistics.arrays import of_array
from core.statistics.feeds import ArrayFeed
from core.statistics.stream import Watch, Way, measure
from core.statistics.types import QUANTILES, TensorStats
from tests.statistics import oracle

COUNT = 220_001  # more than one block of every width
ENGINES = ["vectors", pytest.param("kernels", marks=pytest.mark.slow)]


def engine(name: str):
    if name == "vectors":
        return vectors
    from core.statistics import kernels

    return kernels


def wide_arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(6)
    normal = random.standard_normal(COUNT)
    return {
        "weights": (normal * 0.02).astype(np.float32),
        "weights64": normal * 0.02,
        "any float32": random.integers(0, 2**32, COUNT, dtype=np.uint32).view(np.float32),
        "any float64": random.integers(0, 2**64, COUNT, dtype=np.uint64).view(np.float64),
        "subnormal": random.integers(0, 1 << 23, COUNT, dtype=np.uint32).view(np.float32),
        "narrow": (1 + 1e-4 * random.random(COUNT)).astype(np.float32),
        "sparse": np.where(random.random(COUNT) < 0.9, 0, normal).astype(np.float32),
        "two values": np.where(random.random(COUNT) < 0.4, -1, 1).astype(np.float32),
        "constant": np.full(COUNT, 1.1),
        "huge": normal * 1e307,
        "all NaN": np.full(COUNT, np.nan, np.float32),
        "few finite": np.where(np.arange(COUNT) % 50_000 == 7, normal, np.inf).astype(np.float32),
        "indexes": random.integers(-1000, 1000, COUNT),
        "any int64": random.integers(-(2**63), 2**63 - 1, COUNT),
        "any int32": random.integers(-(2**31), 2**31 - 1, COUNT).astype(np.int32),
        "any uint32": random.integers(0, 2**32, COUNT, dtype=np.uint32),
        "any uint64": random.integers(0, 2**64, COUNT, dtype=np.uint64),
    }


WIDE = wide_arrays()


def streamed(array: np.ndarray, name: str, *, exact: bool, threads: int = 2) -> TensorStats:
    way = Way(engine(name), threads=threads, exact=exact)
    return measure(ArrayFeed(array, array.dtype.name), dtype_of(array.dtype.name), way, Watch())


def smallest_normal(array: np.ndarray) -> float:
    return float(np.finfo(array.dtype).smallest_normal) if array.dtype.kind == "f" else 0.0


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("case", sorted(WIDE))
def test_exact_streams_are_numpys(case: str, name: str) -> None:
    array = WIDE[case]
    found = streamed(array, name, exact=True)
    assert (found.exact, found.error) == (True, 0.0)
    oracle.check(found, array, smallest_normal(array))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("case", sorted(WIDE))
def test_one_pass_keeps_its_bound(case: str, name: str) -> None:
    array = WIDE[case]
    found = streamed(array, name, exact=False)
    oracle.check(found, array, smallest_normal(array), ranks=False)
    finite = np.sort(array[np.isfinite(array)])
    if finite.size == 0:
        return
    allowed = found.error + 1 / finite.size
    for q in QUANTILES:
        value = found.quantiles[str(q)]
        share = [np.searchsorted(finite.astype(np.float64), value, side) / finite.size for side in ("left", "right")]
        assert share[0] - allowed <= q <= share[1] + allowed
    below = np.cumsum(found.histogram.counts)[:-1] / finite.size
    real = np.searchsorted(finite.astype(np.float64), found.histogram.edges[1:-1], "left") / finite.size
    assert np.abs(below - real).max() <= found.error + 1e-12
    assert sum(found.histogram.counts) == finite.size


def test_weights_are_within_a_thousandth() -> None:
    assert streamed(WIDE["weights"], "vectors", exact=False).error < 1e-3
    # a value that fills its bucket alone costs nothing
    for case in ("two values", "constant", "indexes"):
        assert streamed(WIDE[case], "vectors", exact=False).exact
    # most of a sparse tensor lies in the bucket of zero, which is known to hold zeros only
    assert streamed(WIDE["sparse"], "vectors", exact=False).error < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(WIDE))
def test_kernels_count_as_numpy_does(case: str) -> None:
    array = WIDE[case]
    for exact in (False, True):
        ours, theirs = (streamed(array, name, exact=exact) for name in ("kernels", "vectors"))
        for field in ("count", "nan", "inf", "zero", "subnormal", "min", "max", "quantiles", "histogram", "error"):
            assert getattr(ours, field) == getattr(theirs, field), field


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("dtype", ["float16", "int16", "uint16", "int8", "uint8", "bool"])
def test_small_types_by_counting(dtype: str, name: str) -> None:
    raw = np.random.default_rng(7).integers(0, 256, (1_700_000 // 2) * 2, dtype=np.uint8)
    array = (raw[1:] if dtype == "int8" else raw).view("u1" if dtype == "bool" else dtype)
    unit = "uint16" if array.itemsize == 2 else "uint8"
    found = measure(ArrayFeed(array, unit), dtype_of(dtype), Way(engine(name), threads=2), Watch())
    oracle.check(found, array != 0 if dtype == "bool" else array, 2.0**-14 if dtype == "float16" else 0.0)


class Packed:
    """Bytes that hold several elements each."""

    unit = "uint8"

    def __init__(self, data: np.ndarray, elements: int) -> None:
        self.data, self.elements = data, elements

    def parts(self, most: int) -> list:
        return [iter(np.array_split(self.data, range(600, self.data.size, 600)))]


@pytest.mark.parametrize("elements", [1, 2, 3, 4, 5, 7, 8, 2401, 4003])
@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2", "uint1", "float4e2m1", "float6e3m2"])
def test_packed_elements_without_what_fills_the_last_byte(dtype: str, elements: int) -> None:
    kind = dtype_of(dtype)
    codes = np.random.default_rng(elements).integers(0, 1 << kind.bits, elements, dtype=np.uint8)
    if kind.bits == 6:
        bits = np.unpackbits(codes, bitorder="little").reshape(-1, 8)[:, :6].reshape(-1)
        data = np.packbits(bits, bitorder="little")
    else:
        data = pack(codes, kind.bits)
        if elements * kind.bits % 8:
            data[-1] |= np.uint8(0xFF << elements * kind.bits % 8 & 0xFF)  # filled with ones
    found = measure(Packed(data, elements), kind, Way(vectors), Watch())
    if kind.kind == "int":
        codes = codes.astype(np.int8) << (8 - kind.bits) >> (8 - kind.bits)
    assert found == of_array(codes, kind)
    assert found.count == elements


def test_stopping_and_progress() -> None:
    array, seen = WIDE["weights"], []
    measure(ArrayFeed(array, "float32"), dtype_of("float32"), Way(vectors), Watch(seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == array.nbytes
    watch = Watch(cancelled=lambda: watch.done > 0)
    with pytest.raises(Cancelled, match="stopped"):
        measure(ArrayFeed(array, "float32"), dtype_of("float32"), Way(vectors), watch)
    assert 0 < watch.done < array.nbytes


def test_large_arrays_go_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.statistics import arrays

    monkeypatch.setattr(arrays, "SORTED_BYTES", 1000)
    weights = WIDE["weights"][:200_000]
    view = weights.reshape(400, 500)[::2, ::-1]
    assert not of_array(view).exact
    oracle.check(of_array(view, exact=True), view, smallest_normal(view))
    small = view.astype(np.float16).T
    oracle.check(of_array(small), small, 2.0**-14)
    assert of_array(np.broadcast_to(np.float32(2), (3000, 1000))).l1 == 6e6
