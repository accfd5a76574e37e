"""What a transformer's configuration says, and the memory it takes at a batch and a length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final, cast

import pandas as pd
import streamlit as st

from app import format_text
from app.plain_text import mono, shorten
from core.architecture import Architecture
from core.ir import Model

WIDTHS: Final[tuple[tuple[str, float], ...]] = (
    ("float32", 32), ("float16 or bfloat16", 16), ("8 bits", 8), ("4 bits", 4),
)  # fmt: skip
"""Element widths that a runtime may hold weights and cache in; scales of block formats not counted."""

_ROW: Final = 30


def architecture_panel(model: Model) -> None:
    """Draw the panel where the reader found a configuration; nothing where it did not."""
    facts = architecture_of(model)
    if facts is None:
        return
    st.markdown("## Architecture", anchors=False)
    st.caption(f"{mono(facts.name or facts.model_type, 80)} from {mono(facts.source, 60)}")
    left, right = st.columns([2, 3], gap="medium")
    with left:
        _facts(facts)
    with right:
        _memory(model, facts)


def architecture_of(model: Model) -> Architecture | None:
    """The configuration that a reader left in ``model.details``."""
    found = model.details.get("architecture")
    if not isinstance(found, Mapping):
        return None
    table = cast(Mapping[str, object], found)
    known = {f.name: table[f.name] for f in fields(Architecture) if f.name in table}
    return Architecture(**known)  # type: ignore[arg-type]


def _facts(facts: Architecture) -> None:
    rows = {
        "Layers": facts.layers,
        "Attention heads": facts.heads,
        "Key and value heads": facts.kv_heads,
        "Elements of a head": facts.head_dim,
        "Width": facts.hidden,
        "Feed-forward width": facts.feed_forward,
        "Vocabulary": facts.vocabulary,
        "Context, tokens": facts.context,
        "Experts": facts.experts,
    }
    shown = {name: format_text.count(value) for name, value in rows.items() if value is not None}
    if facts.tied_embeddings is not None:
        shown["Embeddings tied"] = "yes" if facts.tied_embeddings else "no"
    if facts.dtype:
        shown["Saved as"] = shorten(facts.dtype, 40)
    frame = pd.DataFrame({"fact": list(shown), "value": list(shown.values())})
    st.dataframe(
        frame,
        key="overview-architecture",
        hide_index=True,
        row_height=_ROW,
        height="auto",
        column_config={
            "fact": st.column_config.TextColumn("Fact", width=180),
            "value": st.column_config.TextColumn("Value", width=120, alignment="right"),
        },
    )


def _memory(model: Model, facts: Architecture) -> None:
    left, right = st.columns(2)
    batch = left.number_input("Sequences at once", 1, 65_536, 1, key="overview-memory-batch")
    bound = 1 << 24
    proposed = min(facts.context or 4096, bound)
    length = right.number_input("Tokens of each", 1, bound, proposed, key="overview-memory-length")
    st.dataframe(
        memory_table(model.parameters, facts, int(batch), int(length)),
        key="overview-memory",
        hide_index=True,
        row_height=_ROW,
        height="auto",
        column_config={
            "held in": st.column_config.TextColumn("Held in", width=170),
            "weights": st.column_config.TextColumn("Weights", width=110, alignment="right"),
            "cache": st.column_config.TextColumn("Key/value cache", width=130, alignment="right"),
            "both": st.column_config.TextColumn("Both", width=110, alignment="right"),
        },
    )
    st.caption("Weights: parameters × width. Cache: 2 × layers × sequences × tokens × key/value heads × head × width.")


def memory_table(parameters: int, facts: Architecture, batch: int, length: int) -> pd.DataFrame:
    """Bytes of weights and of the key/value cache by element width, with units."""
    rows: list[dict[str, str]] = []
    for name, bits in WIDTHS:
        weights = int(parameters * bits / 8)
        cache = facts.kv_cache_bytes(batch, length, int(bits))
        rows.append(
            {
                "held in": name,
                "weights": format_text.size(weights),
                "cache": format_text.NONE if cache is None else format_text.size(cache),
                "both": format_text.NONE if cache is None else format_text.size(weights + cache),
            }
        )
    return pd.DataFrame(rows)
