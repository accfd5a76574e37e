"""Runs over a set of inputs: approved once, gone on with after a stop, kept in the state folder."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from app import workspace
from app.actors import Actor, require
from app.jobs import Job, Progress
from app.services import edits, inputs
from app.services.models import reach
from app.services.opening import allowed
from app.services.registry import service
from core.errors import ApprovalVoid, Cancelled, ModelError, NotFound, RunFailed, UsageError
from core.inputs.batch import DataSet, data_set
from core.inputs.generic import generate
from core.inputs.recipe import Recipe
from core.run.dataset import SetRun, fingerprint, recipe_for
from core.run.prepare import InputSlot, check_limits
from core.trace.dataset import DataSetStats
from core.trace.types import RunLimits

if TYPE_CHECKING:
    import pandas as pd

FOLDER: Final = "datasets"
_STATS, _ABOUT = "stats.npz", "set.json"


@dataclass(frozen=True, slots=True)
class SetPlan:
    """A run over a data set as it will be approved.

    Attributes:
        artifact: quick identity of the model.
        input: the input that the samples go into; the others are as planned.
        paths: files or folders, empty for seeded items.
        samples: names in order.
    """

    id: str
    artifact: str
    input: str
    recipe: Recipe
    paths: tuple[str, ...]
    samples: tuple[str, ...]
    limits: RunLimits
    fingerprint: str


@dataclass(frozen=True, slots=True)
class SetRecord:
    """A data set as kept.

    Attributes:
        done: samples that were run; it can be gone on with while that is less than ``samples``.
        created_at: seconds since 1970.
    """

    plan: SetPlan
    done: int
    created_at: float


@service("collaborator")
def plan(
    actor: Actor, artifact: str, name: str, path: str = "", count: int = 0, limits: RunLimits | None = None
) -> SetPlan:
    """What a run over the files of a folder, or over ``count`` seeded items, would be; reads names only.

    Raises:
        NotFound: if the model has no such input or the folder holds no file.
        Forbidden: if the folder lies outside those that may be opened, or the actor may not read files.
        UsageError: if nothing would be in it, or a limit makes no sense.
    """
    limits = limits or RunLimits()
    check_limits(limits)
    opened = reach(actor, artifact)
    slot, planned = _input(actor, artifact, name)
    paths: tuple[str, ...] = ()
    if path:
        require(actor, "owner", "read files of this machine")
        paths = (allowed(path),)
    found = _set(planned, paths, count)
    samples = tuple(os.path.basename(file) for file in found.files) or tuple(
        f"{found.recipe.kind}, seed {found.recipe.seed + n}" for n in range(len(found))
    )
    marks = [f"{file} {os.stat(file).st_size} {os.stat(file).st_mtime_ns}" for file in found.files] or list(samples)
    recipes = {item.slot.name: item.recipe.to_json() for item in inputs.plan(actor, artifact) if item.recipe}
    recipes[slot.name] = found.recipe.to_json()
    mark = fingerprint(opened.quick, marks, recipes, limits)  # the SHA-256 may become known in between
    return SetPlan(
        f"set-{secrets.token_hex(6)}", opened.quick, slot.name, found.recipe, paths, samples, limits, mark
    )  # fmt: skip


@service("collaborator")
def start(actor: Actor, planned: SetPlan, approved: str) -> Job:
    """Run it in a job; ``approved`` is the fingerprint that the acting person consented to.

    Raises:
        ApprovalVoid: if that is another one.
    """
    if approved != planned.fingerprint:
        raise ApprovalVoid("the set is not the one that you approved", hint="Approve it again.")
    place = _place(planned.id)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = {**asdict(planned), "recipe": planned.recipe.to_json(), "created_at": time.time()}
    (place / _ABOUT).write_text(json.dumps(about), "utf-8")
    DataSetStats(planned.fingerprint, planned.samples).save(place / _STATS)
    return _go(actor, planned)


@service("collaborator")
def resume(actor: Actor, id_: str) -> Job:
    """Go on with a set that was stopped, under the consent that it has: model, files and limits are checked again.

    Raises:
        NotFound: if there is none of that id.
        ApprovalVoid: if something it is bound to has changed.
    """
    kept = _record(_place(id_)).plan
    path = kept.paths[0] if kept.paths else ""
    now = plan(actor, kept.artifact, kept.input, path, len(kept.samples), kept.limits)
    if now.fingerprint != kept.fingerprint:
        raise ApprovalVoid("the model, its inputs or the files have changed since", hint="Start a new set.")
    return _go(actor, kept)


@service("viewer")
def listed(actor: Actor, artifact: str) -> list[SetRecord]:
    """The sets of a model, newest first."""
    quick = reach(actor, artifact).quick
    folder = workspace.current().home / FOLDER
    found: list[SetRecord] = []
    for place in sorted(folder.iterdir()) if folder.is_dir() else []:
        try:
            record = _record(place)
        except ModelError:
            continue
        if record.plan.artifact == quick:
            found.append(record)
    return sorted(found, key=lambda record: -record.created_at)


@service("viewer")
def table(actor: Actor, id_: str) -> pd.DataFrame:
    """Every value over the set: id, name, dtype, samples, min, max, mean, std, nan, inf, low and high of 99.9 %."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for value in _stats(_place(id_)).values.values():
        told = value.to_json()
        low, high = told["range_99.9"] or (None, None)
        names = ("id", "name", "dtype", "samples", "min", "max", "mean", "std", "nan", "inf")
        rows.append({**{name: told[name] for name in names}, "low": low, "high": high})
    return pd.DataFrame(rows)


@service("viewer")
def channels(actor: Actor, id_: str, value: str) -> pd.DataFrame:
    """Every channel of a value over the set: channel, mean, std, min, max, and the inputs that made it largest.

    Raises:
        NotFound: if the set has no such value, or it has no channels.
    """
    import pandas as pd

    stats = _stats(_place(id_))
    found = stats.values.get((value, 0))
    if found is None or found.channels is None:
        raise NotFound("there is nothing by channel of this value")
    by = found.channels
    best = [
        ", ".join(f"{stats.samples[n]} ({top:.3g})" for n, top in zip(numbers, tops, strict=True) if n >= 0)
        for numbers, tops in zip(by.best.tolist(), by.top.tolist(), strict=True)
    ]
    columns = {"channel": np.arange(len(best)), "mean": by.mean, "std": by.std, "min": by.low, "max": by.high}
    return pd.DataFrame({**columns, "inputs": best}).replace([np.inf, -np.inf], np.nan)


@service("collaborator")
def forget(actor: Actor, id_: str) -> None:
    """Remove a set and what was gathered over it."""
    place = _place(id_)
    if any(job.subject == id_ and job.active for job in workspace.current().jobs.list()):
        raise NotFound("this set is still at work", hint="Stop it first.")
    shutil.rmtree(place, ignore_errors=True)


def _go(actor: Actor, planned: SetPlan) -> Job:
    held, opened = workspace.current(), reach(actor, planned.artifact)
    slots = {item.slot.name: item for item in inputs.plan(actor, planned.artifact) if item.recipe is not None}
    slot = slots[planned.input].slot
    others = {
        name: generate(item.slot, item.recipe)
        for name, item in slots.items()
        if name != planned.input and item.recipe is not None
    }
    found = _set(planned.recipe, planned.paths, len(planned.samples))

    def sample(number: int) -> Mapping[str, NDArray[np.generic]]:
        return {planned.input: found.item(number, slot).array, **others}

    sources = {name: item.recipe.describe() for name, item in slots.items() if item.recipe is not None}
    run = SetRun(
        edits.runnable(opened), opened.id, sample, sources, planned.limits, actor.id, _place(planned.id) / _STATS,
        str(held.spools.folder),
    )  # fmt: skip

    def work(progress: Progress, cancelled: Callable[[], bool]) -> str:
        outcome = run.run(lambda done, total: progress(done, total, unit="samples"), cancelled)
        if outcome.status == "cancelled":
            raise Cancelled(outcome.reason)
        if outcome.status not in ("complete", "partial"):
            raise RunFailed(outcome.reason)
        return planned.id

    return held.jobs.submit(
        "data set", f"Data set through {opened.model.name}", work, key=f"set {planned.id}", artifact=planned.artifact,
        subject=planned.id, actor=actor.id, memory=planned.limits.memory,
    )  # fmt: skip


def _input(actor: Actor, artifact: str, name: str) -> tuple[InputSlot, Recipe]:
    for item in inputs.plan(actor, artifact):
        if item.slot.name == name and item.recipe is not None:
            return item.slot, item.recipe
    raise NotFound(f"nothing is planned for an input {name[:200]!r}")


def _set(planned: Recipe, paths: tuple[str, ...], count: int) -> DataSet:
    if not paths:
        return data_set(planned, (), count)
    files = data_set(Recipe("npy"), paths).files
    return data_set(recipe_for(files[0], planned), files, count)


def _place(id_: str) -> Path:
    if not id_.startswith("set-") or not id_.removeprefix("set-").isalnum():
        raise UsageError(f"no data set is called {id_[:80]!r}")
    return workspace.current().home / FOLDER / id_


def _record(place: Path) -> SetRecord:
    try:
        told = json.loads((place / _ABOUT).read_text("utf-8"))
        created = float(told.pop("created_at"))
        told["recipe"], told["limits"] = Recipe.from_json(told["recipe"]), RunLimits(**told["limits"])
        planned = SetPlan(**{**told, "paths": tuple(told["paths"]), "samples": tuple(told["samples"])})
    except (OSError, ValueError, KeyError, TypeError):
        raise NotFound("no data set is kept there", hint="Start it anew.") from None
    return SetRecord(planned, _stats(place).done, created)


def _stats(place: Path) -> DataSetStats:
    return DataSetStats.load(place / _STATS)
