"""What goes into a run: a recipe an input, kept with the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app import workspace
from app.actors import Actor, require
from app.services.models import reach
from app.services.opening import allowed
from app.services.registry import service
from core.errors import NotFound
from core.inputs.generic import default_recipe, generate, shared_dims
from core.inputs.npy import npy_head
from core.inputs.recipe import Recipe, with_dims
from core.ir import Model
from core.run.prepare import InputSlot, input_slots


@dataclass(frozen=True, slots=True)
class Plan:
    """What one input will be given.

    Attributes:
        recipe: what was assigned, else what is proposed, with every open dimension sized;
            ``None`` for an input with a stored default that nobody assigned.
        assigned: whether a person chose it.
        reason: why it is proposed, empty where assigned.
    """

    slot: InputSlot
    recipe: Recipe | None
    assigned: bool
    reason: str


@service("collaborator")
def assign(actor: Actor, artifact: str, name: str, recipe: Recipe | None) -> None:
    """Keep a recipe for one input, or take it back with ``None``; a file takes the role owner.

    Raises:
        NotFound: if the model has no such input.
        Forbidden: if the file lies outside the folders that may be opened.
    """
    opened = reach(actor, artifact)
    if name not in {slot.name for slot in input_slots(opened.model)}:
        raise NotFound(f"the model has no input {name[:200]!r}", path=opened.model.path)
    if recipe is not None and recipe.files:
        require(actor, "owner", "read files of this machine")
        places = [allowed(path) for path in recipe.files]
        if recipe.kind == "npy":
            recipe = Recipe("npy", dims=recipe.dims, path=places[0])
            npy_head(recipe.path)
    text = None if recipe is None else json.dumps(recipe.to_json())
    workspace.current().store.artifacts.assign_input(opened.quick, name, text)


@service("viewer")
def assigned(actor: Actor, artifact: str) -> dict[str, Recipe]:
    """The recipes that were assigned, by input name."""
    kept = workspace.current().store.artifacts.assigned_inputs(reach(actor, artifact).quick)
    return {name: Recipe.from_json(json.loads(text)) for name, text in kept.items()}


@service("viewer")
def plan(actor: Actor, artifact: str) -> list[Plan]:
    """What every input will be given, in the order of the signature.

    Raises:
        Unavailable: if the model has no graph that runs.
        InputMismatch: if two files disagree on a dimension.
    """
    return _plan(reach(actor, artifact).model, assigned(actor, artifact))


@service("collaborator")
def materialise(actor: Actor, artifact: str) -> dict[str, NDArray[np.generic]]:
    """An array for every input of the plan, by name; reads the files of ``npy`` recipes.

    Raises:
        InputMismatch: if a recipe does not fit its input.
    """
    return {
        item.slot.name: generate(item.slot, item.recipe) for item in plan(actor, artifact) if item.recipe is not None
    }


@service("collaborator")
def materialise_one(actor: Actor, artifact: str, name: str) -> NDArray[np.generic]:
    """The array of one input, for a preview.

    Raises:
        NotFound: if nothing is planned for an input of that name.
    """
    for item in plan(actor, artifact):
        if item.slot.name == name and item.recipe is not None:
            return generate(item.slot, item.recipe)
    raise NotFound(f"nothing is planned for an input {name[:200]!r}")


def _plan(model: Model, chosen: Mapping[str, Recipe]) -> list[Plan]:
    slots = input_slots(model)
    items: list[Plan] = []
    for slot in slots:
        if slot.name in chosen:
            items.append(Plan(slot, chosen[slot.name], assigned=True, reason=""))
        elif slot.optional:
            items.append(Plan(slot, None, assigned=False, reason="The file stores a value for it."))
        else:
            proposal = default_recipe(slot, model)
            items.append(Plan(slot, proposal.recipe, assigned=False, reason=proposal.reason))
    used = [item for item in items if item.recipe is not None]
    recipes = {item.slot.name: item.recipe for item in used if item.recipe is not None}
    shapes = {name: npy_head(recipe.path).shape for name, recipe in recipes.items() if recipe.kind == "npy"}
    dims = shared_dims([item.slot for item in used], recipes, shapes)
    return [
        item if item.recipe is None else Plan(item.slot, with_dims(item.recipe, dims), item.assigned, item.reason)
        for item in items
    ]
