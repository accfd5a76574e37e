"""Overview: what is this file, is it safe, what does it take and give."""

from __future__ import annotations

from typing import Final, get_args

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components.architecture_panel import architecture_panel
from app.components.figures import Figure, figures
from app.components.findings import findings_table
from app.components.operators_chart import operators_chart
from app.components.signature import signature
from app.components.weights_map import weights_map
from app.plain_text import mono, shorten
from app.services import models
from core import overview
from core.ir import CapabilityName, Model

_ROW: Final = 30


def draw() -> None:
    """Draw the page."""
    artifact, model = session.current_model()
    _signature(artifact, model)
    _figures(artifact, model)
    if model.findings:
        findings_table(model.findings, key="overview-findings", rows=4)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        weights_map(artifact)
    with right:
        operators_chart(artifact)
    architecture_panel(model)
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
            _operators_figure(model, len(kinds)),
            _version_figure(model),
        ],
        key="overview-figures",
    )


def _operators_figure(model: Model, kinds: int) -> Figure:
    if not model.graphs:
        return Figure("Tensors", format_text.count(len(model.tensors)), "no operators in this file")
    graphs = f" in {format_text.plural(len(model.graphs), 'graph')}" if len(model.graphs) > 1 else ""
    return Figure("Operators", format_text.count(model.node_count), format_text.plural(kinds, "kind") + graphs)


def _version_figure(model: Model) -> Figure:
    if model.opsets:
        domain, version = next(iter(model.opsets.items()))
        more = len(model.opsets) - 1
        note = f"{domain}" + (f" and {format_text.plural(more, 'more domain')}" if more else "")
        return Figure("Opset", str(version), note)
    return Figure("Files", format_text.count(len(model.sources)), model.kind)


def _opset_text(model: Model) -> str:
    return ", ".join(f"{domain} {version}" for domain, version in model.opsets.items())


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
