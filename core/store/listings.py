"""The tables that pages show, as listings."""

from __future__ import annotations

from typing import Final

from core.store import stats_rows
from core.store.paging import Listing

TENSORS: Final = Listing(
    rows="tensors AS t LEFT JOIN tensor_stats AS s ON s.artifact = t.artifact AND s.idx = t.idx",
    owner="t.artifact",
    key="t.idx",
    visible=(
        "t.idx, t.name, t.dtype, t.encoding, t.shape, t.elements, t.bytes, t.source, t.start, t.stop, "
        f"t.role, t.graph, t.storage, t.quantized, t.problem, {stats_rows.BRIEF}"
    ),
    sorts={
        **{name: f"t.{name}" for name in ("idx", "name", "dtype", "encoding", "elements", "bytes", "start", "role")},
        "rank": "len(t.shape)",
        **stats_rows.SORTS,
    },
    text="t.name",
    equals={"dtype": "t.dtype", "encoding": "t.encoding", "role": "t.role"},
    base="tensors AS t",
    joined=frozenset(stats_rows.SORTS),
)

NODES: Final = Listing(
    rows="nodes AS t",
    owner="t.artifact",
    key="t.row",
    visible="t.row, t.graph, t.idx, 'g' || t.graph || '.n' || t.idx AS id, t.name, t.op_type, t.domain, t.scope",
    sorts={name: f"t.{name}" for name in ("row", "name", "op_type", "domain", "scope")},
    text="t.name",
    equals={"op_type": "t.op_type", "domain": "t.domain", "scope": "t.scope"},
)

VALUES: Final = Listing(
    rows='"values" AS t',
    owner="t.artifact",
    key="t.row",
    visible=(
        "t.row, t.graph, t.idx, 'g' || t.graph || '.v' || t.idx AS id, t.name, t.dtype, t.shape, "
        "t.producer, t.consumers, t.tensor, t.is_input, t.is_output"
    ),
    sorts={name: f"t.{name}" for name in ("row", "name", "dtype", "consumers")},
    text="t.name",
    equals={"dtype": "t.dtype"},
)

TRACE_VALUES: Final = Listing(
    rows="trace_values AS s",
    owner="s.trace",
    key="s.row",
    visible=(
        "s.row, s.id, s.name, s.node, s.step, s.dtype, s.shape, s.start, s.stop, s.start >= 0 AS stored, s.reason, "
        + stats_rows.BRIEF
    ),
    sorts={
        **{name: f"s.{name}" for name in ("row", "id", "name", "node", "step", "dtype", "count")},
        "stored": "s.start >= 0",
        **stats_rows.SORTS,
    },
    text="s.name",
    equals={"dtype": "s.dtype", "id": "s.id", "node": "s.node"},
)

TRACE_NODES: Final = Listing(
    rows="trace_nodes AS t",
    owner="t.trace",
    key="t.row",
    visible="t.row, t.id, t.name, t.op_type, t.latency_us, t.provider",
    sorts={name: f"t.{name}" for name in ("row", "name", "op_type", "latency_us", "provider")},
    text="t.name",
    equals={"op_type": "t.op_type", "provider": "t.provider"},
)
