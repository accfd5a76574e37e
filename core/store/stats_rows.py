"""``TensorStats`` as columns and back; the same columns stand in ``tensor_stats`` and ``trace_values``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.statistics.types import QUANTILES, Histogram, TensorStats
from core.store.arrow import clamp, pa

_COUNTS: Final = ("count", "nan", "pos_inf", "neg_inf", "zero", "subnormal")
_NUMBERS: Final = ("min", "max", "mean", "std", "absmax", "l1", "l2")
COLUMNS: Final = (*_COUNTS, *_NUMBERS, "quantiles", "edges", "counts", "exact", "error")

SELECT: Final = ", ".join(f"s.{name}" for name in COLUMNS)
"""The columns of an alias ``s``, as the reading functions expect them."""

BRIEF: Final[Mapping[str, str]] = {
    "count": "s.count",
    "nan": "s.nan",
    "inf": "s.pos_inf + s.neg_inf",
    **{name: f"s.{name}" for name in ("zero", "min", "max", "mean", "std", "absmax", "l2")},
    **{f"q{int(q * 1000):03d}": f"s.quantiles[{i + 1}]" for i, q in enumerate(QUANTILES)},
    "histogram": "s.counts",
    "exact": "s.exact",
}
"""What tables show: ``q500`` is the median, ``histogram`` the counts of a sparkline."""

SORTS: Final[Mapping[str, str]] = {
    name: sql for name, sql in BRIEF.items() if name not in ("count", "histogram", "exact")
}


def columns(stats: Sequence[TensorStats | None]) -> dict[str, Any]:
    """Arrow columns by name, null where there are no statistics."""
    out: dict[str, Any] = {
        name: pa.array([None if s is None else clamp(getattr(s, name)) for s in stats], pa.int64()) for name in _COUNTS
    }
    for name in _NUMBERS:
        out[name] = pa.array([None if s is None else getattr(s, name) for s in stats], pa.float64())
    histograms = [None if s is None else s.histogram for s in stats]
    out["quantiles"] = pa.array([_quantiles(s) for s in stats], pa.list_(pa.float64()))
    out["edges"] = pa.array([None if h is None else list(h.edges) for h in histograms], pa.list_(pa.float64()))
    out["counts"] = pa.array([None if h is None else list(h.counts) for h in histograms], pa.list_(pa.int64()))
    out["exact"] = pa.array([None if s is None else s.exact for s in stats], pa.bool_())
    out["error"] = pa.array([None if s is None else s.error for s in stats], pa.float64())
    return out


def from_row(row: Sequence[Any]) -> TensorStats | None:
    """The statistics of one row selected with ``SELECT``; ``None`` where it has none."""
    found = dict(zip(COLUMNS, row, strict=True))
    if found["count"] is None:
        return None
    quantiles, edges, counts = found.pop("quantiles"), found.pop("edges"), found.pop("counts")
    return TensorStats(
        **found,
        quantiles={f"{q:g}": x for q, x in zip(QUANTILES, quantiles or (), strict=False) if x is not None},
        histogram=None if edges is None else Histogram(tuple(edges), tuple(counts)),
    )


def _quantiles(stats: TensorStats | None) -> list[float | None] | None:
    if stats is None or not stats.quantiles:
        return None
    return [stats.quantiles.get(f"{q:g}") for q in QUANTILES]
