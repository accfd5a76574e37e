"""Series, masks, ids, caches and fills against numpy; sizes are bounded before anything is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.errors import LimitExceeded, UsageError
from core.inputs.produce import produce
from core.inputs.recipe import Recipe


def made(kind: str, **options: Any) -> np.ndarray:
    return produce(Recipe(kind, options=options)).array


TIME = np.arange(400) / 8000
WAVES = {
    "sine": np.sin(2 * np.pi * 250 * TIME),
    "cosine": np.cos(2 * np.pi * 250 * TIME),
    "square": np.where(np.arange(400) % 32 < 16, 1.0, -1.0),  # 8000 / 250 = 32 samples a period
    "saw": 2 * ((np.arange(400) % 32) / 32) - 1,
    "noise": np.random.default_rng(4).standard_normal(400),
    "walk": np.cumsum(np.random.default_rng(4).standard_normal(400)),
}


@pytest.mark.parametrize("wave", WAVES)
def test_waves_by_their_formulas(wave: str) -> None:
    found = made("series", wave=wave, samples=400, rate=8000.0, frequency=250.0, seed=4, dtype="float64")
    np.testing.assert_allclose(found, WAVES[wave][None], atol=1e-11)


def test_a_chirp_goes_from_one_frequency_to_the_other() -> None:
    found = made(
        "series", wave="chirp", samples=8000, rate=8000.0, frequency=100.0, end_frequency=500.0, dtype="float64"
    )
    # the derivative of the phase is 100 + 400 t, so the phase after t seconds is 100 t + 200 t^2 turns
    time = np.arange(8000) / 8000
    np.testing.assert_allclose(found[0], np.sin(2 * np.pi * (100 * time + 200 * time**2)), atol=1e-9)


@pytest.mark.parametrize(
    ("layout", "shape"),
    [("NT", (2, 9)), ("TN", (9, 2)), ("NTC", (2, 9, 3)), ("NCT", (2, 3, 9)), ("TC", (9, 3)), ("CT", (3, 9))],
)
def test_layouts_of_a_series(layout: str, shape: tuple[int, ...]) -> None:
    sizes = {"N": ("batch", 2), "C": ("channels", 3)}
    options = dict(sizes[letter] for letter in layout if letter in sizes)
    found = made("series", wave="noise", samples=9, layout=layout, dtype="float64", **options)
    assert found.shape == shape
    whole = np.random.default_rng(0).standard_normal((options.get("batch", 1), options.get("channels", 1), 9))
    letters = "NCT"
    expected = np.einsum(f"{letters}->{''.join(c for c in letters if c in layout)}", whole)  # sums over axes of size 1
    order = [[c for c in letters if c in layout].index(c) for c in layout]
    np.testing.assert_array_equal(found, expected.transpose(order))


def test_a_series_needs_axes_for_what_it_holds() -> None:
    with pytest.raises(UsageError, match="layout NT has no axis for 3 channels"):
        made("series", layout="NT", channels=3)
    with pytest.raises(UsageError, match="impulse at sample 9 lies outside of 9 samples"):
        made("series", wave="impulse", samples=9, at=9)
    assert made("series", wave="impulse", samples=5, at=3, amplitude=2.0).tolist() == [[0, 0, 0, 2, 0]]


def test_masks() -> None:
    assert made("mask", shape=(2, 3)).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert made("mask", shape=(2, 4), pattern="lengths", lengths=(1, 3)).tolist() == [[1, 0, 0, 0], [1, 1, 1, 0]]
    board = made("mask", shape=(1, 4, 4), pattern="checkerboard", cell=2, dtype="bool")
    assert board[0].astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    drawn = made("mask", shape=(100, 100), pattern="random", share=0.2, seed=1, dtype="float32")
    np.testing.assert_array_equal(drawn, np.random.default_rng(1).random((100, 100)) < 0.2)
    with pytest.raises(UsageError, match="a length of 5 is longer than the 4 places"):
        made("mask", shape=(1, 4), pattern="lengths", lengths=(5,))
    ball = made("mask", shape=(1, 1, 28, 28), pattern="image", path="ready:digit", dtype="float32")
    assert 20 < ball.sum() < 200
    assert ball[0, 0, 7, 10] == 1
    assert ball[0, 0, 27, 27] == 0


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_ids(dtype: str) -> None:
    found = made("ids", shape=(3, 50), dtype=dtype, vocabulary=30, first=4, seed=2)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.random.default_rng(2).integers(4, 30, (3, 50)))
    assert made("ids", shape=(1, 5), dtype=dtype, pattern="ramp", vocabulary=3).tolist() == [[0, 1, 2, 0, 1]]
    assert made("ids", shape=(2, 3), dtype=dtype, pattern="values", values=(7, 8)).tolist() == [[7, 8, 7]] * 2


def test_ids_beyond_the_vocabulary_are_refused_with_both_numbers() -> None:
    with pytest.raises(UsageError, match="id 31000 is not below the vocabulary of 30522"):
        made("ids", shape=(1, 4), pattern="values", values=(5, 31000), vocabulary=30522)
    with pytest.raises(UsageError, match="ids cannot be float32"):
        made("ids", dtype="float32")


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        ("BHTD", (2, 4, 3, 8)),
        ("BTHD", (2, 3, 4, 8)),
        ("HBTD", (4, 2, 3, 8)),
        ("BHDT", (2, 4, 8, 3)),
        ("BTE", (2, 3, 32)),
    ],
)
def test_past(layout: str, shape: tuple[int, ...]) -> None:
    found = made("past", batch=2, heads=4, length=3, head_size=8, layout=layout, content="normal", seed=5)
    expected = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    assert made("past", layout=layout).size == 0


def test_fills() -> None:
    assert made("ramp", shape=(2, 3), start=5.0, step=-2.0, dtype="int8").tolist() == [[5, 3, 1], [5, 3, 1]]
    assert made("ramp", shape=(2, 3), axis=99, dtype="int64").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made("ramp", shape=(2, 3), axis=0).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert made("one_hot", shape=(2, 4), index=2, dtype="bool").tolist() == [[False, False, True, False]] * 2
    assert made("one_hot", shape=(50, 7), seed=3).sum(axis=1).tolist() == [1.0] * 50
    assert made("constant", shape=(2,), value=-0.5, dtype="bfloat16").tolist() == [0xBF00] * 2
    normal = np.random.default_rng(6).normal(3, 2, (4, 5)).astype(np.float32)
    np.testing.assert_array_equal(made("normal", shape=(4, 5), mean=3.0, std=2.0, seed=6), normal)
    drawn = made("uniform", shape=(1000,), low=-2.0, high=3.0, dtype="int64")
    assert set(drawn.tolist()) == {-2, -1, 0, 1, 2, 3}
    with pytest.raises(UsageError, match="300 do not fit uint8, which holds 0 to 255"):
        made("constant", shape=(2,), value=300.0, dtype="uint8")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("zeros", {"shape": (1 << 20, 1 << 20)}),
        ("normal", {"shape": (1 << 31, 4)}),
        ("past", {"length": 1 << 24}),
        ("series", {"samples": 1 << 26, "channels": 4096, "layout": "NCT"}),
        ("mask", {"shape": (1 << 31,)}),
    ],
)
def test_too_large_is_refused_before_it_is_made(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(LimitExceeded, match="elements, allowed are 134217728"):
        made(kind, **options)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("picture", (1, 3, 224, 224)), ("digit", (1, 1, 28, 28)), ("heartbeat", (1, 1024)), ("vowel", (1, 16000))],
)
def test_ready_made_tensors(name: str, shape: tuple[int, ...]) -> None:
    found = made("ready", name=name)
    assert found.shape == shape
    assert found.dtype == np.float32
    assert 0.2 < np.ptp(found) <= 2
    assert made("ready", name="picture", shape=(2, 32, 48, 3)).shape == (2, 32, 48, 3)
    assert made("ready", name="heartbeat", shape=(2, 1, 3000)).shape == (2, 1, 3000)
