"""A run over a whole set of inputs: what to run, consent, how far it is, and what it gave."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import error_box
from app.components.job_progress import job_progress
from app.components.paged_table import tail
from app.plain_text import mono, plain, shorten
from app.services import datasets, inputs, jobs
from app.services.datasets import SetPlan, SetRecord
from core.trace.types import RunLimits

ROW: Final = 30
_WAITING: Final = "trace.dataset"


def dataset_section(artifact: str, limits: RunLimits) -> None:
    """Draw the section; closed until somebody wants it or there is a set to show."""
    known = datasets.listed(session.actor(), artifact)
    with st.expander("Over a data set", icon=":material/dataset:", expanded=bool(known), key="trace-dataset"):
        _ask(artifact, limits)
        if known:
            _known(artifact, known)
    planned: SetPlan | None = st.session_state.get(_WAITING)
    if planned is not None:
        _consent(planned)


def _ask(artifact: str, limits: RunLimits) -> None:
    names = [item.slot.name for item in inputs.plan(session.actor(), artifact) if item.recipe is not None]
    if not names:
        st.caption("The model takes no inputs.")
        return
    with st.form("dataset-form", border=False):
        boxes = st.columns([3, 5, 2, 2], vertical_alignment="bottom")
        name = boxes[0].selectbox("Input that changes", names, format_func=lambda n: shorten(n, 40))
        path = boxes[1].text_input(
            "Folder on this machine", placeholder="empty: seeded random inputs", key="dataset-folder"
        )
        count = int(boxes[2].number_input("At most", 1, 10_000, 64, key="dataset-count"))
        if boxes[3].form_submit_button("Approve & run", icon=":material/play_arrow:", width="stretch"):
            with error_box.guard():
                st.session_state[_WAITING] = datasets.plan(session.actor(), artifact, name, path.strip(), count, limits)


def _drop() -> None:
    st.session_state.pop(_WAITING, None)


@st.dialog("Approve this data set", width="large", icon=":material/verified_user:", on_dismiss=_drop)
def _consent(planned: SetPlan) -> None:
    st.markdown(
        "The model will be executed by separate processes, one after the other, once for every sample. "
        "Your approval holds for exactly these files and limits."
    )
    limits, samples = planned.limits, planned.samples
    rows = [
        ("Samples", format_text.plural(len(samples), "sample")),
        ("First", ", ".join(shorten(name, 40) for name in samples[:4])),
        (f"Input {shorten(planned.input, 40)}", shorten(planned.recipe.describe(), 160)),
        ("Memory", format_text.binary_size(limits.memory)),
        ("Time", f"{format_text.seconds(limits.time)} for each sample"),
        ("Threads", str(limits.threads)),
        ("Stored values", "none: statistics of every value and channel only"),
    ]
    st.dataframe(
        pd.DataFrame(rows, columns=["What", "Value"]), hide_index=True, key="dataset-consent", row_height=ROW,
        column_config={"What": st.column_config.TextColumn(width=150)},
    )  # fmt: skip
    st.caption(f"Fingerprint {mono(planned.fingerprint[:16])}")
    with st.container(horizontal=True, gap="small"):
        if st.button("Approve & run", key="dataset-yes", type="primary", icon=":material/play_arrow:"):
            with error_box.guard() as outcome:
                datasets.start(session.actor(), planned, planned.fingerprint)
            if not outcome.failed:
                _drop()
                st.rerun()
        if st.button("Not now", key="dataset-no", type="tertiary"):
            _drop()
            st.rerun()


def _known(artifact: str, known: list[SetRecord]) -> None:
    active = {
        job.subject: job for job in jobs.listed(session.actor(), artifact) if job.kind == "data set" and job.active
    }
    names = {record.plan.id: _title(record) for record in known}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        id_ = st.selectbox(
            "Set",
            list(names),
            format_func=names.__getitem__,
            key="dataset-shown",
            label_visibility="collapsed",
            width=420,
        )
        record = next(record for record in known if record.plan.id == id_)
        total = len(record.plan.samples)
        st.caption(f"{record.done:,} of {total:,} run", width="content")
        if id_ not in active:
            if record.done < total and st.button("Go on", key=f"dataset-resume-{id_}", icon=":material/resume:"):
                with error_box.guard() as outcome:
                    datasets.resume(session.actor(), id_)
                if not outcome.failed:
                    st.rerun()
            st.button(
                "Remove", key=f"dataset-forget-{id_}", icon=":material/delete:", type="tertiary", on_click=_forget,
                args=(id_,),
            )  # fmt: skip
    if id_ in active:
        job_progress(active[id_].id)
    elif record.done:
        _results(id_)
    ended = [job for job in jobs.listed(session.actor(), artifact) if job.subject == id_ and job.state == "failed"]
    if ended and id_ not in active and record.done < total:
        st.caption(f":red[{plain(ended[0].error, 400)}]")


def _title(record: SetRecord) -> str:
    samples, name = record.plan.samples, shorten(record.plan.input, 30)
    return f"{format_text.plural(len(samples), 'sample')} into {name}: {shorten(samples[0], 30)} …"


def _results(id_: str) -> None:
    rows: Any = datasets.table(session.actor(), id_)
    if rows.empty:
        st.caption("No value of this set has statistics.")
        return
    left, right = st.columns([7, 5], gap="medium")
    with left:
        numeric = {n: st.column_config.NumberColumn(t, format="%.4g", width=78) for n, t in _COLUMNS.items()}
        shown = rows.assign(name=[tail(name, 34) for name in rows["name"]])
        event: Any = st.dataframe(
            shown, key=f"dataset-table-{id_}", hide_index=True, row_height=ROW, height=ROW * 9 + 2,
            on_select="rerun", selection_mode="single-row",
            column_order=["name", *_COLUMNS, "nan", "inf", "dtype", "samples"],
            column_config={"name": st.column_config.TextColumn("Value", width=170), **numeric,
                           "nan": "NaN", "inf": "Infinite", "dtype": "Type", "samples": "Samples"},
        )  # fmt: skip
        st.caption("Ranges for calibration: smallest to largest, and the middle 99.9 % (within 1 part in 128).")
        st.download_button(
            "CSV", lambda: rows.to_csv(index=False), file_name="ranges.csv", mime="text/csv", on_click="ignore",
            key=f"dataset-csv-{id_}", icon=":material/download:",
        )  # fmt: skip
    with right:
        if event.selection.rows:
            _channels(id_, str(rows["id"].iloc[event.selection.rows[0]]))
        else:
            st.caption("Click a value to see its channels and the samples that excite them most.")


def _channels(id_: str, value: str) -> None:
    with error_box.guard():
        st.dataframe(
            datasets.channels(session.actor(), id_, value), key=f"dataset-channels-{id_}-{value}", hide_index=True,
            row_height=ROW, height=ROW * 9 + 2,
            column_config={
                "channel": st.column_config.NumberColumn("Channel", width=70),
                **{n: st.column_config.NumberColumn(n.capitalize(), format="%.3g", width=70)
                   for n in ("mean", "std", "min", "max")},
                "inputs": st.column_config.TextColumn("Samples that made it largest", width=320),
            },
        )  # fmt: skip


def _forget(id_: str) -> None:
    datasets.forget(session.actor(), id_)


_COLUMNS: Final = {
    "min": "Min", "max": "Max", "low": "99.9 % from", "high": "to", "mean": "Mean", "std": "Std",
}  # fmt: skip
