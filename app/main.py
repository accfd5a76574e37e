"""Start with ``streamlit run app/main.py`` or ``modelglass``: the ASGI application around ``script.py``."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app import handed_over, workspace
from app.components import error_box

app = st.App(
    Path(__file__).with_name("script.py"),
    routes=handed_over.routes,
    lifespan=workspace.lifespan,
    on_script_error=error_box.show,
)
