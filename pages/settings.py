"""Settings: where things are kept, which limits hold, which versions run."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import pandas as pd
import streamlit as st

from app import format_text, workspace
from app.components.figures import Figure, figures
from app.services import models
from app.session import actor
from core import limits
from core.trace.types import RunLimits

_PACKAGES: Final = ("modelglass", "streamlit", "onnx", "onnxruntime", "numpy", "duckdb", "numba", "plotly")


def draw() -> None:
    """Draw the page."""
    held = workspace.current()
    run = RunLimits()
    figures(
        [
            Figure("Open models", format_text.count(len(models.opened(actor()))), "the least used closes first"),
            Figure(
                "Memory of a run",
                format_text.binary_size(run.memory),
                f"and {format_text.seconds(run.time)}, unless changed",
            ),
            Figure("Largest upload", format_text.binary_size(limits.UPLOAD_BYTES), "open larger files by path"),
            Figure("You are", actor().name, f"role {actor().role}"),
        ],
        key="settings-figures",
    )
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("## Where things are kept", anchors=False)
        st.caption("State folder: recent files, statistics, traces, uploads and the log")
        st.code(str(held.home), language=None)
        st.caption("Set MODELGLASS_HOME before the start to use another folder.")
        st.caption("Folders that may be opened by path")
        st.code("\n".join(str(root) for root in held.roots) or "anywhere on this machine", language=None)
        st.caption("Set MODELGLASS_ROOTS before the start to allow only some.")
    with right:
        st.markdown("## Versions", anchors=False)
        rows = [*((name, _version(name)) for name in _PACKAGES), ("Python", platform.python_version())]
        st.dataframe(
            pd.DataFrame(rows, columns=["package", "version"]),
            key="settings-versions",
            hide_index=True,
            row_height=30,
            column_config={"package": "Package", "version": "Version"},
        )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


draw()
