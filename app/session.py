"""Who is acting and where they are; pages read this and call services with it.

The address is the truth: every run reads the place from it, every change writes it back, so
reload, Back and a copied link lead to the same view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import streamlit as st

from app import navigation, view_state
from app.actors import LOCAL_OWNER, Actor
from app.services import models
from app.view_state import ViewState
from core.errors import UsageError
from core.ir import Model

_VIEW: Final = "modelglass.view"


def actor() -> Actor:
    """The person at this browser: the local owner until sharing is switched on."""
    return LOCAL_OWNER


def begin(page: str) -> ViewState:
    """Read the place from the address; called once a run, before anything is drawn."""
    view = view_state.from_query(st.query_params.to_dict(), page)
    st.session_state[_VIEW] = view
    return view


def view() -> ViewState:
    """The place as of now, changes of this run included."""
    return st.session_state.get(_VIEW) or ViewState()


def model_id() -> str:
    """Id of the open model, empty where none is."""
    return view().model


def current_model() -> tuple[str, Model]:
    """The open model and its id; pages that need one are only drawn when there is one.

    Raises:
        UsageError: if none is open.
        NotFound: if the id in the address is not known here.
        SourceChanged: if its file is another one now.
    """
    artifact = model_id()
    if not artifact:
        raise UsageError("no model is open", hint="Open one on Home.")
    return artifact, models.get(actor(), artifact)


def set_view(**changes: str) -> ViewState:
    """Change fields of the place and write the address; the page is not run again."""
    return _keep(view_state.changed(view(), **changes))


def set_filters(**changes: str | None) -> ViewState:
    """Change choices of a page, e.g. ``set_filters(tensors__sort="bytes")``; ``None`` removes one."""
    return _keep(view().with_filters(**changes))


def change(fields: Mapping[str, str], filters: Mapping[str, str | None]) -> ViewState:
    """Change fields and choices in one step of the browser's history; filter names are as in the address."""
    return _keep(view_state.changed(view(), **fields).with_filters(**filters))


def select(item: str) -> ViewState:
    """Select a node, region or value by id on all pages."""
    return set_view(selection=item)


def clear_selection() -> ViewState:
    """Select nothing."""
    return set_view(selection="", value="", tensor="")


def link(**changes: str) -> dict[str, str]:
    """Query parameters of this place with some fields changed, for ``st.page_link``."""
    return view_state.changed(view(), **changes).to_query()


def go(page: str, **changes: str) -> None:
    """Leave for another page, keeping the place but for ``changes``; does not return."""
    target = view_state.changed(view(), page=page, **changes)
    st.switch_page(navigation.page(navigation.entry(page)), query_params=target.to_query())


def open_model(artifact: str, page: str = navigation.OVERVIEW) -> None:
    """Leave for ``page`` of another model, with nothing selected; does not return."""
    target = ViewState(page=page, model=artifact)
    st.switch_page(navigation.page(navigation.entry(page)), query_params=target.to_query())


def leave_model() -> None:
    """Go Home with no model open; does not return."""
    st.switch_page(navigation.page(navigation.entry(navigation.HOME)), query_params={})


def _keep(new: ViewState) -> ViewState:
    old = view()
    if new != old:
        st.session_state[_VIEW] = new
        before = old.to_query()
        others = {name: text for name, text in st.query_params.to_dict().items() if name not in before}
        st.query_params.from_dict({**others, **new.to_query()})  # once: each write is a step of the browser's history
    return new
