"""Running statistics over a set against numpy over all of it at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.errors import BrokenFile, UsageError
from core.trace.dataset import DataSetStats


@pytest.fixture
def inputs() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    made = [rng.normal(n, 1 + n, size=(1, 3, 4, 5)).astype(np.float32) for n in range(12)]
    made[4][0, 1, 0, 0] = np.nan
    made[7][0, 2, 3, 4] = np.inf
    made[9][0, 0] = 0
    return made


def gathered(inputs: list[np.ndarray], start: int = 0, stats: DataSetStats | None = None) -> DataSetStats:
    stats = stats or DataSetStats("f", [f"{n}.png" for n in range(len(inputs))])
    for number, array in enumerate(inputs[start:], start):
        stats.add("g0.v1", "act", "float32", 0, array, number, 1)
        stats.done = number + 1
    return stats


def test_moments_and_ranges_are_those_of_the_whole_set(inputs: list[np.ndarray]) -> None:
    value = gathered(inputs).values["g0.v1", 0]
    whole = np.stack(inputs).astype(np.float64)
    finite = whole[np.isfinite(whole)]
    found = value.to_json()
    assert (found["count"], found["nan"], found["inf"], found["samples"]) == (whole.size, 1, 1, 12)
    assert found["mean"] == pytest.approx(finite.mean(), rel=1e-12)
    assert found["std"] == pytest.approx(finite.std(), rel=1e-12)
    assert value.range() == (finite.min(), finite.max())
    low, high = value.range(99.0) or (0, 0)
    expected = np.quantile(finite, [0.005, 0.995])
    assert [low, high] == pytest.approx(expected.tolist(), rel=0.05)
    assert value.quantile(0.5) == pytest.approx(float(np.median(finite)), rel=0.02)


def test_channels_and_the_inputs_that_excite_them(inputs: list[np.ndarray]) -> None:
    channels = gathered(inputs).values["g0.v1", 0].channels
    assert channels is not None
    whole = np.stack(inputs)[:, 0].astype(np.float64)
    whole[~np.isfinite(whole)] = np.nan
    rows = np.moveaxis(whole, 1, 0).reshape(3, -1)
    assert channels.mean == pytest.approx(np.nanmean(rows, axis=1))
    assert channels.std == pytest.approx(np.nanstd(rows, axis=1))
    assert channels.low == pytest.approx(np.nanmin(rows, axis=1))
    most = np.nanmax(whole, axis=(2, 3))  # by input and channel
    for channel in range(3):
        order = np.argsort(-most[:, channel])[:8]
        assert channels.best[channel].tolist() == order.tolist()
        assert channels.top[channel] == pytest.approx(most[order, channel])


def test_going_on_later_gives_the_same(inputs: list[np.ndarray], tmp_path: Path) -> None:
    first = gathered(inputs[:5], 0, DataSetStats("f", [f"{n}.png" for n in range(12)]))
    first.save(tmp_path / "state.npz")
    again = DataSetStats.load(tmp_path / "state.npz")
    assert (again.done, again.samples[0]) == (5, "0.png")
    again.check("f")
    with pytest.raises(UsageError, match="another model, set or limits"):
        again.check("g")
    assert gathered(inputs, 5, again).to_json() == gathered(inputs).to_json()


def test_memory_does_not_grow_with_the_set(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    stats, sizes = DataSetStats("f", ["x"] * 400), []
    for number in range(400):
        stats.add("g0.v1", "act", "float32", 0, rng.normal(size=(1, 8, 50)).astype(np.float32), number, 1)
        if number in (99, 399):
            value = stats.values["g0.v1", 0]
            sizes.append(value.keys.nbytes + value.counts.nbytes)
    assert sizes[1] < 1.5 * sizes[0]  # only rarer magnitudes still come in


def test_a_number_of_channels_that_changes_is_none() -> None:
    stats = DataSetStats("f", ["a", "b"])
    for number, length in enumerate((4, 7)):
        stats.add("g0.v1", "tokens", "int64", 0, np.arange(2 * length).reshape(2, length), number, 1)
    value = stats.values["g0.v1", 0]
    assert value.channels is None
    assert value.range() == (0, 13)


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"PK nothing")
    with pytest.raises(BrokenFile, match="no statistics of a data set"):
        DataSetStats.load(tmp_path / "x.npz")
