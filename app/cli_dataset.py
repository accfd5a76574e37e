"""``modelglass trace FILE --data DIR``: what every value ranges over in a set of inputs."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.cli_text import Bar, cell, plain_numbers, print_json, print_table, printable
from core.errors import RunFailed, UsageError
from core.inputs.batch import data_set
from core.inputs.generic import default_recipe, shared_dims
from core.inputs.recipe import Recipe, with_dims
from core.ir import Model
from core.run.dataset import SetRun, recipe_for
from core.run.prepare import InputSlot, input_slots
from core.trace.dataset import DataSetStats
from core.trace.types import RunLimits

DONE, FAILED, CANCELLED = 0, 2, 130
STATS: Final = "dataset.npz"


def over_data(
    model: Model,
    options: argparse.Namespace,
    limits: RunLimits,
    others: Mapping[str, NDArray[np.generic]],
    sources: Mapping[str, str],
) -> int:
    """Run every file of a folder and print ranges and the samples that excite channels most.

    With ``-o DIR`` what was gathered is kept there, and a later call with the same folder goes on with it.
    """
    from core.identity import quick

    slot = _slot(model, options.data_input)
    files = data_set(Recipe("npy"), (options.data,), options.data_count).files
    planned = default_recipe(slot, model).recipe
    dims = shared_dims([slot], {slot.name: planned}, {})
    found = data_set(with_dims(recipe_for(files[0], planned), dims), files)

    def sample(number: int) -> Mapping[str, NDArray[np.generic]]:
        return {**others, slot.name: found.item(number, slot).array}

    names, mark = [Path(file).name for file in files], _mark(quick(model), files)
    with tempfile.TemporaryDirectory(prefix="modelglass-") as folder:
        save = _begun(options.output, folder, mark, names)
        run = SetRun(model, quick(model), sample, sources, limits, "command line", save, folder)
        stop: list[bool] = []
        before = signal.signal(signal.SIGINT, lambda *_: stop.append(True))
        try:
            with Bar("running the samples") as bar:
                outcome = run.run(bar, lambda: bool(stop))
        finally:
            signal.signal(signal.SIGINT, before)
        stats = DataSetStats.load(save)
    data = {"status": outcome.status, "reason": outcome.reason, "peak_rss_bytes": outcome.peak_rss_bytes,
            **stats.to_json(), "channels": _channels(stats)}  # fmt: skip
    _told(options, data, stats)
    if outcome.status == "cancelled":
        print("modelglass: cancelled", file=sys.stderr)
        return CANCELLED
    if outcome.status not in ("complete", "partial"):
        print(f"modelglass: error: {printable(RunFailed(outcome.reason, path=model.path))}", file=sys.stderr)
        return FAILED
    return DONE


def _slot(model: Model, name: str | None) -> InputSlot:
    slots = [slot for slot in input_slots(model) if not slot.optional]
    found = next((slot for slot in slots if name in (None, slot.name)), None)
    if found is None:
        known = ", ".join(slot.name for slot in slots) or "none"
        raise UsageError(f"the model has no input {name!r}", path=model.path, hint=f"Its inputs are: {known}")
    return found


def _mark(model: str, files: tuple[str, ...]) -> str:
    places = [(file, Path(file).stat()) for file in files]
    return "\n".join([model, *(f"{file} {stat.st_size} {stat.st_mtime_ns}" for file, stat in places)])


def _begun(output: str | None, folder: str, mark: str, names: list[str]) -> Path:
    """The file of the statistics: a new one, or the one in ``output`` that is gone on with."""
    place = Path(folder if output is None else output)
    if not place.is_dir():
        if not place.absolute().parent.is_dir():
            raise UsageError("cannot be written: its parent folder is missing", path=str(place))
        place.mkdir()
    save = place / STATS
    if save.exists():
        DataSetStats.load(save).check(mark)
    else:
        DataSetStats(mark, names).save(save)
    return save


def _channels(stats: DataSetStats) -> dict[str, list[dict[str, Any]]]:
    """By value name: figures of every channel and the samples that made it largest."""
    return {
        value.name: [
            {
                "mean": float(by.mean[c]), "std": float(by.std[c]), "min": float(by.low[c]), "max": float(by.high[c]),
                "top": [
                    {"sample": stats.samples[n], "max": float(t)}
                    for n, t in zip(by.best[c].tolist(), by.top[c].tolist(), strict=True) if n >= 0
                ],
            }
            for c in range(len(by.count))
        ]
        for value in stats.values.values() if (by := value.channels) is not None
    }  # fmt: skip


def _told(options: argparse.Namespace, data: dict[str, Any], stats: DataSetStats) -> None:
    if options.json:
        print_json(plain_numbers(data))
        return
    rows = [(v["name"], v["dtype"], v["samples"], v["min"], v["max"], *(v["range_99.9"] or (None, None)), v["mean"],
             v["std"]) for v in data["values"]]  # fmt: skip
    print_table(("value", "dtype", "samples", "min", "max", "99.9 % from", "to", "mean", "std"), rows)
    print(f"\n{data['status']}: {stats.done} of {len(stats.samples)} samples, {len(stats.values)} values")
    if data["reason"]:
        print(cell(data["reason"], 0))
    if options.output is not None:
        print(f"kept in {printable(options.output)}, a later call goes on from there")
