"""Overview: what is this file, is it safe, what does it take and give."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import format_text, session, theme
from app.components.figures import Figure, figures
from app.components.findings import findings_table
from app.components.signature import signature
from app.plain_text import mono, shorten
from app.services import models
from core import overview
from core.ir import Availability, Model
from core.overview import Part
from core.structure.categories import CATEGORIES

_STATES: Final[dict[Availability, str]] = {
    "available": "✓ available",
    "partial": "◐ partial",
    "needs companion": "◔ needs companion",
    "unavailable": "– unavailable",
}
_ROW: Final = 30
_OPERATORS: Final = 14


def draw() -> None:
    """Draw the page."""
    artifact, model = session.current_model()
    _signature(artifact, model)
    _figures(artifact, model)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _map(artifact, model)
    with right:
        _operators(artifact, model)
        _types(artifact, model)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.markdown("## Findings", anchors=False)
        findings_table(model.findings, key="overview-findings")
        _files(model)
    with right:
        _capabilities(model)
        _metadata(model)


def _signature(artifact: str, model: Model) -> None:
    inputs, outputs = models.derived(session.actor(), artifact, "signature", overview.signature)
    if model.main_graph is None:
        return
    facts = [fact for fact in (model.producer, _opset_text(model)) if fact]
    signature(inputs, outputs, title=model.kind, name=model.name, facts=facts, key="overview-signature")


def _figures(artifact: str, model: Model) -> None:
    actor = session.actor()
    weights = models.derived(actor, artifact, "weight bytes", overview.weight_bytes)
    kinds = models.derived(actor, artifact, "operators", overview.operators)
    graphs = len(model.graphs) - 1
    figures(
        [
            Figure(
                "Parameters",
                format_text.count(model.parameters),
                f"in {format_text.plural(len(model.tensors), 'stored tensor')}",
            ),
            Figure(
                "Weights",
                format_text.size(weights),
                f"{format_text.share(weights, model.size_bytes)} of {format_text.size(model.size_bytes)}",
            ),
            Figure(
                "Operators",
                format_text.count(model.node_count),
                format_text.plural(len(kinds), "kind")
                + (
                    f", {format_text.plural(graphs, 'subgraph or function', 'subgraphs and functions')}"
                    if graphs > 0
                    else ""
                ),
            ),
            _version_figure(model),
        ],
        key="overview-figures",
    )


def _version_figure(model: Model) -> Figure:
    if model.opsets:
        domain, version = next(iter(model.opsets.items()))
        more = len(model.opsets) - 1
        note = f"{domain}" + (f" and {format_text.plural(more, 'more domain')}" if more else "")
        return Figure("Opset", str(version), note)
    return Figure("Files", format_text.count(len(model.sources)), model.kind)


def _opset_text(model: Model) -> str:
    return ", ".join(f"{domain} {version}" for domain, version in model.opsets.items())


# --- where the bytes are ----------------------------------------------------------------


def _map(artifact: str, model: Model) -> None:
    head = st.container(horizontal=True, vertical_alignment="center")
    head.markdown("## Where the weights are", anchors=False, width="stretch")
    by = head.segmented_control(
        "Grouped by", ["module", "operator"], default="module", required=True,
        key="overview-by", label_visibility="collapsed", format_func=lambda word: f"by {word}",
    )  # fmt: skip
    measure = head.segmented_control(
        "Measured in", ["bytes", "parameters"], default="bytes", required=True,
        key="overview-measure", label_visibility="collapsed",
    )  # fmt: skip
    parts = models.derived(
        session.actor(),
        artifact,
        ("parts", by),
        lambda m: overview.parts(m, "operator" if by == "operator" else "module"),
    )
    if parts[0].tensors == 0:
        st.caption("This file stores no tensors.")
        return
    event = theme.draw(
        _treemap(parts, measure == "bytes"),
        height=360,
        key=f"overview-map-{by}-{measure}",
        alt=f"Treemap of {measure} by {by}",
    )
    del event


def _treemap(parts: tuple[Part, ...], by_bytes: bool) -> go.Figure:
    colours = theme.palette()
    values = [part.nbytes if by_bytes else part.elements for part in parts]
    largest = max(values[1:], default=1) or 1
    shades = theme.scale(colours.sequential[1:8])
    texts = [format_text.size(part.nbytes) if by_bytes else format_text.count(part.elements) for part in parts]
    return go.Figure(
        go.Treemap(
            ids=[part.id for part in parts],
            parents=[part.parent for part in parts],
            labels=[_label(part.label) for part in parts],
            values=values,
            branchvalues="total",
            text=texts,
            texttemplate="%{label}<br>%{text}",
            hovertemplate="%{label}<br>%{text}, %{percentRoot:.1%} of all<extra></extra>",
            marker={
                "colors": [min(value / largest, 1.0) ** 0.5 for value in values],
                "colorscale": shades,
                "cmin": 0,
                "cmax": 1,
                "line": {"width": 1, "color": colours.surface},
                "pad": {"t": 18, "l": 2, "r": 2, "b": 2},
            },
            tiling={"pad": 1},
            pathbar={"visible": True, "thickness": 20, "edgeshape": "/"},
            maxdepth=4,
        )
    )


def _label(text: str) -> str:
    """Plotly reads ``<b>`` and ``&amp;`` in labels: a look-alike cannot."""
    return shorten(text, 60).replace("&", "\uff06").replace("<", "\u2039").replace(">", "\u203a")


# --- what it is made of -----------------------------------------------------------------


def _operators(artifact: str, model: Model) -> None:
    kinds = models.derived(session.actor(), artifact, "operators", overview.operators)
    st.markdown("## Operators", anchors=False)
    if not kinds:
        st.caption("This file has weights and no graph.")
        return
    colours = theme.palette()
    shown = kinds[:_OPERATORS][::-1]
    hues = {name: colours.categories[place % len(colours.categories)] for place, name in enumerate(CATEGORIES)}
    figure = go.Figure(
        go.Bar(
            x=[kind.count for kind in shown],
            y=[_label(kind.op_type) for kind in shown],
            orientation="h",
            marker={"color": [hues[kind.category] for kind in shown], "line": {"width": 0}},
            text=[format_text.count(kind.count) for kind in shown],
            textposition="outside",
            cliponaxis=False,
            customdata=[kind.category for kind in shown],
            hovertemplate="%{y}: %{x}<br>%{customdata}<extra></extra>",
        )
    )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(tickfont={"size": 11}, ticklabelstandoff=6)
    theme.draw(figure, height=24 * len(shown) + 16, key="overview-operators", alt="Operators by how often they occur")
    if len(kinds) > _OPERATORS:
        rest = sum(kind.count for kind in kinds[_OPERATORS:])
        st.caption(
            f"and {format_text.plural(len(kinds) - _OPERATORS, 'more kind')}, {format_text.count(rest)} operators"
        )


def _types(artifact: str, model: Model) -> None:
    mix = models.derived(session.actor(), artifact, "dtypes", overview.dtype_mix)
    if not mix:
        return
    st.markdown("## Element types", anchors=False)
    whole = sum(row.nbytes for row in mix)
    frame = pd.DataFrame(
        {
            "dtype": [row.dtype for row in mix],
            "share": [100 * row.nbytes / whole if whole else 0.0 for row in mix],
            "bytes": [format_text.size(row.nbytes) for row in mix],
            "tensors": [row.tensors for row in mix],
        }
    )
    st.dataframe(
        frame,
        key="overview-types",
        hide_index=True,
        row_height=_ROW,
        height=_ROW * (min(len(frame), 5) + 1) + 8,
        column_config={
            "dtype": st.column_config.TextColumn("Type"),
            "share": st.column_config.ProgressColumn("Share of bytes", format="%.1f %%", min_value=0, max_value=100),
            "bytes": st.column_config.TextColumn("Bytes", alignment="right"),
            "tensors": st.column_config.NumberColumn("Tensors"),
        },
    )


# --- what can be done with it -----------------------------------------------------------


def _capabilities(model: Model) -> None:
    st.markdown("## What can be done with it", anchors=False)
    capabilities = list(model.capabilities.values())
    st.dataframe(
        pd.DataFrame(
            {
                "name": [capability.name for capability in capabilities],
                "state": [_STATES[capability.availability] for capability in capabilities],
                "reason": [shorten(capability.reason, 400) for capability in capabilities],
            }
        ),
        key="overview-capabilities",
        hide_index=True,
        row_height=_ROW,
        height=_ROW * (len(capabilities) + 1) + 8,
        column_config={
            "name": st.column_config.TextColumn("Capability", width="small"),
            "state": st.column_config.TextColumn("State", width="small"),
            "reason": st.column_config.TextColumn("Reason", width="large"),
        },
    )


def _metadata(model: Model) -> None:
    if not model.metadata:
        return
    st.markdown("## Metadata", anchors=False)
    frame = pd.DataFrame(
        {
            "key": [shorten(key, 120) for key in model.metadata],
            "value": [shorten(value, 2000) for value in model.metadata.values()],
        }
    )
    _pairs(frame, "overview-metadata", "Key", "Value")


def _files(model: Model) -> None:
    st.markdown("## Files", anchors=False)
    frame = pd.DataFrame(
        {
            "name": [shorten(source.name, 200) for source in model.sources],
            "size": [format_text.size(source.size) for source in model.sources],
        }
    )
    _pairs(frame, "overview-files", "File", "Size")
    st.caption(f"in {mono(model.path.rsplit('/', 1)[0] or '/', 200)}")


def _pairs(frame: pd.DataFrame, key: str, left: str, right: str) -> Any:
    first, second = frame.columns
    return st.dataframe(
        frame,
        key=key,
        hide_index=True,
        row_height=_ROW,
        height=_ROW * (min(len(frame), 8) + 1) + 8,
        column_config={first: st.column_config.TextColumn(left), second: st.column_config.TextColumn(right)},
    )


draw()
