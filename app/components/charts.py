"""Charts of tensors and activations: pure functions from numbers to figures; ``theme.draw`` shows them.

Every text that may come from a file goes through ``inert``: plotly reads some HTML in labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from app.plain_text import shorten
from app.theme import Palette, centred, scale
from core.statistics.types import Histogram

LINE_POINTS: Final = 4000
"""Points of a line; longer arrays are drawn as the range of each stretch."""

PICTURE_SIDE: Final = 512
"""Cells a side of a heatmap; larger slices are thinned out."""


def inert(text: str, limit: int = 60) -> str:
    """Text of a file that plotly shows as it is."""
    return shorten(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def histogram(data: Histogram, colours: Palette, *, log: bool = False) -> go.Figure:
    """Counts by value, one bar a bin; ``log`` for the counts."""
    edges = np.asarray(data.edges, np.float64)
    counts = np.asarray(data.counts, np.int64)
    widths = np.diff(edges)
    figure = go.Figure(
        go.Bar(
            x=edges[:-1] + widths / 2,
            y=counts,
            width=widths if (widths > 0).all() else None,
            customdata=np.stack([edges[:-1], edges[1:]], axis=1),
            marker={"color": colours.accent, "line": {"width": 0}},
            hovertemplate="%{customdata[0]:.4g} to %{customdata[1]:.4g}<br>%{y:,} elements<extra></extra>",
        )
    )
    figure.update_layout(bargap=0.02)
    figure.update_xaxes(title="value")
    figure.update_yaxes(title="elements", type="log" if log else "linear")
    return figure


def heatmap(
    values: NDArray[Any], colours: Palette, *, rows: str = "row", columns: str = "column", compact: bool = False
) -> go.Figure:
    """A picture of a 2-D array; diverging and centred on zero where it has both signs, row 0 on top.

    ``compact`` lays the colour scale under the picture instead of beside it.
    """
    numbers = np.asarray(values, np.float64)
    row_step, column_step = (max(1, -(-size // PICTURE_SIDE)) for size in numbers.shape)
    thin = numbers[::row_step, ::column_step]
    shown = np.where(np.isfinite(thin), thin, np.nan)
    finite = shown[np.isfinite(shown)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    both = low < 0 < high
    low, high = centred(low, high) if both else (low, high if high > low else low + 1.0)
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            x=np.arange(shown.shape[1]) * column_step,
            y=np.arange(shown.shape[0]) * row_step,
            zmin=low,
            zmax=high,
            colorscale=scale(colours.diverging if both else colours.sequential),
            colorbar={
                "title": {"text": "value", "side": "top"},
                "thickness": 8 if compact else 10,
                "outlinewidth": 0,
                "len": 1.0,
                **({"orientation": "h", "y": -0.25, "yanchor": "top", "title": None} if compact else {}),
            },
            hoverongaps=False,
            hovertemplate=f"{inert(rows)} %{{y}}, {inert(columns)} %{{x}}<br>%{{z:.5g}}<extra></extra>",
        )
    )
    figure.update_xaxes(title=inert(columns), showgrid=False, zeroline=False, constrain="domain")
    figure.update_yaxes(title=inert(rows), showgrid=False, zeroline=False, autorange="reversed")
    return figure


def line(values: NDArray[Any], colours: Palette, *, axis: str = "index") -> go.Figure:
    """A 1-D array as a line; beyond ``LINE_POINTS`` the range of each stretch and its mean."""
    numbers = np.asarray(values, np.float64).ravel()
    figure = go.Figure()
    if numbers.size <= LINE_POINTS:
        figure.add_scatter(
            y=numbers,
            mode="lines+markers" if numbers.size <= 64 else "lines",
            line={"color": colours.accent, "width": 1.5},
            hovertemplate=f"{inert(axis)} %{{x}}<br>%{{y:.5g}}<extra></extra>",
        )
    else:
        step = -(-numbers.size // (LINE_POINTS // 4))
        parts = np.pad(numbers, (0, -numbers.size % step), constant_values=np.nan).reshape(-1, step)
        parts = np.where(np.isfinite(parts), parts, np.nan)
        kept = np.isfinite(parts).any(axis=1)
        at, parts = np.flatnonzero(kept) * step, parts[kept]
        _band(
            figure, at, np.nanmin(parts, axis=1), np.nanmax(parts, axis=1), colours.accent, 0.25, "smallest to largest"
        )
        figure.add_scatter(
            x=at,
            y=np.nanmean(parts, axis=1),
            mode="lines",
            name=f"mean of {step:,}",
            line={"color": colours.accent, "width": 1.2},
        )
    figure.update_xaxes(title=inert(axis))
    figure.update_yaxes(title="value")
    return figure


def magnitude(
    order: Sequence[int],
    names: Sequence[str],
    rms: Sequence[float | None],
    largest: Sequence[float | None],
    colours: Palette,
    *,
    marked: int | None = None,
) -> go.Figure:
    """Size of the values from input to output on a log axis: root mean square and largest absolute value."""
    figure = go.Figure()
    shown = [inert(name) for name in names]
    for label, numbers, colour, width in (
        ("largest absolute value", largest, colours.categories[1], 1.0),
        ("root mean square", rms, colours.accent, 1.8),
    ):
        figure.add_scatter(
            x=list(order),
            y=[value if value else None for value in numbers],
            mode="lines+markers",
            marker={"size": 5 if len(shown) < 200 else 3},
            name=label,
            line={"color": colour, "width": width},
            text=shown,
            hovertemplate="%{text}<br>" + label + " %{y:.4g}<extra></extra>",
        )
    _mark(figure, marked, colours)
    figure.update_xaxes(title="values in order of execution")
    figure.update_yaxes(title="magnitude", type="log", exponentformat="power")
    return figure


def spread(
    order: Sequence[int],
    names: Sequence[str],
    quantiles: Mapping[str, Sequence[float | None]],
    colours: Palette,
    *,
    marked: int | None = None,
) -> go.Figure:
    """Where the values lie from input to output: median, middle half, and middle nine tenths.

    Args:
        quantiles: columns by ``0.05``, ``0.25``, ``0.5``, ``0.75`` and ``0.95``.
    """
    figure = go.Figure()
    at = np.asarray(order)
    columns = {key: np.array([np.nan if v is None else v for v in column], float) for key, column in quantiles.items()}
    _band(figure, at, columns["0.05"], columns["0.95"], colours.accent, 0.15, "5 to 95 %")
    _band(figure, at, columns["0.25"], columns["0.75"], colours.accent, 0.3, "25 to 75 %")
    figure.add_scatter(
        x=at,
        y=columns["0.5"],
        mode="lines+markers",
        marker={"size": 5 if len(at) < 200 else 3},
        name="median",
        line={"color": colours.accent, "width": 1.6},
        text=[inert(name) for name in names],
        hovertemplate="%{text}<br>median %{y:.4g}<extra></extra>",
    )
    _mark(figure, marked, colours)
    figure.update_xaxes(title="values in order of execution")
    figure.update_yaxes(title="value")
    return figure


def bars(names: Sequence[str], numbers: Sequence[float], colours: Palette, *, axis: str, unit: str = "") -> go.Figure:
    """Horizontal bars, the first name on top, each with its number."""
    shown = [inert(name, 32) for name in names]
    figure = go.Figure(
        go.Bar(
            x=list(numbers),
            y=shown,
            orientation="h",
            marker={"color": colours.accent},
            text=[f"{value:,.3g}{unit}" for value in numbers],
            textposition="outside",
            textfont={"size": 11},
            cliponaxis=False,
            hovertemplate="%{y}<br>%{x:,.4g}" + unit + "<extra></extra>",
        )
    )
    figure.update_layout(bargap=0.25)
    figure.update_xaxes(title=axis, range=[0, 1.18 * max(numbers, default=1.0)])
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def _band(
    figure: go.Figure, at: NDArray[Any], low: NDArray[Any], high: NDArray[Any], colour: str, alpha: float, name: str
) -> None:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    edge: dict[str, Any] = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    figure.add_scatter(x=at, y=high, showlegend=False, **edge)
    figure.add_scatter(x=at, y=low, name=name, fill="tonexty", fillcolor=f"rgba({red},{green},{blue},{alpha})", **edge)


def _mark(figure: go.Figure, place: int | None, colours: Palette) -> None:
    if place is not None:
        figure.add_vline(x=place, line={"color": colours.text, "width": 1, "dash": "dot"})
