"""The verb that makes an input: input."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import numpy as np

from app.cli_text import print_facts, print_json
from core.errors import UsageError
from core.inputs.kinds import KINDS, kind_of
from core.inputs.options import Kind, Option, parsed
from core.inputs.produce import produce
from core.inputs.recipe import Recipe

DONE: Final = 0


def add_input(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``input``: a flag for every parameter of every kind."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = "Make an array by a recipe and save it as .npy.\n\nKIND is one of:\n" + "".join(
        f"  {kind.name.ljust(9)} {kind.about} Takes {', '.join(_flag(p.name) for p in kind.params)}.\n"
        for kind in KINDS.values()
    )
    parser.add_argument("paths", metavar="PATH", nargs="*", help="the file to read (video: files or a folder)")
    parser.add_argument("-o", dest="output", metavar="X.npy", required=True, help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace the file where it is there already")
    for name, about in _flags().items():
        parser.add_argument(_flag(name), dest=f"option_{name}", metavar="VALUE", help=about)
    parser.set_defaults(work=make)


def make(options: argparse.Namespace) -> int:
    """Make the array, write it and say what it is."""
    kind = kind_of(options.file)
    target = Path(options.output)
    if target.exists() and not options.force:
        raise UsageError("is there already", path=options.output, hint="Name another file, or add --force.")
    made = produce(Recipe(kind.name, options=_options(kind, options)))
    array = made.array.astype(str) if made.array.dtype == object else made.array
    try:
        with target.open("wb") as file:
            np.save(file, array, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", path=options.output) from None
    facts = {"path": options.output, "dtype": str(array.dtype), "shape": list(array.shape), "source": made.source,
             "fidelity": made.fidelity}  # fmt: skip
    if options.json:
        print_json({**facts, "facts": dict(made.facts)})
    else:
        print_facts(facts)
    return DONE


def _options(kind: Kind, options: argparse.Namespace) -> dict[str, Option]:
    given = {name: text for name in _flags() if (text := getattr(options, f"option_{name}")) is not None}
    chosen = {name: parsed(kind, name, text) for name, text in given.items()}
    if options.paths:
        if kind.param("paths") is not None:
            chosen["paths"] = tuple(options.paths)
        elif kind.param("path") is None:
            raise UsageError(f"{kind.name} reads no file")
        elif len(options.paths) > 1:
            raise UsageError(f"{kind.name} reads one file, {len(options.paths)} were given")
        else:
            chosen["path"] = options.paths[0]
    return chosen


def _flags() -> dict[str, str]:
    """Every parameter of any kind once, those that ``PATH`` gives left out."""
    return {
        param.name: param.about.replace("%", "%%")
        for kind in reversed(KINDS.values())
        for param in kind.params
        if param.type not in ("path", "paths")
    }


def _flag(name: str) -> str:
    return "PATH" if name in ("path", "paths") else "--" + name.replace("_", "-")
