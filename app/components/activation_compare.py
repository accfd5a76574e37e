"""Two runs along their depth, and two values side by side with their difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app import format_text, session, theme
from app.components import activation_charts, array_view, charts
from app.components.paged_table import picked, tail
from app.plain_text import plain, shorten
from app.services import activations, tracing
from core.errors import ModelError, UsageError
from core.store.traces import TraceRecord
from core.trace.types import TracedValue
from core.trace.views.difference import Difference, difference

ROW: Final = 30
_MEASURES: Final = {"sqnr_db": "SQNR, dB", "relative_l2": "Relative L2", "max_abs": "Max |Δ|", "cosine": "Cosine"}


def titles(history: Sequence[TraceRecord]) -> dict[str, str]:
    """A name for each run by its id: its number and what went in; newest first, as ``history`` is."""
    return {
        r.id: f"Run {len(history) - at}: {shorten(', '.join(i.source for i in r.inputs), 48) or 'no inputs'}"
        for at, r in enumerate(history)
    }


def comparable(history: Sequence[TraceRecord], record: TraceRecord) -> list[TraceRecord]:
    """Other runs of the model that came to their end."""
    return [r for r in history if r.id != record.id and r.values and r.status in ("complete", "partial")]


def two_runs(
    artifact: str, record: TraceRecord, history: Sequence[TraceRecord], height: int,
    on_pick: Callable[[str, int], None],
) -> None:  # fmt: skip
    """Draw where two runs begin to differ; a click shows the value."""
    others = comparable(history, record)
    if record.status not in ("complete", "partial"):
        st.caption("This run did not come to its end, so it is not compared.")
        return
    if not others:
        st.caption("There is no second run of this model. Trace it with other inputs to compare.")
        return
    names = titles(history)
    wanted = session.view().filter("compare.run")
    ids = [r.id for r in others]
    other = st.selectbox(
        "Compare with", ids, ids.index(wanted) if wanted in ids else 0, names.__getitem__,
        key=f"compare-run-{record.id}", on_change=_keep_run, args=(record.id,), width=420,
        label_visibility="collapsed",
    )  # fmt: skip
    found: Any = activations.compare(session.actor(), artifact, record.id, other)
    left, right = st.columns([7, 5], gap="medium")
    with left:
        _drift_chart(record.id, other, found, height, on_pick)
    with right:
        _drift_table(record.id, other, found, height, on_pick)


def _drift_chart(trace: str, other: str, found: Any, height: int, on_pick: Callable[[str, int], None]) -> None:
    shown = found[found["reason"] == ""]
    finite = [None if not math.isfinite(v) else float(v) for v in shown["sqnr_db"]]
    same = int(np.isposinf(shown["sqnr_db"].to_numpy(float)).sum())
    key = f"drift-{trace}-{other}"
    known = {int(r): (str(v), int(s)) for r, v, s in zip(shown["row"], shown["id"], shown["step"], strict=True)}

    def clicked() -> None:
        points = st.session_state[key].selection.points
        hit = known.get(int(points[0]["x"])) if points else None
        if hit is not None:
            on_pick(*hit)

    if all(v is None for v in finite):
        st.caption("No value that both runs kept differs." if same else "The two runs share no value that can be read.")
    else:
        figure = activation_charts.drift(shown["row"].tolist(), shown["name"].tolist(), finite, theme.palette())
        theme.draw(
            figure, height=height - 24, key=key, alt="SQNR along the run", on_select=clicked, selection_mode="points"
        )
    st.caption(f"{same:,} of {len(found):,} values are bit for bit the same; "
               f"{len(found) - len(shown):,} cannot be compared.")  # fmt: skip


def _drift_table(trace: str, other: str, found: Any, height: int, on_pick: Callable[[str, int], None]) -> None:
    key = f"drift-table-{trace}-{other}"
    ids, steps = found["id"].tolist(), found["step"].tolist()
    frame = pd.DataFrame({"name": [tail(name, 34) for name in found["name"]]})
    frame = frame.assign(**{name: found[name] for name in _MEASURES}, reason=found["reason"])
    st.dataframe(
        frame.replace([math.inf, -math.inf], [999.0, -999.0]), key=key, hide_index=True, row_height=ROW, height=height,
        on_select=lambda: picked(key, lambda row: on_pick(str(ids[row]), int(steps[row]))),
        selection_mode="single-row",
        column_config={
            "name": st.column_config.TextColumn("Value", width=150),
            **{n: st.column_config.NumberColumn(t, format="%.4g", width=84) for n, t in _MEASURES.items()},
            "reason": st.column_config.TextColumn("Not compared because", width=160),
        },
    )  # fmt: skip


def beside(artifact: str, record: TraceRecord, value: TracedValue, history: Sequence[TraceRecord]) -> None:
    """A value beside the same of another run, or beside another value of this run."""
    actor = session.actor()
    choices = _choices(record, value, history, activations.layers(actor, artifact, record.id, value.id))
    if not choices:
        st.caption("There is no other run to compare with, and no layer of the same build.")
        return
    wanted = session.view().filter("compare.value")
    keys = list(choices)
    chosen = st.selectbox(
        "Beside", keys, keys.index(wanted) if wanted in keys else 0, choices.__getitem__, key=f"beside-{value.id}",
        on_change=_keep_value, args=(value.id,),
    )  # fmt: skip
    run, other, step = chosen.split("/")
    try:
        second = np.asarray(tracing.value(actor, run, other, int(step)))
        first = np.asarray(tracing.value(actor, record.id, value.id, value.step))
        found = difference(first, second)
    except ModelError as error:
        st.caption(plain(_sentence(error), 300))
        return
    _measures(found)
    _three(first, second, f"beside-{value.id}-{value.step}-{chosen.replace('/', '-')}")


def _choices(
    record: TraceRecord, value: TracedValue, history: Sequence[TraceRecord], layers: Sequence[activations.Layer]
) -> dict[str, str]:
    names = titles(history)
    runs = {f"{r.id}/{value.id}/{value.step}": f"the same in {names[r.id]}" for r in comparable(history, record)}
    alike = {f"{record.id}/{layer.id}/0": tail(layer.name, 60) for layer in layers if layer.id != value.id}
    return runs | alike


def _measures(found: Difference) -> None:
    sqnr = "equal" if math.isinf(found.sqnr_db) and found.sqnr_db > 0 else f"{format_text.number(found.sqnr_db, 4)} dB"
    figures = (
        ("Max |Δ|", format_text.number(found.max_abs, 4)),
        ("Relative L2", format_text.number(found.relative_l2, 4)),
        ("Cosine", format_text.number(found.cosine, 6)),
        ("SQNR", sqnr),
    )
    st.markdown(" :gray[·] ".join(f":gray[{name}] {figure}" for name, figure in figures))
    if found.compared < found.count:
        st.caption(f"{found.count - found.compared:,} of {found.count:,} elements are not finite in both.")


def _three(first: NDArray[Any], second: NDArray[Any], key: str) -> None:
    """This, the other, and the other less this: two scales, one for both values and one for the difference."""
    cut = array_view.choose(first.shape, key)
    a, b = (np.asarray(array[cut.index], np.float64) for array in (first, second))
    colours = theme.palette()
    names = ("This", "The other", "The other − this")
    if a.ndim < 2:
        figure = charts.line(b.ravel(), colours)
        figure.data[0].update(name=names[1], line={"color": colours.categories[1], "width": 1.2})
        figure.add_traces(charts.line(a.ravel(), colours).update_traces(name=names[0]).data)
        theme.draw(figure, height=240, key=f"{key}-lines", alt="Both values as lines", legend=True)
        return
    finite = np.concatenate([x[np.isfinite(x)] for x in (a, b)])
    ends = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    for column, (name, part) in zip(st.columns(3, gap="small"), zip(names, (a, b, b - a), strict=True), strict=True):
        figure = charts.heatmap(part, colours, rows=cut.rows, columns=cut.columns, compact=True)
        if part is a or part is b:
            low, high = theme.centred(*ends) if ends[0] < 0 < ends[1] else ends
            figure.update_traces(zmin=low, zmax=high)
        figure.update_xaxes(title=None)
        figure.update_yaxes(title=None)
        with column:
            st.caption(name)
            theme.draw(figure, height=230, key=f"{key}-{name}", alt=name)
    st.caption("Both values share one colour scale; the difference has its own, diverging about zero; not normalised.")


def _sentence(error: ModelError) -> str:
    return "Their shapes differ, so they are not compared." if isinstance(error, UsageError) else str(error)


def _keep_run(trace: str) -> None:
    session.set_filters(compare__run=st.session_state[f"compare-run-{trace}"])


def _keep_value(value: str) -> None:
    session.set_filters(compare__value=st.session_state[f"beside-{value}"])
