"""Recipes: dimensions by symbol, JSON, and what a shape binds."""

from dataclasses import dataclass

import pytest

from core.errors import InputMismatch, LimitExceeded, UsageError
from core.inputs.recipe import Recipe, bind, concrete_shape, open_dimensions


@dataclass(frozen=True)
class Slot:
    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None


def test_a_symbol_is_asked_for_once_and_shared_by_all_inputs():
    ids, mask = Slot("ids", "int64", ("batch", "seq")), Slot("mask", "int64", ("batch", "seq"))
    assert open_dimensions([ids, mask]) == {
        "batch": [("ids", 0), ("mask", 0)],
        "seq": [("ids", 1), ("mask", 1)],
    }
    sizes = {"batch": 2, "seq": 7}
    assert concrete_shape(ids, sizes) == concrete_shape(mask, sizes) == (2, 7)


def test_placeholder_names_do_not_tie_dimensions_together():
    # PP-OCR's classifier writes "?" for height and for width
    slot = Slot("x", "float32", (-1, 3, "?", "?"))
    assert list(open_dimensions([slot])) == ["x[0]", "x[2]", "x[3]"]
    assert concrete_shape(slot, {"x[0]": 1, "x[2]": 48, "x[3]": 192}) == (1, 3, 48, 192)


def test_a_sum_of_symbols_follows_from_its_parts():
    slot = Slot("mask", "int64", ("batch", "past + seq + 1"))
    assert list(open_dimensions([slot])) == ["batch"]
    assert concrete_shape(slot, {"batch": 1, "past": 4, "seq": 3}) == (1, 8)


def test_a_missing_size_is_named():
    with pytest.raises(InputMismatch, match=r"dimension 'seq' of input 'ids' has no size"):
        concrete_shape(Slot("ids", "int64", ("batch", "seq")), {"batch": 1})


def test_an_unknown_rank_needs_a_file():
    with pytest.raises(InputMismatch, match=r"declares no rank\. Give it a \.npy file"):
        concrete_shape(Slot("x", "float32", None), {})


def test_too_many_elements_are_refused_before_anything_is_made():
    with pytest.raises(LimitExceeded, match="number of elements"):
        concrete_shape(Slot("x", "float32", ("a", "b")), {"a": 1 << 30, "b": 1 << 30})


@pytest.mark.parametrize(
    ("shape", "words"),
    [((2, 3), "takes shape n × 4, the array has 2 × 3"), ((4,), "takes shape n × 4, the array has 4")],
)
def test_an_array_of_another_shape_is_refused(shape, words):
    with pytest.raises(InputMismatch, match=words):
        bind(Slot("x", "float32", ("n", 4)), shape)


def test_two_arrays_must_agree_on_a_symbol():
    sizes = bind(Slot("ids", "int64", ("batch", "seq")), (1, 7))
    assert sizes == {"batch": 1, "seq": 7}
    with pytest.raises(InputMismatch, match="dimension 'seq' is 7 elsewhere and 9 in input 'mask'"):
        bind(Slot("mask", "int64", ("batch", "seq")), (1, 9), sizes)


def test_json_carries_every_field():
    recipe = Recipe("random", 7, -1.0, 2.0, {"seq": 12}, "a.npy")
    assert Recipe.from_json(recipe.to_json()) == recipe


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "torch"},
        {"seed": -1},
        {"seed": "0"},
        {"dims": {"n": -1}},
        {"dims": {"n": "4"}},
        {"dims": [4]},
        {"path": 3},
        {"low": float("nan")},
        {"high": "9"},
    ],
)
def test_json_of_the_wrong_type_is_refused(bad):
    with pytest.raises(UsageError):
        Recipe.from_json(bad)


def test_a_recipe_says_itself_in_words():
    assert Recipe("random", 3).describe() == "random, seed 3"
    assert Recipe("random", low=0, high=255).describe() == "random 0 to 255, seed 0"
    assert Recipe("random", low=16000, high=16000).describe() == "always 16000"
    assert Recipe("npy", path="/data/pets/cat.npy").describe() == "file cat.npy"
    assert Recipe("zeros").describe() == "zeros"
