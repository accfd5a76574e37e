"""Finding a tokenizer in a file, a folder or beside a model, and opening it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path

from core.errors import NotFound, UnknownFormat
from core.inputs.tokenizers.codebooks import ByteBook, HashBook, PointBook
from core.inputs.tokenizers.table import BESIDE, KINDS, Kind
from core.inputs.tokenizers.types import Tokenizer
from core.ir import Model
from core.source import Source, contained


def load(place: str | os.PathLike[str] | Model) -> Tokenizer:
    """The tokenizer of a file, a folder or a model; reads the files it finds.

    Raises:
        NotFound: if there is none.
        UnknownFormat: if a file is of no known kind.
        ModelError: what its reader says of it.
    """
    path = str(place.path if isinstance(place, Model) else place)
    found = find(place)
    if not found:
        raise NotFound("has no tokenizer in it or beside it", path=path, hint="Choose a tokenizer file.")
    kind = recognise(found)
    opened: Callable[[str], Tokenizer] = getattr(importlib.import_module(kind.module), kind.function)
    return opened(found)


def codebook(name: str, size: int = 30_000, seed: int = 0) -> Tokenizer:
    """A codebook that needs no file: ``bytes``, ``points`` or ``words``.

    Raises:
        NotFound: if there is none of that name.
    """
    match name:
        case "bytes":
            return ByteBook()
        case "points":
            return PointBook()
        case "words":
            return HashBook(size, seed)
        case _:
            raise NotFound(f"no codebook is called {name[:80]!r}", hint="Use bytes, points or words.")


def find(place: str | os.PathLike[str] | Model) -> str:
    """The path of the tokenizer file that belongs to a place, empty where there is none; looks at names only.

    A GGUF model with a vocabulary is its own; else the files in a folder or beside a file are tried.
    """
    if isinstance(place, Model):
        return _of_model(place)
    path = Path(place)
    if path.is_dir():
        return _in_folder(path)
    return str(path) if path.exists() and _named(path.name) else _in_folder(path.parent)


def recognise(path: str) -> Kind:
    """The kind of a tokenizer file by its first bytes and its name; reads 256 bytes.

    Raises:
        UnknownFormat: if it is none.
    """
    source = Source(path)
    head = source.read(0, min(source.size, 256))
    source.close()
    fitting = [kind for kind in KINDS if kind.start.match(head)]
    name = os.path.basename(path)
    for kind in fitting:
        if kind.name.fullmatch(name):
            return kind
    for kind in fitting:
        if kind.start.pattern:
            return kind
    known = ", ".join(kind.title for kind in KINDS)
    raise UnknownFormat("is no tokenizer file", path=path, hint=f"Known are {known}.")


def _of_model(model: Model) -> str:
    if model.format == "gguf" and "tokenizer.ggml.tokens" in model.metadata:
        return model.sources[0].path
    path = Path(model.path)
    return _in_folder(path if path.is_dir() else path.parent)


def _in_folder(folder: Path) -> str:
    for name in BESIDE:
        if (folder / name).is_file():
            return str(contained(folder, name))
    try:
        others = sorted(entry.name for entry in folder.iterdir() if _own(entry.name))[:2]
    except OSError:
        return ""
    return str(contained(folder, others[0])) if len(others) == 1 else ""


def _named(name: str) -> bool:
    return any(kind.name.fullmatch(name) for kind in KINDS)


def _own(name: str) -> bool:
    """Whether a name can only be a tokenizer's."""
    return name.endswith((".tiktoken", "tokenizer.json", "tokenizer_config.json")) and name != "tokenizer_config.json"
