"""Which operators a model is made of, by how often they occur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import plotly.graph_objects as go
import streamlit as st

from app import format_text, session, theme
from app.components.charts import inert
from app.components.graph_canvas import hue
from app.components.shares import Share, shares
from app.services import models
from app.theme import Palette
from core import overview
from core.overview import OperatorCount

_OPERATORS: Final = 12


def operators_chart(artifact: str) -> None:
    """Draw the most frequent operators; a bar leads to the first of its kind in the graph."""
    kinds = models.derived(session.actor(), artifact, "operators", overview.operators)
    st.markdown("## Operators", anchors=False)
    if not kinds:
        st.caption("This file has weights and no graph.")
        return
    colours = theme.palette()
    shown = kinds[:_OPERATORS]
    shares(_legend(shown, colours), key="overview-categories", bar=False)
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


def _legend(kinds: Sequence[OperatorCount], colours: Palette) -> list[Share]:
    """One entry a colour: categories that look alike share it."""
    named: dict[str, list[str]] = {}
    for kind in kinds:
        names = named.setdefault(hue(kind.category, colours), [])
        if kind.category not in names:
            names.append(kind.category)
    return [Share(colour, ", ".join(names)) for colour, names in named.items()]
