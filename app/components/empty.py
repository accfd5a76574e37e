"""Empty states: what is not there, and what to do about it."""

from __future__ import annotations

import streamlit as st

from app import navigation, session
from app.services import opening


def empty(icon: str, sentence: str, advice: str = "") -> None:
    """Our own words, centred, where a page or a part of it has nothing to show."""
    with st.container(horizontal_alignment="center", gap="xxsmall"):
        st.space("medium")
        st.markdown(f"# :gray[{icon}]", text_alignment="center", anchors=False)
        st.markdown(f"**{sentence}**", text_alignment="center")
        if advice:
            st.caption(advice, text_alignment="center")


def no_model(title: str) -> None:
    """A page that needs a model, without one."""
    empty(
        ":material/deployed_code:",
        f"{title} shows an open model, and none is open",
        "Open a file on Home, or look around in the bundled sample.",
    )
    ways_out()


def ways_out() -> None:
    """Where to go when there is no model to show."""
    with st.container(horizontal=True, horizontal_alignment="center"):
        if st.button("Go to Home", key="empty-home", icon=":material/home:", type="primary"):
            session.leave_model()
        if st.button("Open the sample", key="empty-sample", icon=":material/science:"):
            session.open_model(opening.open_sample(session.actor()), session.view().page or navigation.OVERVIEW)
