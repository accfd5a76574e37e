"""What a model file is called: a quick identity at once, its SHA-256 once all bytes were read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NoReturn

from core.errors import Cancelled
from core.ir import Model


def quick(model: Model) -> str:
    """``q`` and 16 hex digits over path, size, time and inode of every source; reads nothing."""
    digest = hashlib.sha256()
    for source in model.sources:
        size, modified, inode = source.identity
        digest.update(f"{source.path}\0{size}\0{modified}\0{inode}\n".encode("utf-8", "surrogateescape"))
    return "q" + digest.hexdigest()[:16]


def digest(
    model: Model,
    progress: Callable[[int, int], object] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> str:
    """SHA-256 of an artifact as 64 hex digits; reads all of its bytes.

    One file: its own hash. Several: the hash over the sorted lines ``name NUL sha256 LF``, with
    names as the artifact refers to them.

    Args:
        progress: called with the bytes done and the bytes in all.
        cancelled: asked between blocks.

    Raises:
        Cancelled: once ``cancelled`` says so.
        SourceChanged: if a file changed since it was opened.
    """
    total, before = model.size_bytes, 0
    hashes: list[tuple[str, str]] = []

    def step(done: int) -> None:
        if cancelled is not None and cancelled():
            _stop()
        if progress is not None:
            progress(before + done, total)

    for source in model.sources:
        hashes.append((source.name, source.sha256(step)))
        before += source.size
    if len(hashes) == 1:
        return hashes[0][1]
    lines = "".join(f"{name}\0{value}\n" for name, value in sorted(hashes))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def _stop() -> NoReturn:
    raise Cancelled("was stopped")
