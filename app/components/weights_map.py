"""Where the bytes of a model are: element types as shares, modules or operators as a treemap."""

from __future__ import annotations

from typing import Final

import plotly.graph_objects as go
import streamlit as st

from app import format_text, session, theme
from app.components.charts import inert
from app.components.graph_canvas import blend
from app.components.shares import Share, shares
from app.services import models
from core import overview
from core.overview import Part, TypeShare

_TYPES: Final = 8
_NEARLY: Final = 0.9
_PATH_BAR: Final = 20


def weights_map(artifact: str) -> None:
    """Draw the shares of the element types, and the map of modules or operators under them."""
    head = st.container(horizontal=True, wrap=False, vertical_alignment="bottom", gap="small")
    head.markdown("## Weights", anchors=False, width="stretch")
    by = head.segmented_control(
        "Grouped by", ["module", "operator"], default="module", required=True,
        key="overview-by", label_visibility="collapsed", format_func=lambda word: f"by {word}",
    )  # fmt: skip
    measure = head.segmented_control(
        "Measured in", ["bytes", "parameters"], default="bytes", required=True,
        key="overview-measure", label_visibility="collapsed",
    )  # fmt: skip
    by_operator, by_bytes = by == "operator", measure == "bytes"
    actor = session.actor()
    parts = models.derived(
        actor, artifact, ("parts", by_operator), lambda m: overview.parts(m, "operator" if by_operator else "module")
    )
    mix = models.derived(actor, artifact, "dtypes", overview.dtype_mix)
    if not mix:
        st.caption("This file stores no tensors.")
        return
    hues = _type_colours(mix)
    whole = sum(row.nbytes if by_bytes else row.elements for row in mix)
    shares(
        [
            Share(
                hues[row.dtype],
                row.dtype,
                row.nbytes if by_bytes else row.elements,
                f"{format_text.size(row.nbytes) if by_bytes else format_text.count(row.elements)}, "
                f"{format_text.share(row.nbytes if by_bytes else row.elements, whole)} in "
                f"{format_text.plural(row.tensors, 'tensor')}",
            )
            for row in mix[:_TYPES]
        ],
        key="overview-types",
        mono=True,
    )
    start = _start(parts, by_bytes)
    theme.draw(
        _treemap(parts, hues, by_bytes, start),
        height=340,
        top=_PATH_BAR + 6 if start != parts[0].id else 4,
        key=f"overview-map-{by}-{measure}",
        alt=f"Treemap of {measure} by {by}, coloured by element type",
    )


def _type_colours(mix: tuple[TypeShare, ...]) -> dict[str, str]:
    hues = theme.palette().categories
    return {row.dtype: hues[min(place, theme.OTHER)] for place, row in enumerate(mix)}


def _treemap(parts: tuple[Part, ...], hues: dict[str, str], by_bytes: bool, start: str) -> go.Figure:
    colours = theme.palette()
    values = _values(parts, by_bytes)
    fills = [
        blend(hues.get(part.dtype, colours.muted), colours.surface, 0.38 if part.tensor >= 0 else 0.16)
        for part in parts
    ]
    return go.Figure(
        go.Treemap(
            ids=[part.id for part in parts],
            parents=[part.parent for part in parts],
            labels=[inert(part.label) for part in parts],
            values=values,
            branchvalues="total",
            text=[format_text.size(part.nbytes) if by_bytes else format_text.count(part.elements) for part in parts],
            customdata=[inert(part.name, 160) for part in parts],
            texttemplate="%{label}<br>%{text}",
            hovertemplate="%{customdata}<br>%{text}, %{percentRoot:.1%} of all<extra></extra>",
            textfont={"color": colours.text},
            marker={
                "colors": fills,
                "line": {"width": 1, "color": colours.surface},
                "pad": {"t": 20, "l": 3, "r": 3, "b": 3},
            },
            pathbar={
                "visible": start != parts[0].id,
                "thickness": _PATH_BAR,
                "edgeshape": "/",
                "textfont": {"color": colours.text},
            },
            level=start,
            maxdepth=3,
        )
    )


def _values(parts: tuple[Part, ...], by_bytes: bool) -> list[int]:
    return [part.nbytes if by_bytes else part.elements for part in parts]


def _start(parts: tuple[Part, ...], by_bytes: bool) -> str:
    """The innermost module that holds nearly everything: outer shells say nothing."""
    values, start = _values(parts, by_bytes), parts[0].id
    for part, value in zip(parts, values, strict=True):
        if part.parent == start and part.tensor < 0 and part.tensors > 1 and value >= _NEARLY * values[0]:
            start = part.id
    return start
