"""The same statistics straight from numpy in extended precision, without blocks, tables or merging."""

import numpy as np

from core.statistics.types import QUANTILES, TensorStats


def check(stats: TensorStats, array: np.ndarray, smallest_normal: float = 0.0, ranks: bool = True) -> None:
    """Compare with a reference over ``array`` (numbers, any shape) within the bounds of ``of_array``."""
    x = np.asarray(array).reshape(-1)
    assert stats.count == x.size
    if x.dtype.kind == "f":
        assert stats.nan == np.isnan(x).sum()
        assert (stats.pos_inf, stats.neg_inf) == ((x == np.inf).sum(), (x == -np.inf).sum())
        x = x[np.isfinite(x)]
    if x.size == 0:
        assert (stats.min, stats.max, stats.mean, stats.std, stats.absmax) == (None,) * 5
        assert (stats.l1, stats.l2, stats.zero, stats.quantiles, stats.histogram) == (0, 0, 0, {}, None)
        return
    assert stats.zero == (x == 0).sum()
    assert stats.subnormal == ((x != 0) & (np.abs(x.astype(np.float64)) < smallest_normal)).sum()
    assert (stats.min, stats.max) == (float(x.min()), float(x.max()))
    assert stats.absmax == max(abs(stats.min), abs(stats.max))
    moments(stats, x)
    if ranks:
        quantiles(stats, x)
        histogram(stats, x)


def moments(stats: TensorStats, x: np.ndarray) -> None:
    wide = x.astype(np.longdouble)
    l1, l2 = np.abs(wide).sum(), np.sqrt(np.square(wide).sum())
    largest = np.finfo(np.float64).max
    near(stats.mean, wide.mean(), 1e-12 * l1 / x.size)
    near(stats.std, wide.std(), 1e-12 * l2 / np.sqrt(x.size))
    near(min(stats.l1, largest), min(l1, largest), 1e-12 * l1)
    near(min(stats.l2, largest), min(l2, largest), 1e-12 * l2)


def near(found: float, expected: np.longdouble, bound: np.longdouble) -> None:
    assert abs(np.longdouble(found) - expected) <= bound + np.longdouble(1e-323), (found, expected, bound)


def quantiles(stats: TensorStats, x: np.ndarray) -> None:
    expected = np.quantile(x.astype(np.longdouble), QUANTILES)
    span = np.longdouble(stats.max) - np.longdouble(stats.min)
    for q, value in zip(QUANTILES, expected, strict=True):
        near(stats.quantiles[str(q)], value, 1e-15 * max(span, abs(value)))


def histogram(stats: TensorStats, x: np.ndarray) -> None:
    edges, counts = np.array(stats.histogram.edges), stats.histogram.counts
    assert len(edges) == len(counts) + 1
    assert sum(counts) == x.size
    if stats.min < stats.max:
        expected = np.linspace(np.longdouble(stats.min), np.longdouble(stats.max), len(edges))
        assert np.all(np.abs(edges - expected) <= 1e-15 * np.abs(expected).max() + np.longdouble(1e-323))
        # half as large, so that numpy's own differences stay finite; exact but for subnormals
        half = 0.5 if abs(stats.absmax) > 1 else 1.0
        assert np.histogram(x.astype(np.float64) * half, edges * half)[0].tolist() == list(counts)
