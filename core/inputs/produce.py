"""From a recipe to an array, alone or for one input of a model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from core.dtypes import DTYPES
from core.errors import InputMismatch
from core.inputs.encode import array_type
from core.inputs.generated import Generated
from core.inputs.kinds import kind_of
from core.inputs.npy import npy_head
from core.inputs.options import Kind, Option, checked, complete
from core.inputs.recipe import Recipe, Slot, bind, concrete_shape, dimension_key, shape_text

AXES: Final[dict[str, dict[str, str]]] = {
    "image": {"H": "height", "W": "width"},
    "video": {"T": "frames", "H": "height", "W": "width"},
    "series": {"N": "batch", "C": "channels", "T": "samples"},
    "past": {"B": "batch", "H": "heads", "T": "length", "D": "head_size"},
}
"""By kind and letter of its layout the parameter that gives the size of that axis."""


def produce(recipe: Recipe) -> Generated:
    """The array of a recipe that stands alone; reads the files it names.

    Raises:
        UsageError: if an option is unknown, of the wrong type or out of bounds.
        ModelError: what the kind's own function says of its files.
    """
    kind = kind_of(recipe.kind)
    options = dict(checked(kind, recipe.options))
    if kind.param("seed"):
        options.setdefault("seed", recipe.seed)
    if recipe.path and kind.param("path"):
        options.setdefault("path", recipe.path)
    function: Callable[..., Generated] = getattr(importlib.import_module(kind.module), kind.function)
    return function(**complete(kind, options))


def produce_for(slot: Slot, recipe: Recipe) -> Generated:
    """The array of a recipe for one input: shape, sizes and dtype follow the input where left open.

    A single item is repeated where the input takes a larger fixed batch.

    Raises:
        InputMismatch: if dtype or shape do not fit the input.
        UsageError, ModelError: as ``produce``.
    """
    made = produce(replace(recipe, options={**_implied(slot, recipe), **recipe.options}))
    made = _batched(slot, recipe, made)
    dtype = DTYPES.get(slot.dtype or "")
    if dtype is None:
        raise InputMismatch(f"input {slot.name!r} declares no element type", hint="It cannot be filled here.")
    wanted = array_type(dtype)
    if made.array.dtype != wanted:
        raise InputMismatch(f"input {slot.name!r} takes {slot.dtype}, the recipe makes {made.array.dtype}")
    bind(slot, made.array.shape)
    return made


def own_shapes(slots: Iterable[Slot], recipes: Mapping[str, Recipe]) -> dict[str, tuple[int, ...]]:
    """Shapes by input name of the recipes that bring their own sizes (files, text); reads those files."""
    found: dict[str, tuple[int, ...]] = {}
    for slot in slots:
        recipe = recipes.get(slot.name)
        if recipe is None:
            continue
        if recipe.kind == "npy":
            found[slot.name] = npy_head(recipe.path or str(recipe.options.get("path", ""))).shape
        elif kind_of(recipe.kind).group in ("file", "text"):
            found[slot.name] = produce_for(slot, recipe).array.shape
    return found


def _implied(slot: Slot, recipe: Recipe) -> dict[str, Option]:
    """Options that the input itself decides."""
    kind = kind_of(recipe.kind)
    found: dict[str, Option] = {}
    if kind.param("dtype") and slot.dtype is not None:
        found["dtype"] = slot.dtype
    if kind.param("shape") and "shape" not in recipe.options:
        found["shape"] = concrete_shape(slot, recipe.dims)
    return found | _sizes(kind, slot, recipe)


def _sizes(kind: Kind, slot: Slot, recipe: Recipe) -> dict[str, Option]:
    param, axes = kind.param("layout"), AXES.get(kind.name)
    if param is None or axes is None or slot.shape is None:
        return {}
    layout = str(recipe.options.get("layout", param.default))
    if not layout.isupper():  # named layouts such as qwen decide for themselves
        return {}
    if len(layout) != len(slot.shape):
        raise InputMismatch(
            f"input {slot.name!r} takes shape {shape_text(slot.shape)}, layout {layout} has {len(layout)} axes",
            hint="Choose another layout.",
        )
    found: dict[str, Option] = {}
    for axis, letter in enumerate(layout):
        name, dim, key = axes.get(letter), slot.shape[axis], dimension_key(slot, axis)
        size = dim if key is None and isinstance(dim, int) else recipe.dims.get(key or "")
        if name is not None and size is not None:
            found[name] = size
    return found


def _batched(slot: Slot, recipe: Recipe, made: Generated) -> Generated:
    shape, array = slot.shape, made.array
    if not shape or len(shape) != array.ndim or array.shape[0] != 1:
        return made
    key = dimension_key(slot, 0)
    size = shape[0] if key is None else recipe.dims.get(key)
    if not isinstance(size, int) or size <= 1 or (kind_of(recipe.kind).param("batch") and "batch" in recipe.options):
        return made
    facts = {**made.facts, "repeated": size}
    return replace(made, array=np.repeat(array, size, 0), facts=facts)
