"""The table of kinds: it fits the functions it names, checks options, and goes through JSON."""

from __future__ import annotations

import importlib
import inspect
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from core.errors import InputMismatch, UsageError
from core.inputs.generic import generate
from core.inputs.kinds import KINDS, kind_of
from core.inputs.options import Param, checked, complete, parsed
from core.inputs.produce import own_shapes, produce, produce_for
from core.inputs.recipe import Recipe


@dataclass(frozen=True)
class Slot:
    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None


def sample(param: Param) -> Any:
    """A value of the parameter that is not its default."""
    match param.type:
        case "int" | "float":
            other = param.low + 1 if param.low > -1e6 else 2
            return type(param.default)(other if other != param.default else other + 1)
        case "choice":
            return param.choices[-1]
        case "bool":
            return not param.default
        case "dtype":
            return "float16"
        case "ints" | "shape":
            return (2, 3)
        case "floats":
            return (0.5, 1.5)
        case "paths":
            return ("a", "b")
        case _:
            return "x"


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_takes_what_its_function_takes(name: str) -> None:
    kind = KINDS[name]
    function = getattr(importlib.import_module(kind.module), kind.function)
    assert [param.name for param in kind.params] == list(inspect.signature(function).parameters)
    defaults = {param.name: param.default for param in kind.params}
    assert checked(kind, {k: v for k, v in defaults.items() if v not in ((), "")}) or not kind.params[0].default
    assert all(param.about for param in kind.params)


@pytest.mark.parametrize("name", KINDS)
def test_a_recipe_of_every_kind_goes_through_json(name: str) -> None:
    options = {param.name: sample(param) for param in KINDS[name].params}
    recipe = Recipe(name, 5, dims={"n": 3}, options=options)
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe
    assert recipe.describe()
    assert complete(KINDS[name], {}) == {param.name: param.default for param in KINDS[name].params}


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("image", {"heigth": 3}, "image takes no 'heigth'. It takes path, height"),
        ("image", {"height": -1}, "height of image is -1, expected a whole number from 0 to 16384"),
        ("image", {"height": 3.5}, "expected a whole number"),
        ("image", {"height": True}, "expected a whole number"),
        ("image", {"fit": "squeeze"}, "expected one of stretch, letterbox, crop"),
        ("image", {"mean": "0.5"}, "expected numbers"),
        ("image", {"mean": [float("nan")]}, "expected numbers"),
        ("image", {"dtype": "float31"}, "expected an element type"),
        ("zeros", {"shape": [1] * 65}, "expected at most 64 whole numbers"),
        ("zeros", {"shape": [-1]}, "expected at most 64 whole numbers"),
        ("audio", {"mono": "maybe"}, "expected yes or no"),
        ("pickle", {}, "no input recipe is called 'pickle'"),
    ],
)
def test_options_are_checked_in_one_sentence(kind: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Recipe.from_json({"kind": kind, "options": options})
    assert words in str(caught.value)


def test_what_a_person_writes() -> None:
    image, zeros = kind_of("image"), kind_of("zeros")
    assert parsed(image, "height", "224") == 224
    assert parsed(image, "mean", "0.5, 1e-1,2") == (0.5, 0.1, 2.0)
    assert parsed(zeros, "shape", "1,3") == (1, 3)
    assert parsed(kind_of("audio"), "mono", "No") is False
    with pytest.raises(UsageError, match="height of image is 'tall', expected a whole number"):
        parsed(image, "height", "tall")


def test_the_files_of_a_recipe_are_known() -> None:
    assert Recipe("image", options={"path": "a.png"}).files == ("a.png",)
    assert Recipe("image", options={"path": "ready:picture"}).files == ()
    assert Recipe("video", options={"paths": ("b", "c")}).files == ("b", "c")
    assert Recipe("npy", path="d.npy").files == ("d.npy",)
    assert Recipe("zeros").files == ()


def test_an_input_decides_what_a_recipe_leaves_open() -> None:
    picture = Recipe("image", dims={"n": 2, "w": 40}, options={"path": "ready:picture"})
    made = produce_for(Slot("x", "float16", ("n", 3, 24, "w")), picture)
    assert (made.array.dtype, made.array.shape) == (np.float16, (2, 3, 24, 40))
    assert made.facts["repeated"] == 2
    last = Recipe("image", options={"path": "ready:picture", "layout": "NHWC", "normalise": "none"})
    assert generate(Slot("x", "uint8", (1, 20, 30, 3)), last).shape == (1, 20, 30, 3)
    cache = generate(Slot("past", "float32", (1, 4, "past", 16)), Recipe("past", dims={"past": 3}))
    assert cache.shape == (1, 4, 3, 16)
    wave = generate(Slot("x", "float32", (2, 300)), Recipe("series"))
    np.testing.assert_allclose(wave[1], np.sin(2 * np.pi * 440 * np.arange(300) / 16000), atol=1e-6)
    assert generate(Slot("m", "bool", (1, "s")), Recipe("mask", dims={"s": 4})).tolist() == [[True] * 4]


def test_what_does_not_fit_an_input_is_one_sentence() -> None:
    flat = Recipe("image", options={"path": "ready:picture"})
    with pytest.raises(InputMismatch, match="takes shape 1 × 8, layout NCHW has 4 axes"):
        generate(Slot("x", "float32", (1, 8)), flat)
    with pytest.raises(InputMismatch, match="takes shape 1 × 1 × 8 × 8, the array has 1 × 3 × 8 × 8"):
        generate(Slot("x", "float32", (1, 1, 8, 8)), flat)
    with pytest.raises(InputMismatch, match="declares no rank"):
        generate(Slot("x", "float32", None), Recipe("constant"))


def test_files_bring_their_own_sizes(tmp_path: Any) -> None:
    np.save(tmp_path / "a.npy", np.zeros((1, 9), np.float32))
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    slots = [Slot("a", "float32", (1, "n")), Slot("t", "float32", (1, "rows", 2)), Slot("z", "float32", ("n",))]
    recipes = {"a": Recipe("npy", path=str(tmp_path / "a.npy")), "z": Recipe("zeros"),
               "t": Recipe("table", options={"path": str(tmp_path / "t.csv")})}  # fmt: skip
    assert own_shapes(slots, recipes) == {"a": (1, 9), "t": (1, 2, 2)}


def test_the_seed_of_a_recipe_is_that_of_its_kind() -> None:
    one = produce(Recipe("normal", 7, options={"shape": (4,)})).array
    np.testing.assert_array_equal(one, np.random.default_rng(7).normal(0, 1, 4).astype(np.float32))


@pytest.mark.parametrize(
    ("part", "expected"),
    [("start", [65, 66, 32, 256]), ("end", [256, 66, 32, 67]), ("both", [65, 66, 32, 67])],
)
def test_bytes_of_a_file(tmp_path: Any, part: str, expected: list[int]) -> None:
    data = {"start": b" \nAB ", "end": b"B C\n", "both": b" AB   C "}[part]
    (tmp_path / "f").write_bytes(data)
    options = {"path": str(tmp_path / "f"), "length": 4, "part": part, "strip": True}
    assert produce(Recipe("bytes", options=options)).array.tolist() == [expected]
