"""Numbers of one array: facts, histogram, and a picture of any two of its axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from app import format_text, theme
from app.components import charts
from app.plain_text import shorten
from core.statistics.types import Histogram, TensorStats

WINDOW: Final = 1024
"""Elements along one axis that a picture fetches at once."""

COMPACT: Final = 260
"""Height below which a picture stands in a narrow place."""

Index = tuple[int | slice, ...]
Fetch = Callable[[Index], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Cut:
    """Which part of an array a picture shows; ``index`` is what numpy takes."""

    index: Index
    rows: str
    columns: str


def facts(stats: TensorStats) -> None:
    """The figures of one array in two short lines; all text is ours."""
    number = partial(format_text.number, digits=5)
    st.markdown(
        f":gray[min] {number(stats.min)} :gray[· max] {number(stats.max)} "
        f":gray[· mean] {number(stats.mean)} :gray[· std] {number(stats.std)}"
    )
    parts = [format_text.plural(stats.count, "element"), f"{format_text.share(stats.zero, stats.count)} zero"]
    if stats.nan:
        parts.append(f":red[{format_text.count(stats.nan)} NaN]")
    if stats.inf:
        parts.append(f":red[{format_text.count(stats.inf)} infinite]")
    if not stats.exact:
        parts.append("quantiles approximate")
    st.caption(" · ".join(parts))


def histogram(stats: TensorStats, key: str, *, height: int = 240) -> None:
    """The histogram with a switch for logarithmic counts."""
    if stats.histogram is None or not sum(stats.histogram.counts):
        st.caption("No finite numbers, so there is no histogram.")
        return
    log = st.toggle("Logarithmic counts", key=f"{key}-log", persist_state="session")
    figure = charts.histogram(stats.histogram, theme.palette(), log=log)
    theme.draw(figure, height=height, key=f"{key}-histogram", alt="Histogram of the values")


def small_histogram(data: Histogram, key: str) -> None:
    """The histogram without a switch, as a preview."""
    figure = charts.histogram(data, theme.palette())
    figure.update_yaxes(title=None, showticklabels=False)
    theme.draw(figure, height=120, key=f"{key}-histogram", alt="Histogram of the values")


def picture(
    fetch: Fetch, shape: tuple[int, ...], key: str, *, height: int = 320, controls: DeltaGenerator | None = None
) -> None:
    """A heatmap of two axes, a line of one, or the number itself; ``fetch`` gives the part that is shown.

    ``controls`` is a row that the choice of axes is put into.
    """
    if not np.prod(shape, dtype=object):
        st.caption(f"It has no elements ({format_text.shape(shape)}).")
        return
    cut = choose(shape, key, controls)
    part = np.asarray(fetch(cut.index))
    if part.dtype.kind in "OUS":
        flat = part.ravel()[:200]
        st.dataframe({"text": [shorten(str(item), 400) for item in flat]}, key=f"{key}-text", height=height)
        return
    if part.dtype.kind == "c":
        part = np.abs(part)
        st.caption("Complex numbers are shown by their magnitude.")
    if part.ndim == 0:
        st.metric("value", format_text.number(float(part), 7))
    elif part.ndim == 1:
        figure = charts.line(part, theme.palette(), axis=cut.columns)
        theme.draw(figure, height=height, key=f"{key}-line", alt="The values as a line")
    else:
        figure = charts.heatmap(part, theme.palette(), rows=cut.rows, columns=cut.columns, compact=height < COMPACT)
        theme.draw(figure, height=height, key=f"{key}-heatmap", alt="The values as a heatmap")


def choose(shape: tuple[int, ...], key: str, controls: DeltaGenerator | None = None) -> Cut:
    """Ask which axes to show and where to stand on the others; nothing is asked below three axes."""
    if len(shape) <= 1:
        window = tuple(_window(size, f"{key}-from-0", "From index") for size in shape)
        return Cut(window, "", "index")
    rows, columns = widest(shape)
    if len(shape) > 2:
        with (controls or st).popover("Axes", icon=":material/view_in_ar:"):
            rows, columns, fixed = _axes(shape, rows, columns, key)
    else:
        fixed = {}
    index: list[int | slice] = []
    for axis, size in enumerate(shape):
        if axis in (rows, columns):
            index.append(_window(size, f"{key}-from-{axis}", f"Axis {axis} from"))
        else:
            index.append(fixed.get(axis, 0))
    at = ", ".join(f"axis {axis} at {place}" for axis, place in fixed.items())
    if at:
        st.caption(f"Rows are axis {rows}, columns axis {columns}; {at}.")
    if rows > columns:
        return Cut(tuple(index), f"axis {columns}", f"axis {rows}")
    return Cut(tuple(index), f"axis {rows}", f"axis {columns}")


def widest(shape: tuple[int, ...]) -> tuple[int, int]:
    """The two longest axes, in their order; the last ones win among equals."""
    by_size = sorted(range(len(shape)), key=lambda axis: (shape[axis], axis))
    first, second = sorted(by_size[-2:])
    return first, second


def _axes(shape: tuple[int, ...], rows: int, columns: int, key: str) -> tuple[int, int, dict[int, int]]:
    axes = list(range(len(shape)))

    def name(axis: int) -> str:
        return f"axis {axis} ({shape[axis]:,})"

    left, right = st.columns(2)
    rows = left.selectbox("Rows", axes, rows, name, key=f"{key}-rows", persist_state="session")
    rest = [axis for axis in axes if axis != rows]
    columns = right.selectbox(
        "Columns", rest, rest.index(columns) if columns in rest else len(rest) - 1, name, key=f"{key}-columns-{rows}",
        persist_state="session",
    )  # fmt: skip
    fixed: dict[int, int] = {}
    for axis in axes:
        if axis not in (rows, columns):
            last = shape[axis] - 1
            label = f"Axis {axis}, 0 to {last:,}"
            fixed[axis] = int(
                st.number_input(label, 0, last, 0, key=f"{key}-at-{axis}", persist_state="session", disabled=last == 0)
            )
    return rows, columns, fixed


def _window(size: int, key: str, label: str) -> slice:
    if size <= WINDOW:
        return slice(0, size)
    start = int(
        st.number_input(
            f"{label} (of {size:,})", 0, size - 1, 0, step=WINDOW, key=key, persist_state="session", width=220
        )
    )
    return slice(start, min(size, start + WINDOW))
