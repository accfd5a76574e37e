"""Charts of single activations: pure functions from view data to figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from app.components.charts import inert
from app.theme import Palette, centred, scale
from core.trace.views.feature_maps import Grid, Overlay
from core.trace.views.profile import Profile
from core.trace.views.projection import Projection

LABELS: Final = 48
"""Token labels along one axis; with more of them they are left to the hover."""


def mosaic(
    maps: NDArray[np.float64],
    names: Sequence[str],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    colours: Palette,
    *,
    wide: float = 1.6,
) -> go.Figure:
    """Maps [n, height, width] side by side under their names, each between its ``low`` and ``high``.

    ``wide`` is how much broader than high the place is. Where all have the same ends the colour
    scale shows values, else each map's own range from 0 to 1.
    """
    count, height, width = maps.shape
    columns = max(1, min(count, math.ceil(math.sqrt(count * wide * height / max(width, 1)))))
    rows = -(-count // columns)
    gap_x, gap_y = max(1, width // 12), max(1, height // 6)
    shape = (rows * (height + gap_y), columns * (width + gap_x))
    tiles, values = np.full(shape, np.nan), np.full(shape, np.nan)
    common = bool((low == low[0]).all() and (high == high[0]).all())
    reach = np.where(high > low, high - low, 1.0)
    for at in range(count):
        top, left = (at // columns) * (height + gap_y) + gap_y, (at % columns) * (width + gap_x)
        place = (slice(top, top + height), slice(left, left + width))
        values[place] = maps[at]
        tiles[place] = maps[at] if common else (maps[at] - low[at]) / reach[at]
    both = common and low[0] < 0 < high[0]
    ends = centred(low[0], high[0]) if both else (low[0], high[0]) if common else (0.0, 1.0)
    figure = go.Figure(_picture(tiles, values, ends, colours, both=both, title="value" if common else "own range"))
    for at, name in enumerate(names):
        figure.add_annotation(
            x=(at % columns) * (width + gap_x) - 0.5, y=(at // columns) * (height + gap_y) + gap_y - 0.5,
            text=inert(name, 18), showarrow=False, xanchor="left", yanchor="bottom",
            font={"size": 10, "color": colours.muted},
        )  # fmt: skip
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, autorange="reversed", scaleanchor="x", constrain="domain")
    return figure


def feature_grid(grid: Grid, colours: Palette) -> go.Figure:
    """Channels side by side."""
    return mosaic(grid.maps, [f"channel {c}" for c in grid.channels], grid.low, grid.high, colours)


def labelled(
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    colours: Palette,
    *,
    row: str,
    column: str,
    unit: str = "",
) -> go.Figure:
    """A heatmap [rows, columns] whose axes carry names where there are few, in the hover always."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    both = low < 0 < high
    ends = centred(low, high) if both else (low, high if high > low else low + 1)
    figure = go.Figure(_picture(values, values, ends, colours, both=both, title=unit or "value"))
    text = [[f"{inert(row)} {inert(r)}<br>{inert(column)} {inert(c)}" for c in columns] for r in rows]
    figure.update_traces(text=text, hovertemplate="%{text}<br>%{customdata:.5g}<extra></extra>")
    if len(columns) <= LABELS:
        figure.update_xaxes(**_ticks(columns))
    if len(rows) <= LABELS:
        figure.update_yaxes(**_ticks(rows))
    figure.update_xaxes(title=inert(column), showgrid=False, zeroline=False)
    figure.update_yaxes(title=inert(row), showgrid=False, zeroline=False, autorange="reversed")
    return figure


def over_image(found: Overlay, colours: Palette, opacity: float) -> go.Figure:
    """A map as translucent colours over the picture."""
    figure = go.Figure(go.Image(z=found.picture, hoverinfo="skip"))
    value = found.low + found.heat * (found.high - found.low)
    figure.add_heatmap(
        z=found.heat, customdata=value, zmin=0, zmax=1, opacity=opacity, colorscale=scale(colours.sequential),
        hovertemplate="row %{y}, column %{x}<br>%{customdata:.5g}<extra></extra>",
        colorbar={
            "thickness": 10, "outlinewidth": 0, "title": {"text": "value", "side": "top"},
            "tickvals": [0, 0.5, 1],
            "ticktext": [f"{found.low + share * (found.high - found.low):.3g}" for share in (0, 0.5, 1)],
        },
    )  # fmt: skip
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, autorange="reversed", scaleanchor="x", constrain="domain")
    return figure


def profile(found: Profile, order: NDArray[np.int64], colours: Palette) -> go.Figure:
    """Mean of every channel with one standard deviation and its whole range, in ``order``."""
    at = np.arange(len(order))
    figure = go.Figure()
    red, green, blue = (int(colours.accent[i : i + 2], 16) for i in (1, 3, 5))
    for low, high, alpha, name in (
        (found.low, found.high, 0.14, "smallest to largest"),
        (found.mean - found.std, found.mean + found.std, 0.32, "one standard deviation"),
    ):
        edge: dict[str, Any] = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        figure.add_scatter(x=at, y=high[order], showlegend=False, **edge)
        fill = f"rgba({red},{green},{blue},{alpha})"
        figure.add_scatter(x=at, y=low[order], name=name, fill="tonexty", fillcolor=fill, **edge)
    figure.add_scatter(
        x=at, y=found.mean[order], mode="lines+markers" if len(at) <= 64 else "lines", name="mean",
        line={"color": colours.accent, "width": 1.6},
        customdata=np.stack([order, found.std[order], 100 * found.zero[order]], axis=1),
        hovertemplate="channel %{customdata[0]}<br>mean %{y:.4g}, std %{customdata[1]:.4g}"
        "<br>%{customdata[2]:.1f} % zero<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title="channel" if (order == at).all() else "channels in this order")
    figure.update_yaxes(title="value")
    return figure


def points(found: Projection, labels: Sequence[str], colours: Palette) -> go.Figure:
    """Rows as points of the first two principal components, coloured by their place."""
    at: list[int] = found.rows.tolist()
    names: list[str] = [labels[row] if row < len(labels) else f"row {row}" for row in at]
    few = len(names) <= LABELS and bool(labels)
    figure = go.Figure(
        go.Scatter(
            x=found.points[:, 0], y=found.points[:, 1], mode="markers+text" if few else "markers",
            text=[inert(name, 14) for name in names], textposition="top center", textfont={"size": 10},
            customdata=found.rows, cliponaxis=False,
            marker={
                "size": 8 if few else 6, "color": found.rows, "colorscale": scale(colours.sequential[2:]),
                "line": {"width": 0.5, "color": colours.muted},
                "colorbar": {"title": {"text": "row", "side": "top"}, "thickness": 10, "outlinewidth": 0},
            },
            hovertemplate="%{text}, row %{customdata}<br>%{x:.4g}, %{y:.4g}<extra></extra>",
        )
    )  # fmt: skip
    shares = [f"component {n + 1} ({100 * share:.1f} %)" for n, share in enumerate(found.explained)]
    figure.update_xaxes(title=shares[0])
    figure.update_yaxes(title=shares[1])
    return figure


def drift(order: Sequence[int], names: Sequence[str], sqnr: Sequence[float | None], colours: Palette) -> go.Figure:
    """SQNR in dB along the run; equal values are drawn nowhere."""
    figure = go.Figure(
        go.Scatter(
            x=list(order), y=list(sqnr), mode="lines+markers", marker={"size": 5 if len(order) < 200 else 3},
            line={"color": colours.accent, "width": 1.6}, text=[inert(name) for name in names],
            hovertemplate="%{text}<br>SQNR %{y:.1f} dB<extra></extra>",
        )
    )  # fmt: skip
    figure.update_xaxes(title="values in order of execution")
    figure.update_yaxes(title="SQNR, dB")
    return figure


def _ticks(names: Sequence[str]) -> dict[str, Any]:
    return {
        "tickmode": "array", "tickvals": list(range(len(names))), "ticktext": [inert(name, 14) for name in names],
    }  # fmt: skip


def _picture(
    tiles: NDArray[np.float64], values: NDArray[np.float64], ends: tuple[float, float], colours: Palette, *,
    both: bool, title: str,
) -> go.Heatmap:  # fmt: skip
    low, high = ends
    return go.Heatmap(
        z=tiles, customdata=values, zmin=low, zmax=high if high > low else low + 1,
        colorscale=scale(colours.diverging if both else colours.sequential), hoverongaps=False,
        hovertemplate="%{customdata:.5g}<extra></extra>",
        colorbar={"title": {"text": title, "side": "top"}, "thickness": 10, "outlinewidth": 0, "len": 1.0},
    )  # fmt: skip
