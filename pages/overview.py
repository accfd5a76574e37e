"""Overview: what is this file, is it safe, what does it take and give."""

from __future__ import annotations

from typing import Final, get_args

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import format_text, session, theme
from app.components.charts import inert
from app.components.figures import Figure, figures
from app.components.findings import findings_table
from app.components.graph_canvas import blend, hue
from app.components.shares import Share, shares
from app.components.signature import signature
from app.plain_text import mono, shorten
from app.services import models
from core import overview
from core.ir import CapabilityName, Model
from core.overview import Part, TypeShare

_ROW: Final = 30
_OPERATORS: Final = 12
_TYPES: Final = 8
_NEARLY: Final = 0.9


def draw() -> None:
    """Draw the page."""
    artifact, model = session.current_model()
    _signature(artifact, model)
    _figures(artifact, model)
    if model.findings:
        findings_table(model.findings, key="overview-findings", rows=4)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _map(artifact, model)
    with right:
        _operators(artifact, model)
    _capabilities(model)
    left, right = st.columns(2, gap="medium")
    with left:
        _files(model)
    with right:
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
                + (f" in {format_text.plural(len(model.graphs), 'graph')}" if len(model.graphs) > 1 else ""),
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
    theme.draw(
        _treemap(parts, hues, by_bytes), height=340, top=26, key=f"overview-map-{by}-{measure}",
        alt=f"Treemap of {measure} by {by}, coloured by element type",
    )  # fmt: skip


def _type_colours(mix: tuple[TypeShare, ...]) -> dict[str, str]:
    hues = theme.palette().categories
    return {row.dtype: hues[min(place, theme.OTHER)] for place, row in enumerate(mix)}


def _treemap(parts: tuple[Part, ...], hues: dict[str, str], by_bytes: bool) -> go.Figure:
    colours = theme.palette()
    values = [part.nbytes if by_bytes else part.elements for part in parts]
    start = _start(parts, values)
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
                "thickness": 20,
                "edgeshape": "/",
                "textfont": {"color": colours.text},
            },
            level=start,
            maxdepth=3,
        )
    )


def _start(parts: tuple[Part, ...], values: list[int]) -> str:
    """The innermost module that holds nearly everything: outer shells say nothing."""
    start = parts[0].id
    for part, value in zip(parts, values, strict=True):
        if part.parent == start and part.tensor < 0 and part.tensors > 1 and value >= _NEARLY * values[0]:
            start = part.id
    return start


# --- what it is made of -----------------------------------------------------------------


def _operators(artifact: str, model: Model) -> None:
    kinds = models.derived(session.actor(), artifact, "operators", overview.operators)
    st.markdown("## Operators", anchors=False)
    if not kinds:
        st.caption("This file has weights and no graph.")
        return
    colours = theme.palette()
    shown = kinds[:_OPERATORS]
    present = list(dict.fromkeys(kind.category for kind in shown))
    shares([Share(hue(name, colours), name) for name in present], key="overview-categories", bar=False)
    figure = go.Figure(
        go.Bar(
            x=[kind.count for kind in shown],
            y=[inert(kind.op_type, 24) for kind in shown],
            orientation="h",
            marker={"color": [hue(kind.category, colours) for kind in shown], "line": {"width": 0}},
            text=[format_text.count(kind.count) for kind in shown],
            textposition="outside",
            cliponaxis=False,
            customdata=[[inert(kind.op_type, 160), kind.category] for kind in shown],
            hovertemplate="%{customdata[0]}: %{x}<br>%{customdata[1]}<extra></extra>",
        )
    )
    figure.update_layout(bargap=0.35)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(
        autorange="reversed", showgrid=False, showline=False, tickfont={"size": 12}, ticklabelstandoff=6
    )
    event = theme.draw(
        figure, height=24 * len(shown) + 16, key="overview-operators", on_select="rerun", selection_mode="points",
        alt="Operators by how often they occur; a bar leads to the first of its kind in the graph",
    )  # fmt: skip
    if len(kinds) > _OPERATORS:
        rest = sum(kind.count for kind in kinds[_OPERATORS:])
        more = format_text.plural(len(kinds) - _OPERATORS, "more kind")
        st.caption(f"and {more} ({format_text.plural(rest, 'operator')})")
    for point in event.selection.points:
        session.go("graph", selection=shown[point["point_index"]].first, inside="", level="")


# --- what can be done with it -----------------------------------------------------------


def _capabilities(model: Model) -> None:
    st.markdown("## What can be done with it", anchors=False)
    listed = [model.capability(name) for name in get_args(CapabilityName)]
    whole = [item.name for item in listed if item.availability == "available"]
    rest = sorted((item for item in listed if item.availability != "available"), key=lambda item: item.availability)
    with st.container(horizontal=True, gap="xsmall"):
        for name in whole:
            st.badge(name, icon=":material/check:", color="green")
    if rest:
        frame = pd.DataFrame(
            {
                "name": [item.name for item in rest],
                "state": [item.availability for item in rest],
                "reason": [shorten(item.reason, 400) for item in rest],
            }
        )
        st.dataframe(
            frame,
            key="overview-capabilities",
            hide_index=True,
            row_height=_ROW,
            height="auto",
            column_config={
                "name": st.column_config.TextColumn("Not yet or not fully", width=140),
                "state": st.column_config.TextColumn("State", width=140),
                "reason": st.column_config.TextColumn("Reason", width=700),
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
    folder = model.path.rstrip("/").rsplit("/", 1)[0] or "/"
    st.markdown("## Files", anchors=False)
    if len(model.sources) > 1:
        frame = pd.DataFrame(
            {
                "name": [shorten(source.name, 200) for source in model.sources],
                "size": [format_text.size(source.size) for source in model.sources],
            }
        )
        _pairs(frame, "overview-files", "File", "Size", right_aligned=True)
    st.caption(f"{mono(model.name, 200)} in {mono(folder, 300)}")


def _pairs(frame: pd.DataFrame, key: str, left: str, right: str, *, right_aligned: bool = False) -> None:
    first, second = frame.columns
    alignment = "right" if right_aligned else "left"
    st.dataframe(
        frame,
        key=key,
        hide_index=True,
        row_height=_ROW,
        height="auto",
        column_config={
            first: st.column_config.TextColumn(left),
            second: st.column_config.TextColumn(right, alignment=alignment),
        },
    )


draw()
