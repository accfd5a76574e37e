import numpy as np
import pytest

from core.dtypes import dtype_of
from core.errors import UsageError
from core.statistics import channels, findings
from core.statistics.arrays import of_array
from core.statistics.spectral import spectrum
from core.statistics.types import spark


def codes(array: np.ndarray, name: str | None = None) -> list[str]:
    return [f.code for f in findings.from_stats("w", dtype_of(name or array.dtype.name), of_array(array))]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(9).standard_normal(shape).astype(np.float32)


def test_values_that_are_no_numbers() -> None:
    array = normal(100)
    assert codes(array) == []
    array[:3] = np.nan, np.inf, -np.inf
    found = findings.from_stats("w", dtype_of("float32"), of_array(array))
    assert [f.message for f in found] == ["1 NaN and 2 infinite of 100 elements."]
    assert found[0].severity == "error"
    assert found[0].at == "tensor w"
    mask = np.array([0, -np.inf], np.float32)
    assert [f.severity for f in findings.from_stats("m", dtype_of("float32"), of_array(mask))] == ["warning"]


def test_constant_and_zero() -> None:
    assert codes(np.zeros(10, np.float32)) == ["values.all_zero"]
    assert codes(np.full(10, 1.5, np.float32)) == ["values.constant"]
    assert codes(np.ones(1, np.float32)) == []  # a single number is no constant tensor


def test_strings_are_no_numbers() -> None:
    assert findings.from_stats("w", dtype_of("string"), of_array(np.array(["a", "b"], object))) == []


def test_subnormal() -> None:
    array = normal(1000)
    array[:11] = 1e-40
    assert codes(array) == ["values.subnormal"]
    array[:2] = 1
    assert codes(array) == []


@pytest.mark.parametrize(("name", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255), ("int4", -8, 7)])
def test_saturated(name: str, low: int, high: int) -> None:
    wide, middle = normal(20_000), (low + high) / 2
    kind = np.uint8 if low == 0 else np.int8
    good = np.clip(np.rint(middle + wide * (high - low) / 8), low, high).astype(kind)
    assert codes(good, name) == []
    bad = np.clip(np.rint(middle + wide * (high - low)), low, high).astype(kind)
    assert codes(bad, name) == ["values.saturated"]


def test_dead_and_loud_channels() -> None:
    array = normal(40, 64)
    assert findings.from_channels("w", channels.of_array(array, 0)) == []
    array[[3, 17]] = 0
    array[5] *= 30
    dead, loud = findings.from_channels("w", channels.of_array(array, 0))
    assert (dead.code, loud.code) == ("values.dead_channels", "values.outlier_channels")
    assert "2 of 40 channels along axis 0 are all zero: 3, 17." in dead.message
    assert loud.message.endswith(": 5.")


def test_duplicates_by_content() -> None:
    digests = {0: "a", 1: "b", 2: "a", 3: "", 4: "", 5: "b", 6: "b"}
    found = findings.duplicates(digests, {i: f"t{i}" for i in range(7)}, {i: 10 * i for i in range(7)})
    assert [(f.at, f.message) for f in found] == [
        ("tensor t1", "The same elements are stored again in 't5', 't6': 110 bytes could be shared."),
        ("tensor t0", "The same elements are stored again in 't2': 20 bytes could be shared."),
    ]


def test_small_matrices_are_decomposed_exactly() -> None:
    array = normal(40, 5, 6)
    found = spectrum(array)
    expected = np.linalg.svd(array.reshape(40, 30).astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    assert (found.exact, found.shape, found.rank) == (True, (40, 30), 30)
    assert found.stable_rank == pytest.approx((expected**2).sum() / expected[0] ** 2)


def test_large_matrices_by_projection() -> None:
    random = np.random.default_rng(10)
    low = (random.standard_normal((400, 12)) @ random.standard_normal((12, 300))).astype(np.float32)
    found = spectrum(low)
    expected = np.linalg.svd(low.astype(np.float64), compute_uv=False)
    assert not found.exact
    assert found.rank == 12
    np.testing.assert_allclose(found.values[:12], expected[:12], rtol=1e-4)
    assert found == spectrum(low)  # seeded
    assert [f.code for f in findings.from_spectrum("w", found)] == ["values.rank_collapse"]
    full = normal(400, 300)
    other = spectrum(full)
    norm = np.linalg.norm(full.astype(np.float64), 2)
    assert 0.97 * norm <= other.norm <= norm * (1 + 1e-5)
    assert other.rank is None
    assert findings.from_spectrum("w", other) == []


def test_what_has_no_spectrum() -> None:
    assert spectrum(np.zeros((3, 4))).rank == 0
    for array in (np.zeros(3), np.zeros((0, 3)), np.array([[np.nan, 1.0]])):
        with pytest.raises(UsageError, match="singular values need"):
            spectrum(array)


def test_sparkline() -> None:
    assert spark(of_array(np.arange(64)), 16) == [4] * 16
    assert spark(of_array(np.zeros(0)), 16) == []
