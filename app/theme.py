"""Colours of the data, matching the light and dark surface of ``.streamlit/config.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one surface.

    Attributes:
        categories: ten hues that stay apart for colour-blind readers.
        sequential: low to high, one direction in lightness.
        diverging: negative to positive; the middle is the surface, so use it centred at zero.
        severity: colour by severity of a finding.
    """

    surface: str
    panel: str
    text: str
    muted: str
    border: str
    accent: str
    categories: tuple[str, ...]
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]
    severity: dict[str, str]


LIGHT: Final = Palette(
    surface="#ffffff",
    panel="#f3f5f6",
    text="#1b2226",
    muted="#66737b",
    border="#dde2e5",
    accent="#0b6e75",
    categories=(
        "#2f78c4", "#e08a1e", "#17916b", "#b8559a", "#7a68c9",
        "#43a6c6", "#a48f10", "#c9514a", "#8a6242", "#7b878e",
    ),
    sequential=(
        "#e7f4f2", "#c6e6df", "#9dd5cb", "#6fc0ba", "#45a7ac",
        "#2a8c9e", "#20708c", "#235475", "#263a58", "#1f2239",
    ),
    diverging=("#7a3605", "#b0570f", "#d98a3d", "#f0bd86", "#ffffff", "#9dc3e0", "#5a97c7", "#2a6aa5", "#123f6e"),
    severity={"error": "#c43d3d", "warning": "#c8690a", "info": "#2b6cb8"},
)  # fmt: skip

DARK: Final = Palette(
    surface="#14181b",
    panel="#1e2429",
    text="#e4e8ea",
    muted="#97a4ac",
    border="#2e363c",
    accent="#3fb2b0",
    categories=(
        "#64a5e3", "#eea24a", "#47b892", "#d681bb", "#a394e6",
        "#6cc4de", "#cdb83f", "#e57f77", "#b98e6b", "#9aa6ad",
    ),
    sequential=(
        "#1c2436", "#25395a", "#245477", "#22708d", "#2b8c9f",
        "#46a7ad", "#70c1bb", "#9ed6cb", "#c8e7e0", "#e9f5f3",
    ),
    diverging=("#f7c48d", "#e79b4b", "#bd7022", "#824c1c", "#14181b", "#2a577f", "#3a80b5", "#6cabd9", "#a9d2ef"),
    severity={"error": "#ec7b76", "warning": "#f0a04b", "info": "#74aee8"},
)  # fmt: skip

OTHER: Final = 9
"""Index of the grey category, for what has no class of its own."""


def is_dark() -> bool:
    """Whether this browser shows the dark surface."""
    return st.context.theme.type == "dark"


def palette() -> Palette:
    """Colours of the surface that this browser shows."""
    return DARK if is_dark() else LIGHT


_MARK: Final = (
    '<g fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round">'
    '<path d="M4 9.5 13 4.5l9 5v9l-9 5-9-5z"/><path d="M4 9.5l9 5 9-5M13 14.5v9"/></g>'
)


def favicon() -> str:
    """The mark alone as SVG."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="1 2 24 24">{_MARK.format(colour=LIGHT.accent)}</svg>'


def logo() -> str:
    """The word mark as SVG in the colours of this surface."""
    colours = palette()
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="150" height="28" viewBox="0 0 150 28">'
        f"{_MARK.format(colour=colours.accent)}"
        f'<text x="32" y="19.5" fill="{colours.text}" font-size="16" font-weight="600" letter-spacing="-0.2" '
        "font-family=\"system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\">Modelglass</text></svg>"
    )


def tighten() -> None:
    """Give the page the room that Streamlit keeps as margin; it has no setting for it."""
    st.html(
        "<style>@media (min-width: 768px) {"
        '[data-testid="stMainBlockContainer"] { padding-left: 2rem; padding-right: 2rem; }'
        '[data-testid="stHeader"] { height: 2.5rem; min-height: 2.5rem; }'
        '[data-testid="stMainBlockContainer"] { padding-top: 2.75rem; }'
        "}"
        '[data-testid="stLayoutWrapper"]:has(> .st-key-jobs-panel), .st-key-jobs-panel'
        " { flex-shrink: 0; min-width: max-content; }"
        "</style>"
    )


def scale(colours: tuple[str, ...]) -> list[tuple[float, str]]:
    """Colours as a plotly colour scale in equal steps."""
    return [(i / (len(colours) - 1), colour) for i, colour in enumerate(colours)]


def centred(low: float, high: float) -> tuple[float, float]:
    """Range of a diverging scale: symmetric about zero, never empty."""
    reach = max(abs(low), abs(high)) or 1.0
    return -reach, reach


def on(colour: str) -> str:
    """Text colour that reads on ``colour`` (WCAG relative luminance)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#10161a" if luminance > 0.3 else "#ffffff"


def draw(
    figure: go.Figure, *, height: int, key: str, alt: str, legend: bool = False, top: int = 8, **options: Any
) -> Any:
    """Show a plotly figure in our looks: no mode bar, thin grid, tight margins.

    ``alt`` says in words what the figure shows, ``top`` is the margin above it in pixels.
    Returns what ``st.plotly_chart`` returns.
    """
    colours = palette()
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 8, "t": top, "b": 8},
        showlegend=legend,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        colorway=list(colours.categories),
        font={"size": 12, "color": colours.text},
        hoverlabel={"bgcolor": colours.panel, "bordercolor": colours.border, "font": {"color": colours.text}},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 11}},
    )
    axis = {
        "gridcolor": colours.border,
        "zerolinecolor": colours.border,
        "linecolor": colours.border,
        "automargin": True,
    }
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    config = {"displayModeBar": False, "displaylogo": False, "scrollZoom": False}
    return st.plotly_chart(figure, key=key, alt=alt, theme="streamlit", config=config, **options)
