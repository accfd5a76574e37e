"""The pages of the dashboard: one line a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from core.errors import NotFound

PAGES_FOLDER: Final = Path(__file__).resolve().parent.parent / "pages"
"""The ``pages`` package beside ``app``, in a checkout and in ``site-packages`` alike."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One page.

    Attributes:
        key: file name without ending, and the page's address (Home's address is ``/``).
        group: heading in the sidebar.
        icon: Material symbol.
        needs_model: whether the page says something only about an open model.
    """

    key: str
    title: str
    group: str
    icon: str
    needs_model: bool = True

    @property
    def path(self) -> Path:
        """The page's file, absolute."""
        return PAGES_FOLDER / f"{self.key}.py"


HOME: Final = "home"
OVERVIEW: Final = "overview"

PAGES: Final[tuple[PageEntry, ...]] = (
    PageEntry(HOME, "Home", "Inspect", ":material/home:", needs_model=False),
    PageEntry(OVERVIEW, "Overview", "Inspect", ":material/dashboard:"),
    PageEntry("graph", "Graph", "Inspect", ":material/account_tree:"),
    PageEntry("tensors", "Tensors", "Inspect", ":material/grid_on:"),
    PageEntry("sql", "SQL", "Inspect", ":material/database:"),
    PageEntry("edit", "Edit", "Change", ":material/edit:"),
    PageEntry("inputs", "Inputs", "Run", ":material/input:"),
    PageEntry("trace", "Trace", "Run", ":material/play_circle:"),
    PageEntry("activations", "Activations", "Run", ":material/stacked_line_chart:"),
    PageEntry("settings", "Settings", "Team", ":material/settings:", needs_model=False),
)


def entries() -> tuple[PageEntry, ...]:
    """All pages whose file is there."""
    return tuple(entry for entry in PAGES if entry.path.is_file())


def entry(key: str) -> PageEntry:
    """The page called ``key``.

    Raises:
        NotFound: if there is none.
    """
    for found in entries():
        if found.key == key:
            return found
    raise NotFound(f"there is no page called {key!r}")


def page(entry: PageEntry) -> st.Page:
    """The page as Streamlit knows it; equal for equal entries."""
    return st.Page(entry.path, title=entry.title, icon=entry.icon, url_path=entry.key, default=entry.key == HOME)
