"""A place survives the address and JSON; an address that nobody of us wrote does no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app import view_state
from app.view_state import ViewState

words = some.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
ids = some.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:/\-]{0,40}", fullmatch=True)
printable = some.text(min_size=1, max_size=60).filter(str.isprintable)

views = some.builds(
    ViewState,
    page=words,
    model=some.from_regex(r"[0-9a-f]{8,64}", fullmatch=True) | some.just(""),
    level=some.sampled_from(["", "architecture", "block", "layer", "operator"]),
    inside=ids | some.just(""),
    selection=ids | some.just(""),
    tensor=some.integers(0, 10**6).map(str) | some.just(""),
    trace=ids | some.just(""),
    value=ids | some.just(""),
    step=some.integers(0, 99).map(str) | some.just(""),
    overlay=words | some.just(""),
    filters=some.dictionaries(words, printable, max_size=5).map(lambda named: tuple(sorted(named.items()))),
)


@given(views)
def test_a_place_comes_back_from_the_address(view: ViewState) -> None:
    assert view_state.from_query(view.to_query(), view.page) == view


@given(views)
def test_a_place_comes_back_from_json(view: ViewState) -> None:
    assert view_state.from_json(view.to_json()) == view


@given(some.dictionaries(some.sampled_from(["model", "level", "tensor", "selection", "step", "f.a", "x"]), some.text()))
def test_any_address_gives_a_place_that_writes_itself_again(query: dict[str, str]) -> None:
    view = view_state.from_query(query, "graph")
    assert view_state.from_query(view.to_query(), "graph") == view


@given(some.text())
def test_any_text_for_json_gives_a_place(text: str) -> None:
    assert isinstance(view_state.from_json(text), ViewState)


@pytest.mark.parametrize(
    "query",
    [
        {"model": "../../etc/passwd"},
        {"model": "short"},
        {"selection": "<img src=x onerror=alert(1)>"},
        {"tensor": "-1"},
        {"tensor": "1e3"},
        {"level": "galaxy"},
        {"selection": "g" * 401},
        {"f.a": "\u202e"},
        {"f.<b>": "x"},
        {"nonsense": "1"},
        {"v": "999", "model": "0123456789abcdef"},
    ],
)
def test_garbled_parameters_are_ignored(query: dict[str, str]) -> None:
    assert view_state.from_query(query, "graph") == ViewState(page="graph")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 2, "model": "0123456789"}', "[" * 100_000])
def test_json_of_another_kind_gives_the_home_page(text: str) -> None:
    assert view_state.from_json(text) == ViewState()


def test_the_address_is_short_where_little_is_chosen() -> None:
    assert ViewState(page="graph", model="0123456789abcdef").to_query() == {"model": "0123456789abcdef"}


def test_filters_are_set_and_taken_away_by_name() -> None:
    view = ViewState().with_filters(tensors__sort="bytes", tensors__text="conv")
    assert view.filter("tensors.sort") == "bytes"
    assert view.with_filters(tensors__sort=None).filters == (("tensors.text", "conv"),)


def test_a_field_that_does_not_exist_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="a view has no selektion"):
        view_state.changed(ViewState(), selektion="g0.n1")
