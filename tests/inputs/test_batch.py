"""Data sets: one file or seed after another, nothing read before its turn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.errors import InputMismatch, NotFound, UnknownFormat, UsageError
from core.inputs.batch import data_set, stacked
from core.inputs.recipe import Recipe


def test_a_folder_becomes_a_data_set_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    for i in (10, 9, 1):
        Image.new("L", (4, 3), i).save(tmp_path / f"p{i}.png")
    recipe = Recipe("image", options={"normalise": "none", "channels": "gray", "dtype": "uint8"})
    items = data_set(recipe, [str(tmp_path)])
    assert len(items) == 3
    made = stacked(items.items())
    assert made.shape == (3, 1, 3, 4)
    assert made[:, 0, 0, 0].tolist() == [1, 9, 10]
    assert items.item(2).source.startswith("image p10.png")


def test_items_are_read_one_at_a_time(tmp_path: Path) -> None:
    Image.new("L", (4, 3)).save(tmp_path / "1.png")
    (tmp_path / "2.png").write_text("no picture")
    items = data_set(Recipe("image"), [str(tmp_path)]).items()
    assert next(items).array.shape == (1, 3, 3, 4)
    with pytest.raises(UnknownFormat, match=r"2\.png"):
        next(items)


def test_seeds_go_up() -> None:
    items = data_set(Recipe("normal", 5, options={"shape": (1, 4)}), count=3)
    for made, seed in zip(items.items(), (5, 6, 7), strict=True):
        np.testing.assert_array_equal(made.array[0], np.random.default_rng(seed).normal(0, 1, 4).astype(np.float32))
    assert stacked(items.items()).shape == (3, 4)


def test_what_is_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs files, or a recipe with a seed"):
        data_set(Recipe("zeros"), count=3)
    with pytest.raises(UsageError, match="normal reads no file"):
        data_set(Recipe("normal"), [str(tmp_path)])
    with pytest.raises(NotFound, match="holds no file"):
        data_set(Recipe("image"), [str(tmp_path)])
    with pytest.raises(UsageError, match="item 3 of a data set of 3"):
        data_set(Recipe("normal"), count=3).item(3)
    for i, side in enumerate((3, 4)):
        Image.new("L", (side, side)).save(tmp_path / f"{i}.png")
    with pytest.raises(InputMismatch, match=r"1\.png has shape 1 × 3 × 4 × 4, the first item 1 × 3 × 3 × 3"):
        stacked(data_set(Recipe("image"), [str(tmp_path)]).items())
