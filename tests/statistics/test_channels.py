import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.errors import LimitExceeded, UsageError
from core.statistics import channels


@settings(max_examples=120, deadline=None)
@given(
    array=hnp.arrays(
        st.sampled_from(["float32", "float16", "int8", "bool"]),
        hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6),
        elements=None,
    ),
    data=st.data(),
)
def test_columns_are_numpys_along_any_axis(array: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    piece = data.draw(st.integers(1, 40))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channels, "PIECE", piece)  # pieces end anywhere within rows and channels
        found = channels.of_array(array, axis)
    assert found.axis == axis % array.ndim
    rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], array.size // max(array.shape[axis], 1))
    for i, row in enumerate(rows.astype(np.float64)):
        good = row[np.isfinite(row)]
        assert (found.count[i], found.nan[i], found.inf[i]) == (row.size, np.isnan(row).sum(), np.isinf(row).sum())
        assert found.zero[i] == (row == 0).sum()
        expected = [np.nan] * 6
        if good.size:
            expected = [good.min(), good.max(), good.mean(), good.std(), np.linalg.norm(good), np.abs(good).max()]
        names = ("min", "max", "mean", "std", "l2", "absmax")
        size = expected[5] if good.size else 0.0
        for name, value in zip(names, expected, strict=True):
            np.testing.assert_allclose(getattr(found, name)[i], value, rtol=1e-12, atol=1e-13 * size, err_msg=name)


def test_complex_and_text() -> None:
    found = channels.of_array(np.array([[3 + 4j, 0], [1j, complex(np.nan, 0)]]), 0)
    assert found.max.tolist() == [5.0, 1.0]
    assert found.nan.tolist() == [0, 1]
    with pytest.raises(UsageError, match="text"):
        channels.of_array(np.array(["a"]), 0)


def test_axes_and_bounds() -> None:
    with pytest.raises(UsageError, match="2 axes, there is no axis 2"):
        channels.of_array(np.zeros((2, 2)), 2)
    with pytest.raises(UsageError, match="0 axes"):
        channels.of_array(np.zeros(()), 0)
    with pytest.raises(LimitExceeded, match="number of channels"):
        channels.of_array(np.zeros(channels.CHANNELS + 1, np.int8), 0)


def test_json_has_null_for_what_is_unknown() -> None:
    rows = channels.of_array(np.array([[np.nan, np.nan], [1.0, 3.0]]), 0).to_json()
    assert rows[0]["mean"] is None
    assert rows[1] == {
        "count": 2, "nan": 0, "inf": 0, "zero": 0, "min": 1.0, "max": 3.0, "mean": 2.0, "std": 1.0,
        "l2": pytest.approx(10**0.5), "absmax": 3.0,
    }  # fmt: skip
