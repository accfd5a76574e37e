"""What a run says as a whole: how magnitudes go along the depth, and where numbers stop being numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.trace.types import NodeTiming, TracedValue


@dataclass(frozen=True, slots=True)
class DepthProfile:
    """Magnitudes by value in the order in which they were made; one list a column.

    Attributes:
        low, high: 0.01 and 0.99 quantiles.
    """

    value: list[str]
    name: list[str]
    node: list[str]
    absmax: list[float | None]
    std: list[float | None]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]
    nan: list[int]
    inf: list[int]


def depth_profile(values: Sequence[TracedValue]) -> DepthProfile:
    """The profile over all values with statistics, in their order; text and empty ones left out."""
    shown = [v for v in values if v.stats is not None and v.stats.count and v.dtype != "string"]
    stats = [v.stats for v in shown if v.stats is not None]
    return DepthProfile(
        value=[v.id for v in shown],
        name=[v.name for v in shown],
        node=[v.node for v in shown],
        absmax=[s.absmax for s in stats],
        std=[s.std for s in stats],
        mean=[s.mean for s in stats],
        low=[s.quantiles.get("0.01") for s in stats],
        high=[s.quantiles.get("0.99") for s in stats],
        nan=[s.nan for s in stats],
        inf=[s.inf for s in stats],
    )


def first_not_finite(values: Sequence[TracedValue]) -> TracedValue | None:
    """The first value in order that holds NaN or infinity, ``None`` where all are finite."""
    return next(
        (v for v in values if v.stats is not None and v.stats.finite < v.stats.count and v.dtype != "string"), None
    )


def slowest(nodes: Sequence[NodeTiming], most: int = 20) -> list[NodeTiming]:
    """The nodes that took longest, the slowest first; nodes that were fused away are left out."""
    timed = [node for node in nodes if node.latency_us is not None]
    return sorted(timed, key=lambda node: -(node.latency_us or 0.0))[:most]


def latency_by_operator(nodes: Sequence[NodeTiming]) -> dict[str, float]:
    """Microseconds by operator type, the largest first."""
    total: dict[str, float] = {}
    for node in nodes:
        if node.latency_us is not None:
            total[node.op_type] = total.get(node.op_type, 0.0) + node.latency_us
    return dict(sorted(total.items(), key=lambda item: -item[1]))
