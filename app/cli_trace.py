"""The verb that runs a model: trace."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.cli_text import Bar, cell, parse_size, parse_time, plain_numbers, print_json, print_table, printable, shape
from core.errors import RunFailed, UsageError
from core.inputs.generic import default_recipe, generate, shared_dims
from core.inputs.npy import npy_head
from core.inputs.npz import read_npz
from core.inputs.recipe import Recipe, dimension_key, summed, with_dims
from core.ir import Model
from core.opening import open_model
from core.run.prepare import InputSlot, input_slots
from core.trace.types import RunLimits, TraceResult

DONE, FAILED, CANCELLED = 0, 2, 130
_TICK: Final = 0.05


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``trace``."""
    limits = RunLimits()
    add = parser.add_argument
    add("--input", metavar="NAME=X.npy", action="append", default=[], help="the array for one input (repeat)")
    add("--inputs", metavar="X.npz", help="arrays for several inputs, by their names")
    add("--dim", metavar="NAME=N", action="append", default=[], help="the size of an open dimension (repeat)")
    kinds = parser.add_mutually_exclusive_group()
    for kind in ("random", "zeros", "ones"):
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind,
                           help=f"fill the other inputs with {kind}")  # fmt: skip
    add("--seed", type=int, default=0, metavar="N", help="seed of random inputs (0)")
    add("--memory", default=str(limits.memory), metavar="SIZE", help="memory limit (2GiB)")
    add("--time", default=str(limits.time), metavar="TIME", help="time limit (60s)")
    add("--capture", default=str(limits.capture), metavar="SIZE", help="values held at once (256MiB)")
    add("--store", default=str(limits.store), metavar="SIZE", help="values written at most (512MiB)")
    add("--threads", type=int, default=limits.threads, metavar="N", help="threads of the runtime (2)")
    add("--provider", default=limits.provider, metavar="P", help="auto or cpu (auto)")
    add("--engine", default="auto", metavar="E", help="auto, onnxruntime, reference or normalized (auto)")
    add("--iterations", metavar="N,N", help="iterations of Loop and Scan to look into (the first 8)")
    add("--no-latency", action="store_true", help="do not measure how long each node takes")
    add("--data", metavar="DIR", help="run every file of a folder and print what its values range over")
    add("--data-input", metavar="NAME", help="the input that the files go into (the first)")
    add("--data-count", type=int, default=0, metavar="N", help="at most N files of the folder (all)")
    add("-o", dest="output", metavar="DIR", help="write trace.json and one .npy a value into a new folder")
    parser.set_defaults(work=trace)


def trace(options: argparse.Namespace) -> int:
    """Run a model and print every value; 0 where the run is complete or partial."""
    target = None if options.data else _target(options.output)
    model = open_model(options.file)
    limits = given_limits(options)
    arrays, sources = _inputs(model, options)
    if options.data:
        from app.cli_dataset import over_data

        return over_data(model, options, limits, arrays, sources)
    with tempfile.TemporaryDirectory(prefix="modelglass-") as folder:
        result = _answered(model, _run(model, arrays, sources, limits, options, folder))
        data = result.to_json()
        del data["spool"]
        if target is not None and result.status != "cancelled":
            _write(result, data, target)
    if options.json:
        print_json(data)
    else:
        _print(result, target)
    if result.status in ("complete", "partial"):
        return DONE
    if result.status == "cancelled":
        print("modelglass: cancelled", file=sys.stderr)
        return CANCELLED
    print(f"modelglass: error: {printable(RunFailed(result.reason, path=model.path))}", file=sys.stderr)
    return FAILED


def given_limits(options: argparse.Namespace) -> RunLimits:
    """The limits of the flags."""
    return RunLimits(
        parse_size(options.memory), parse_time(options.time), parse_size(options.capture), parse_size(options.store),
        options.threads, options.provider,
    )  # fmt: skip


def _run(
    model: Model,
    arrays: dict[str, NDArray[np.generic]],
    sources: dict[str, str],
    limits: RunLimits,
    options: argparse.Namespace,
    folder: str,
) -> TraceResult:
    """Start the worker, draw its progress and wait for its end; Ctrl-C asks it to stop."""
    from core.identity import quick
    from core.run import prepare, process

    request, spool = prepare.request(
        model, arrays, sources, limits, quick(model), engine=options.engine, latency=not options.no_latency,
        iterations=_numbers(options.iterations), folder=folder,
    )  # fmt: skip
    run = process.start(request, spool, process.approve(request, "command line"))
    before = signal.signal(signal.SIGINT, lambda *_: run.cancel())
    try:
        with Bar("running") as bar:
            while run.running:
                for event in run.poll():
                    if event["event"] == "progress":
                        bar(int(event.get("done", 0)), int(event.get("total", 0)))
                _wait(run, _TICK)
        return run.wait()
    finally:
        run.cancel()
        signal.signal(signal.SIGINT, before)


def _answered(model: Model, result: TraceResult) -> TraceResult:
    """The result with what it says about the model among its findings."""
    from core.trace.answers.table import of_result

    if result.status not in ("complete", "partial"):
        return result
    return replace(result, findings=(*result.findings, *of_result(model, result)))


def _wait(run: Any, seconds: float) -> None:
    try:
        run.wait(seconds)
    except TimeoutError:
        return


def _inputs(model: Model, options: argparse.Namespace) -> tuple[dict[str, NDArray[np.generic]], dict[str, str]]:
    """The array of every input and where it came from."""
    slots = [slot for slot in input_slots(model) if not slot.type_text]
    files, dims = _pairs(options.input, "--input", "NAME=X.npy"), _dims(options.dim)
    names = {slot.name for slot in input_slots(model)}
    arrays = read_npz(options.inputs) if options.inputs else {}
    for name in [*files, *arrays]:
        if name not in names:
            raise UsageError(f"the model has no input {name!r}", path=model.path,
                             hint="Its inputs are: " + ", ".join(sorted(names)))  # fmt: skip
    arrays = {name: array for name, array in arrays.items() if name not in files}
    wanted = [slot for slot in slots if not slot.optional or slot.name in files or slot.name in arrays]
    recipes = {slot.name: _recipe(slot, model, options, files) for slot in wanted if slot.name not in arrays}
    shapes = {name: npy_head(path).shape for name, path in files.items()}
    shapes |= {name: array.shape for name, array in arrays.items()}
    given = {name: with_dims(recipe, dims) for name, recipe in recipes.items()}
    _check_dims(dims, wanted, model)
    known = shared_dims(wanted, given, shapes)
    made = {slot.name: generate(slot, with_dims(recipes[slot.name], known)) for slot in wanted if slot.name in recipes}
    texts = {name: array.astype(object) if array.dtype.kind in "US" else array for name, array in arrays.items()}
    sources = {name: recipe.describe() for name, recipe in recipes.items()}
    return made | texts, sources | {name: f"file {Path(options.inputs).name}" for name in arrays}


def _recipe(slot: InputSlot, model: Model, options: argparse.Namespace, files: dict[str, str]) -> Recipe:
    if slot.name in files:
        return Recipe("npy", path=files[slot.name])
    proposed = default_recipe(slot, model).recipe
    if options.kind is None:
        return proposed if proposed.kind != "random" else Recipe("random", options.seed, proposed.low, proposed.high)
    if options.kind == "random" and proposed.kind == "random":
        return Recipe("random", options.seed, proposed.low, proposed.high)
    return Recipe(options.kind, options.seed)


def _pairs(items: list[str], flag: str, form: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in items:
        name, sign, value = item.rpartition("=")
        if not sign or not name or not value:
            raise UsageError(f"{flag} {item!r} does not say which", hint=f"Write it as {form}.")
        if name in pairs:
            raise UsageError(f"{flag} names {name!r} twice")
        pairs[name] = value
    return pairs


def _numbers(text: str | None) -> tuple[int, ...]:
    items = [item.strip() for item in text.split(",")] if text else []
    if not all(item.isdecimal() for item in items):
        raise UsageError(f"--iterations is {text!r}, expected whole numbers with commas between")
    return tuple(int(item) for item in items)


def _dims(items: list[str]) -> dict[str, int]:
    pairs = _pairs(items, "--dim", "NAME=N")
    for name, text in pairs.items():
        if not text.isdecimal():
            raise UsageError(f"--dim {name!r} is {text!r}, expected a whole number")
    return {name: int(text) for name, text in pairs.items()}


def _check_dims(dims: dict[str, int], slots: list[InputSlot], model: Model) -> None:
    keys = [dimension_key(slot, axis) for slot in slots for axis in range(len(slot.shape or ()))]
    names = {name: None for key in keys if key is not None for name in summed(key) or [key]}
    for name in dims:
        if name not in names:
            raise UsageError(f"the model has no open dimension {name!r}", path=model.path,
                             hint="It has: " + (", ".join(names) or "none"))  # fmt: skip


# --- what is left behind ----------------------------------------------------------------


def _target(text: str | None) -> Path | None:
    """The folder to write, which must not be there yet or be empty."""
    if text is None:
        return None
    target = Path(text)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError("is there already", path=text, hint="Name a new folder.")
    if not target.absolute().parent.is_dir():
        raise UsageError("cannot be written: its parent folder is missing", path=text)
    return target


def _write(result: TraceResult, data: dict[str, Any], target: Path) -> None:
    """Write beside the target and rename, so that nothing half-written is ever there."""
    from core.trace.values import load_value

    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.absolute().parent))
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", path=str(target)) from None
    try:
        for number, value in enumerate(result.values):
            if value.stored:
                file = f"{number:05d}.npy"
                np.save(beside / file, load_value(result, value), allow_pickle=False)
                data["values"][number]["file"] = file
        (beside / "trace.json").write_text(json.dumps(plain_numbers(data), indent=1), "utf-8")
        beside.chmod(0o755)
        if target.exists():
            target.rmdir()
        beside.rename(target)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", path=str(target)) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _print(result: TraceResult, target: Path | None) -> None:
    names = ("mean", "std", "min", "max", "nan", "inf")
    inside = any(v.path for v in result.values)
    print_table(
        ("value", *(["inside"] if inside else []), "dtype", "shape", *names, "stored"),
        [
            (v.name, *([v.path] if inside else []), v.dtype, shape(v.shape),
             *(getattr(v.stats, name, None) for name in names), v.stored)
            for v in result.values
        ],
    )  # fmt: skip
    slowest = sorted((n for n in result.nodes if n.latency_us is not None), key=lambda n: -(n.latency_us or 0))[:5]
    if slowest:
        print("\nslowest nodes")
        print_table(("node", "op_type", "us"), [(n.name, n.op_type, n.latency_us) for n in slowest])
    print(f"\n{result.status}: {len(result.values)} values in {result.elapsed_s:.2f} s, peak "
          f"{result.peak_rss_bytes / 2**20:.0f} MiB, {result.engine} on {result.provider or 'the CPU'}")  # fmt: skip
    for finding in result.findings:
        print(f"{finding.severity}: {cell(finding.message, 0)}")
    if result.reason:
        print(cell(result.reason, 0))
    if target is not None:
        print(f"written to {printable(target)}")
