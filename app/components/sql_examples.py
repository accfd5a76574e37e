"""Questions to begin with, as buttons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import streamlit as st


@dataclass(frozen=True, slots=True)
class Example:
    """One ready query under a short title."""

    key: str
    title: str
    text: str


EXAMPLES: Final = (
    Example(
        "largest", "Largest tensors",
        "SELECT name, dtype, bytes, bytes * 8.0 / nullif(elements, 0) AS bits_per_weight\n"
        "FROM tensors ORDER BY bytes DESC LIMIT 40",
    ),
    Example(
        "dtypes", "Bytes by dtype",
        "SELECT dtype, encoding, count(*) AS tensors, sum(bytes) AS bytes\n"
        "FROM tensors GROUP BY ALL ORDER BY bytes DESC",
    ),
    Example(
        "modules", "Bytes by module",
        "SELECT regexp_extract(name, '^[^./]+([./][^./]+)?') AS module, sum(bytes) AS bytes\n"
        "FROM tensors GROUP BY ALL ORDER BY bytes DESC LIMIT 40",
    ),
    Example(
        "operators", "Operators",
        "SELECT op_type, count(*) AS nodes FROM nodes GROUP BY ALL ORDER BY nodes DESC",
    ),
    Example(
        "layers", "Spread by layer",
        "SELECT TRY_CAST(regexp_extract(name, '[./](\\d+)[./]', 1) AS INTEGER) AS layer,\n"
        "       median(std) AS std, max(absmax) AS absmax\n"
        "FROM statistics GROUP BY ALL HAVING layer IS NOT NULL ORDER BY layer",
    ),
    Example(
        "odd", "Odd weights",
        "SELECT name, nan, pos_inf + neg_inf AS inf, subnormal, zero::DOUBLE / count AS zero_share,\n"
        "       absmax / nullif(std, 0) AS reach\n"
        "FROM statistics ORDER BY nan + inf DESC, reach DESC NULLS LAST LIMIT 40",
    ),
    Example(
        "hubs", "Widely used values",
        "SELECT name, dtype, consumers FROM graph_values ORDER BY consumers DESC LIMIT 40",
    ),
    Example(
        "slow", "Slowest operators",
        "SELECT op_type, count(*) AS nodes, sum(latency_us) AS microseconds\n"
        "FROM trace_nodes GROUP BY ALL ORDER BY microseconds DESC",
    ),
    Example(
        "growth", "Largest activations",
        "SELECT name, dtype, absmax, std, nan FROM trace_values ORDER BY absmax DESC NULLS LAST LIMIT 40",
    ),
)  # fmt: skip


def example_buttons(use: Callable[[str], None]) -> None:
    """Draw the buttons; ``use`` gets the text of the one that was pressed, in a callback."""
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.caption("Examples", width="content")
        for example in EXAMPLES:
            st.button(example.title, key=f"sql-example-{example.key}", on_click=use, args=(example.text,))
