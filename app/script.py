"""The dashboard: navigation, the model bar and the page; run by Streamlit for every interaction."""

from __future__ import annotations

from collections import defaultdict

import streamlit as st

from app import navigation, session, workspace
from app.components import empty, error_box, model_bar
from app.navigation import PageEntry
from app.plain_text import plain
from app.theme import favicon, logo, tighten


def main() -> None:
    """Draw one run of the dashboard."""
    st.set_page_config(
        page_title="Modelglass",
        page_icon=favicon(),
        layout="wide",
        initial_sidebar_state=208,
        menu_items={"About": "Modelglass inspects neural-network model files. Nothing leaves this machine."},
    )
    entries = navigation.entries()
    pages = {entry.key: navigation.page(entry) for entry in entries}
    chosen = st.navigation(list(pages.values()), position="hidden")
    here = next(entry for entry in entries if pages[entry.key].url_path == chosen.url_path)
    session.begin(here.key)
    st.logo(logo())
    tighten()
    _sidebar(entries)
    notice = workspace.current().notice
    if notice:
        st.warning(plain(notice, 400), icon=":material/info:")
    ready = True
    if session.model_id():
        with error_box.guard() as outcome:
            model_bar.model_bar()
        ready = not outcome.failed
    if not here.needs_model:
        ready = True
    elif not session.model_id():
        empty.no_model(here.title)
        return
    if not ready:
        empty.ways_out()
        return
    with error_box.guard():
        chosen.run()


def _sidebar(entries: tuple[PageEntry, ...]) -> None:
    """Navigation whose links carry the model and the selection along."""
    groups: dict[str, list[PageEntry]] = defaultdict(list)
    for entry in entries:
        groups[entry.group].append(entry)
    query = session.link()
    with st.sidebar:
        for group, members in groups.items():
            with st.container(gap="xxsmall"):
                st.caption(group)
                for entry in members:
                    st.page_link(
                        navigation.page(entry), label=entry.title, icon=entry.icon, width="stretch", query_params=query
                    )


main()
