"""The tables that pages show, as listings."""

from __future__ import annotations

from typing import Final

from core.store import stats_rows
from core.store.paging import Listing


def _plain(alias: str, names: str) -> dict[str, str]:
    return {name: f"{alias}.{name}" for name in names.split()}


_TENSOR: Final = _plain(
    "t", "idx name dtype encoding shape elements bytes source start stop role graph storage quantized problem"
)

TENSORS: Final = Listing(
    rows="tensors AS t LEFT JOIN tensor_stats AS s ON s.artifact = t.artifact AND s.idx = t.idx",
    owner="t.artifact",
    key="t.idx",
    visible={**_TENSOR, **stats_rows.BRIEF},
    sorts={
        **_plain("t", "idx name dtype encoding elements bytes start role"),
        "rank": "len(t.shape)",
        **stats_rows.SORTS,
    },
    text="t.name",
    equals=_plain("t", "dtype encoding role"),
    base="tensors AS t",
)

NODES: Final = Listing(
    rows="nodes AS t",
    owner="t.artifact",
    key="t.row",
    visible={"id": "'g' || t.graph || '.n' || t.idx", **_plain("t", "row graph idx name op_type domain scope")},
    sorts=_plain("t", "row name op_type domain scope"),
    text="t.name",
    equals=_plain("t", "op_type domain scope"),
)

VALUES: Final = Listing(
    rows='"values" AS t',
    owner="t.artifact",
    key="t.row",
    visible={
        "id": "'g' || t.graph || '.v' || t.idx",
        **_plain("t", "row graph idx name dtype shape producer consumers tensor is_input is_output"),
    },
    sorts=_plain("t", "row name dtype consumers"),
    text="t.name",
    equals=_plain("t", "dtype"),
)

TRACE_VALUES: Final = Listing(
    rows="trace_values AS s",
    owner="s.trace",
    key="s.row",
    visible={
        **_plain("s", "row id name node step dtype shape start stop"),
        "stored": "s.start >= 0",
        "reason": "s.reason",
        **stats_rows.BRIEF,
    },
    sorts={**_plain("s", "row id name node step dtype count"), "stored": "s.start >= 0", **stats_rows.SORTS},
    text="s.name",
    equals=_plain("s", "dtype id node"),
)

TRACE_NODES: Final = Listing(
    rows="trace_nodes AS t",
    owner="t.trace",
    key="t.row",
    visible=_plain("t", "row id name op_type latency_us provider"),
    sorts=_plain("t", "row name op_type latency_us provider"),
    text="t.name",
    equals=_plain("t", "op_type provider"),
)
