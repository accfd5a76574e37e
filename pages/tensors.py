"""Tensors: where are the bytes, what do the weights look like."""

from __future__ import annotations

import io
from typing import Final

import numpy as np
import streamlit as st

from app import format_text, session
from app.components import array_view, empty
from app.components.job_progress import job_progress
from app.components.tensor_table import tensor_table
from app.plain_text import mono, plain
from app.services import jobs, tensors
from core.ir import ByteRange, Model, Tensor
from core.limits import MIB
from core.tensors.read import decodable, values, values_slice

DOWNLOAD: Final = 64 * MIB
"""Bytes of a tensor that may be fetched as .npy."""

SCANNED_AT_ONCE: Final = 32 * MIB


def draw() -> None:
    """Draw the page."""
    artifact, model = session.current_model()
    if not model.tensors:
        empty.empty(":material/grid_on:", "This file stores no tensors", "Graph shows what it computes.")
        return
    _scan(artifact, model)
    tensor_table(artifact, rows_shown=6 if session.view().tensor else 14, on_pick=_pick)
    chosen = session.view().tensor
    if chosen and int(chosen) < len(model.tensors):
        _one(artifact, model, int(chosen))
    else:
        st.caption("Click a row to see the numbers of a tensor.")


def _pick(index: int) -> None:
    session.set_view(tensor=str(index))


def _scan(artifact: str, model: Model) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        total = sum(tensor.nbytes for tensor in model.tensors)
        st.markdown(
            f"**{format_text.plural(len(model.tensors), 'tensor')}** :gray[{format_text.size(total)}]", width="content"
        )
        st.space("stretch")
        running = next((j for j in jobs.listed(session.actor(), artifact) if j.kind == "statistics" and j.active), None)
        if running is not None:
            job_progress(running.id)
        elif st.button("Take all statistics", key="tensors-scan", icon=":material/analytics:"):
            tensors.scan(session.actor(), artifact)
            st.rerun()


def _one(artifact: str, model: Model, index: int) -> None:
    tensor = model.tensors[index]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"### {mono(tensor.name, 120)}", anchors=False, width="content")
        st.space("stretch")
        _download(model, index, tensor)
    kind = f"{mono(tensor.dtype)} {plain(format_text.shape(tensor.shape))}"
    amount = f"{format_text.plural(tensor.elements, 'element')} · {format_text.size(tensor.nbytes)}"
    st.caption(f"{kind} · {amount} · {_where(model, tensor)}")
    reason = decodable(model, index)
    if reason:
        st.warning(f"Its values cannot be shown: {plain(reason, 300)}", icon=":material/block:")
        return
    left, right = st.columns([2, 3], gap="medium")
    with left:
        stats = tensors.known_statistics(session.actor(), artifact, index)
        if stats is None and (tensor.nbytes <= SCANNED_AT_ONCE or st.button("Take its statistics", key=f"one-{index}")):
            with st.spinner("Reading the tensor…"):
                stats = tensors.statistics(session.actor(), artifact, index)
        if stats is not None:
            array_view.facts(stats)
            array_view.histogram(stats, f"tensor-{index}")
        _used(model, index)
    with right:
        array_view.picture(lambda cut: values_slice(model, index, cut), tensor.shape, f"tensor-{index}")


def _where(model: Model, tensor: Tensor) -> str:
    if isinstance(tensor.data, ByteRange):
        name = model.sources[tensor.data.source].name
        return f"bytes {tensor.data.start:,} to {tensor.data.stop:,} of {mono(name, 60)}"
    return "inside a field" if tensor.data is not None else "no data"


def _used(model: Model, index: int) -> None:
    users = [
        node
        for graph in model.graphs
        for value in np.flatnonzero(graph.columns.tensor == index).tolist()
        for node in map(graph.node, dict.fromkeys(graph.value(value).consumers))
    ]
    st.markdown("**Used by**" if users else ":gray[No operator uses it.]")
    with st.container(horizontal=True, gap="xsmall"):
        for node in users[:8]:
            if st.button(
                plain(f"{node.op_type} {node.name[-24:]}"), key=f"used-{node.id}", icon=":material/account_tree:"
            ):
                session.go("graph", selection=node.id, inside="")
        if len(users) > 8:
            st.caption(f"and {len(users) - 8} more")


def _download(model: Model, index: int, tensor: Tensor) -> None:
    fits = tensor.nbytes <= DOWNLOAD and not decodable(model, index) and tensor.dtype != "string"
    st.download_button(
        ".npy", lambda: npy(model, index), file_name=f"tensor-{index}.npy", key=f"npy-{index}",
        icon=":material/download:", on_click="ignore", disabled=not fits,
        help="Decoded numbers" if fits else f"Only numbers up to {format_text.size(DOWNLOAD)} can be fetched here",
    )  # fmt: skip


def npy(model: Model, index: int) -> bytes:
    """One decoded tensor as a ``.npy`` file; reads it from disk."""
    out = io.BytesIO()
    np.save(out, values(model, index), allow_pickle=False)
    return out.getvalue()


draw()
