"""The views of one activation, drawn as soon as it is chosen, and the same in a large window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from app import format_text, session, theme
from app.components import activation_charts, array_view, charts, error_box
from app.components.job_progress import job_progress
from app.plain_text import mono, plain, shorten
from app.services import activations, loading, tracing
from core.store.traces import TraceRecord
from core.trace.types import TracedValue
from core.trace.views.feature_maps import grid, overlay
from core.trace.views.next_tokens import next_tokens
from core.trace.views.offer import TITLES, Kind, Subject, offered
from core.trace.views.profile import channel_profile
from core.trace.views.projection import principal
from core.trace.views.sampling import finite, thin
from core.trace.views.stack import norms

LARGE: Final = 560
_HEADS: Final = 24
_SIDE: Final = 128
_TEXTS: Final = 200
_ORDERS: Final = {"number": "By number", "strongest": "Strongest first"}
_NORMS: Final = {"common": "One scale for all", "each": "Each its own range"}
_SORTS: Final = {"number": "By number", "mean": "By mean", "std": "By spread", "zero": "By zeros"}


@dataclass(frozen=True, slots=True)
class Shown:
    """One activation and where it is drawn; ``controls`` is the row that small choices go into."""

    artifact: str
    record: TraceRecord
    value: TracedValue
    subject: Subject
    array: NDArray[Any]
    key: str
    height: int
    controls: DeltaGenerator


def activation(artifact: str, record: TraceRecord, value: TracedValue, key: str, *, height: int = 320) -> None:
    """Facts of a value and the view that suits it best, with the others a click away."""
    _facts(value)
    subject = activations.subject(session.actor(), artifact, record.id, value.id, value.step)
    kinds = offered(subject)
    if not subject.stored:
        _not_stored(record, value)
    if not kinds:
        if subject.stored:
            st.caption("It has no elements.")
        return
    _views(artifact, record, value, subject, kinds, key, height)
    if subject.stored and st.button("Larger", key=f"{key}-large", icon=":material/open_in_full:", type="tertiary"):
        _large(artifact, record, value, subject, kinds, key)


def _views(
    artifact: str, record: TraceRecord, value: TracedValue, subject: Subject, kinds: list[Kind], key: str, height: int
) -> None:
    row = st.container(horizontal=True, vertical_alignment="center", gap="small")
    kind = row.segmented_control(
        "View", kinds, default=kinds[0], required=True, format_func=TITLES.__getitem__, key=f"{key}-view",
        label_visibility="collapsed", wrap=True,
    )  # fmt: skip
    if kind == "histogram":
        if value.stats is not None:
            array_view.histogram(value.stats, key, height=height)
        return
    array = np.asarray(tracing.value(session.actor(), record.id, value.id, value.step))
    _DRAW[kind](Shown(artifact, record, value, subject, array, key, height, row))


@st.dialog("Activation", width="large", icon=":material/open_in_full:")
def _large(
    artifact: str, record: TraceRecord, value: TracedValue, subject: Subject, kinds: list[Kind], key: str
) -> None:
    st.markdown(f"**{mono(value.name, 120)}** :gray[{plain(format_text.shape(value.shape))}]")
    _views(artifact, record, value, subject, kinds, f"{key}-l", LARGE)


def _facts(value: TracedValue) -> None:
    """What it is and its figures, in one line where there is room."""
    step = f", iteration {value.step}" if value.step else ""
    what = f"{mono(value.dtype)} {plain(format_text.shape(value.shape))}{step}"
    stats = value.stats
    if stats is None:
        st.caption(f"{what} · {plain(value.reason, 400) or 'It has no statistics'}")
        return
    figures = [("min", stats.min), ("max", stats.max), ("mean", stats.mean), ("std", stats.std)]
    parts = [what, *(f"{name} **{format_text.number(figure, 4)}**" for name, figure in figures if figure is not None)]
    parts.append(f"{format_text.share(stats.zero, stats.count)} zero")
    parts += [f":red[{format_text.count(stats.nan)} NaN]"] if stats.nan else []
    parts += [f":red[{format_text.count(stats.inf)} infinite]"] if stats.inf else []
    st.caption(" · ".join(parts))


def _not_stored(record: TraceRecord, value: TracedValue) -> None:
    if value.stored and not tracing.kept(session.actor(), record.id):
        st.caption("The stored values of this run were removed to make room. Run it again to see them.")
        return
    reason = (plain(value.reason, 400) or "It is beyond the store limit of the run").removesuffix("\\.")
    st.caption(f"Only its statistics were kept: {reason}.")
    job = loading.at_work(session.actor(), record.id, value.id, value.step)
    if job is not None and job.active:
        job_progress(job.id)
        return
    if job is not None and job.state == "failed":
        st.caption(f":red[{plain(job.error, 300)}]")
    if value.stats is not None and value.stats.count and tracing.kept(session.actor(), record.id):
        st.button(
            "Load this value", key=f"load-{value.id}-{value.step}", icon=":material/download:", on_click=_load,
            args=(record.id, value.id, value.step), help="Runs it again under the same approval, for this value",
        )  # fmt: skip


def _load(trace: str, value: str, step: int) -> None:
    with error_box.guard():
        loading.load(session.actor(), trace, value, step)


# --- one function a view ----------------------------------------------------------------


def _tokens(s: Shown) -> None:
    rows = s.array.reshape(-1, s.array.shape[-1])
    place = _position(s, len(rows), len(rows) - 1)
    ids: list[int] = []
    found = next_tokens(rows[place], 20, lambda i: ids.append(i) or "")
    pieces = activations.pieces(session.actor(), s.artifact, ids)
    st.dataframe(
        {
            "token": [shorten(repr(piece)[1:-1], 60) for piece in pieces],
            "probability": [100 * token.probability for token in found.tokens],
            "logit": [token.logit for token in found.tokens],
            "id": ids,
        },
        hide_index=True, row_height=28, height=s.height, key=f"{s.key}-next-{place}",
        column_config={
            "token": st.column_config.TextColumn("Token"),
            "probability": st.column_config.ProgressColumn("Probability", format="%.2f %%", min_value=0, max_value=100),
            "logit": st.column_config.NumberColumn("Logit", format="%.3f", width=70),
            "id": st.column_config.NumberColumn("Id", width=70),
        },
    )  # fmt: skip
    st.caption(f"Softmax over all {rows.shape[1]:,} logits; entropy {found.entropy:.2f} bits.")


def _attention(s: Shown) -> None:
    maps = s.array.reshape(-1, *s.array.shape[-2:])
    labels = activations.token_labels(session.actor(), s.artifact, s.record.id)
    heads = len(maps)
    names = ["All heads", *(f"Head {h}" for h in range(heads))]
    chosen = 0
    if heads > 1:
        chosen = s.controls.selectbox(
            "Head", range(heads + 1), format_func=names.__getitem__, key=f"{s.key}-head", width=130,
            label_visibility="collapsed",
        )  # fmt: skip
    if chosen or heads == 1:
        small = thin(finite(maps[max(chosen - 1, 0)]), _SIDE, _SIDE)
        rows, columns = (_labels(labels, size, step) for size, step in zip(maps.shape[1:], small.steps, strict=True))
        figure = activation_charts.labelled(
            small.array, rows, columns, theme.palette(), row="query", column="key", unit="weight"
        )
    else:
        small = thin(finite(maps[:_HEADS]), 64, 64)
        high = np.full(len(small.array), float(np.nanmax(small.array)))
        shown = [f"head {h}" for h in range(len(small.array))]
        figure = activation_charts.mosaic(small.array, shown, np.zeros_like(high), high, theme.palette())
    theme.draw(figure, height=s.height, key=f"{s.key}-attention-{chosen}", alt="Attention weights by head", top=14)
    st.caption(f"Queries down, keys across; one colour scale from 0, not normalised; {small.words}.")


def _overlay(s: Shown) -> None:
    picture = activations.picture(session.actor(), s.artifact, s.record.id)
    maps = _maps_of(s)
    if picture is None:
        st.caption("The picture of this run is gone.")
        return
    with s.controls.popover("Channel", icon=":material/layers:"):
        channel = int(
            st.number_input("Channel, −1 for the mean magnitude of all", -1, len(maps) - 1, -1, key=f"{s.key}-channel")
        )
        opacity = st.slider("Opacity", 0.1, 1.0, 0.6, 0.05, key=f"{s.key}-opacity")
    feature = np.nan_to_num(np.abs(finite(maps))).mean(axis=0) if channel < 0 else maps[channel]
    small = thin(picture.transpose(2, 0, 1), 384, 384)
    found = overlay(small.array.transpose(1, 2, 0), feature)
    figure = activation_charts.over_image(found, theme.palette(), opacity)
    theme.draw(figure, height=s.height, key=f"{s.key}-overlay", alt="The map over the picture")
    what = "Mean magnitude of all channels" if channel < 0 else f"Channel {channel}"
    st.caption(f"{what}, {feature.shape[0]} × {feature.shape[1]} stretched over the input by nearest place; own range.")


def _maps(s: Shown) -> None:
    maps = _maps_of(s)
    most = 12 if s.height < LARGE else 48
    with s.controls.popover("Maps", icon=":material/tune:"):
        order = st.selectbox(
            "Order", list(_ORDERS), format_func=_ORDERS.__getitem__, key=f"{s.key}-order",
        )  # fmt: skip
        norm = st.selectbox(
            "Colours", list(_NORMS), format_func=_NORMS.__getitem__, key=f"{s.key}-norm",
        )  # fmt: skip
        start = int(st.number_input("Pass over", 0, max(0, len(maps) - 1), 0, most, key=f"{s.key}-start"))
    found = grid(
        maps, most, start, "strongest" if order == "strongest" else "number", "each" if norm == "each" else "common"
    )
    figure = activation_charts.feature_grid(found, theme.palette())
    theme.draw(figure, height=s.height, key=f"{s.key}-maps", alt="Feature maps side by side", top=14)
    scaled = "one colour scale for all" if norm == "common" else "each to its own range"
    st.caption(f"{found.words}; {scaled}.")


def _heatmap(s: Shown) -> None:
    cut = array_view.choose(s.array.shape, s.key, s.controls)
    part = s.array[cut.index]
    numbers = finite(part)
    if part.ndim < 2:
        figure = charts.line(numbers, theme.palette(), axis=cut.columns)
    else:
        figure = charts.heatmap(numbers, theme.palette(), rows=cut.rows, columns=cut.columns)
    theme.draw(figure, height=s.height, key=f"{s.key}-heatmap", alt="The values as a heatmap")
    known = numbers[np.isfinite(numbers)]
    ends = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    scaled = "diverging about zero" if ends[0] < 0 < ends[1] else "from smallest to largest"
    shown = thin(numbers, charts.PICTURE_SIDE, charts.PICTURE_SIDE).words if part.ndim == 2 else "every element shown"
    st.caption(f"{shown[0].upper()}{shown[1:]}; colours {scaled}, not normalised; blank is not finite.")


def _line(s: Shown) -> None:
    """One axis; on three axes the vector at a place of the middle one, by a slider."""
    array, axis = s.array, "index"
    if array.ndim == 3 and min(array.shape[1:]) > 1:
        place = _position(s, array.shape[1], array.shape[1] - 1)
        array, axis = array[0, place], "feature"
    figure = charts.line(finite(array).ravel(), theme.palette(), axis=axis)
    theme.draw(figure, height=s.height, key=f"{s.key}-line", alt="The values as a line")
    words = "every element shown" if array.size <= charts.LINE_POINTS else "the range and mean of each stretch shown"
    st.caption(f"{words[0].upper()}{words[1:]}, not normalised.")


def _profile(s: Shown) -> None:
    axis = s.subject.channel_axis
    found = channel_profile(s.array, axis)
    by = s.controls.selectbox(
        "Order", list(_SORTS), key=f"{s.key}-by", width=130, label_visibility="collapsed",
        format_func=_SORTS.__getitem__,
    )  # fmt: skip
    order = np.arange(len(found.mean)) if by == "number" else np.argsort(-np.nan_to_num(getattr(found, by)))
    figure = activation_charts.profile(found, order, theme.palette())
    theme.draw(figure, height=s.height, key=f"{s.key}-profile-{by}", alt="Mean and spread by channel", legend=True)
    silent = int((found.zero == 1).sum())
    st.caption(f"{len(found.mean):,} channels on axis {axis}, over all other axes; {silent:,} always zero.")


def _projection(s: Shown) -> None:
    found = principal(s.array)
    labels = activations.token_labels(session.actor(), s.artifact, s.record.id)
    figure = activation_charts.points(found, labels, theme.palette())
    theme.draw(figure, height=s.height, key=f"{s.key}-projection", alt="Rows as points of two principal components")
    st.caption(f"Principal components of the rows, centred, not scaled; {found.words}.")


def _stack(s: Shown) -> None:
    actor = session.actor()
    layers = activations.layers(actor, s.artifact, s.record.id, s.value.id)
    axis = s.subject.channel_axis
    rows = norms((tracing.value(actor, s.record.id, layer.id) for layer in layers), axis if axis >= 0 else -1)
    small = thin(rows, len(rows), 256)
    labels = activations.token_labels(actor, s.artifact, s.record.id) if rows.shape[1] == s.value.shape[-2:-1] else []
    places = _labels(labels, rows.shape[1], small.steps[1])
    names = [shorten(layer.name, 40) for layer in layers]
    figure = activation_charts.labelled(
        small.array, names, places, theme.palette(), row="layer", column="place", unit="rms"
    )
    figure.update_yaxes(ticktext=[str(at) for at in range(len(names))])
    theme.draw(figure, height=s.height, key=f"{s.key}-stack", alt="The same value in every layer")
    st.caption(f"Root mean square over the features at every place, {len(layers)} layers of the same build; "
               f"{small.words}; one colour scale, not normalised.")  # fmt: skip


def _text(s: Shown) -> None:
    flat = s.array.ravel()[:_TEXTS]
    st.dataframe({"text": [shorten(str(item), 400) for item in flat]}, key=f"{s.key}-text", height=s.height)
    if s.array.size > _TEXTS:
        st.caption(f"The first {_TEXTS} of {s.array.size:,}.")


def _maps_of(s: Shown) -> NDArray[Any]:
    """[channels, height, width] of the first of a batch, or of the one chosen."""
    if s.array.ndim == 3:
        return s.array
    return s.array[0 if len(s.array) == 1 else _position(s, len(s.array), 0, "Of the batch")]


def _position(s: Shown, count: int, first: int, label: str = "Position") -> int:
    """A slider over tokens or time steps; says which token it stands on."""
    if count < 2:
        return 0
    labels = activations.token_labels(session.actor(), s.artifact, s.record.id)
    place = int(st.slider(label, 0, count - 1, first, key=f"{s.key}-position", persist_state="session"))
    if label == "Position" and len(labels) == count:
        st.caption(f"At token {mono(labels[place], 40)}")
    return place


def _labels(labels: list[str], size: int, step: int) -> list[str]:
    known = labels if len(labels) == size else [str(at) for at in range(size)]
    return [f"{name}" for name in known[::step]]


_DRAW: Final[dict[str, Callable[[Shown], None]]] = {
    "tokens": _tokens,
    "attention": _attention,
    "overlay": _overlay,
    "maps": _maps,
    "heatmap": _heatmap,
    "line": _line,
    "profile": _profile,
    "projection": _projection,
    "stack": _stack,
    "text": _text,
}
