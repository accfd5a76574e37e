"""A folder or list of files as a data set: one array after another, for calibration and sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.errors import InputMismatch, UsageError
from core.inputs.encode import bounded
from core.inputs.generated import Generated
from core.inputs.kinds import kind_of
from core.inputs.produce import produce, produce_for
from core.inputs.recipe import Recipe, Slot, shape_text
from core.inputs.video import picture_files


@dataclass(frozen=True, slots=True)
class DataSet:
    """Items of one recipe, each from a file of its own or, where there is no file, with a seed of its own.

    Nothing is read before an item is asked for, and no item is kept.
    """

    recipe: Recipe
    files: tuple[str, ...]
    count: int

    def __len__(self) -> int:
        return self.count

    def item(self, index: int, slot: Slot | None = None) -> Generated:
        """One item, made for an input where one is given.

        Raises:
            UsageError: if there is no such item.
            ModelError: as ``produce``.
        """
        if not 0 <= index < self.count:
            raise UsageError(f"item {index} of a data set of {self.count} was asked for")
        if self.files:
            recipe = replace(self.recipe, options={**self.recipe.options, "path": self.files[index]})
        else:
            recipe = replace(self.recipe, seed=self.recipe.seed + index)
        return produce(recipe) if slot is None else produce_for(slot, recipe)

    def items(self, slot: Slot | None = None) -> Iterator[Generated]:
        """Every item in order, one at a time."""
        return (self.item(index, slot) for index in range(self.count))


def data_set(recipe: Recipe, paths: Sequence[str] = (), count: int = 0) -> DataSet:
    """A data set of the files in ``paths`` (folders give theirs), or ``count`` seeded items where none are named.

    Raises:
        UsageError: if the recipe takes no file, has no seed, or nothing would be in it.
        NotFound: if a folder holds no file.
        LimitExceeded: beyond ``limits.FILES``.
    """
    kind = kind_of(recipe.kind)
    if paths:
        if kind.param("path") is None:
            raise UsageError(f"{kind.name} reads no file, so it cannot go through a list of them")
        files = tuple(picture_files(tuple(paths)))
        chosen = files[:count] if count else files
        return DataSet(recipe, chosen, len(chosen))
    if count < 1 or kind.param("seed") is None:
        raise UsageError("a data set needs files, or a recipe with a seed and a count")
    return DataSet(recipe, (), count)


def stacked(items: Iterator[Generated]) -> NDArray[np.generic]:
    """All items as one array, joined along their first axis.

    Raises:
        UsageError: if there are none.
        InputMismatch: if their shapes differ.
        LimitExceeded: beyond ``encode.MADE_ELEMENTS``.
    """
    found: list[NDArray[np.generic]] = []
    rows = 0
    for made in items:
        array = made.array
        if not array.ndim or (found and array.shape[1:] != found[0].shape[1:]):
            raise InputMismatch(f"{made.source} has shape {shape_text(array.shape)}, the first item "
                                f"{shape_text(found[0].shape) if found else 'needs an axis'}")  # fmt: skip
        rows += array.shape[0]
        bounded((rows, *array.shape[1:]), "the data set")
        found.append(array)
    if not found:
        raise UsageError("the data set is empty")
    return np.concatenate(found)
