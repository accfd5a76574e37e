"""Opening an artifact: find the reader by content, then read its metadata."""

from __future__ import annotations

import os
from typing import Final

from core.errors import UnknownFormat
from core.formats.head import Head, look
from core.formats.table import FORMATS, Format
from core.ir import Model

CERTAIN: Final = (3, True)
"""The content is of that format, and the name ends as its files do."""


def open_model(path: str | os.PathLike[str]) -> Model:
    """Open a model file or folder; reads metadata from disk, no tensor values.

    Args:
        path: a file, or a folder that holds one artifact.

    Returns:
        The model; a damaged file comes back with findings wherever something can be shown.

    Raises:
        UnreadableFile: if the path is missing, empty, a device or may not be read.
        UnknownFormat: if no reader recognises the bytes.
        BrokenFile: if nothing of the file can be shown.
        LimitExceeded: if a count or length is beyond ``core.limits``.
    """
    head = look(path)
    return recognise(head).read(head)


def recognise(head: Head) -> Format:
    """The format whose reader is surest of the content; the suffix breaks ties.

    Raises:
        UnknownFormat: if none is, with what the file looks like.
    """
    best: tuple[int, bool, int] | None = None
    chosen: Format | None = None
    for place, entry in enumerate(FORMATS):
        sure = entry.match(head)
        rank = (sure, head.suffix in entry.suffixes, -place)
        if sure > 0 and (best is None or rank > best):
            best, chosen = rank, entry
        if rank[:2] == CERTAIN:
            break  # no later reader can be surer, and none of them is imported
    if chosen is None:
        raise UnknownFormat(_unknown(head), path=head.path, hint=_readable())
    return chosen


def _unknown(head: Head) -> str:
    if head.source is None:
        return "is a folder in which no model was recognised"
    if b"\0" not in head.start and head.start.isascii():
        if head.suffix == ".json":
            return "is a JSON file and no model; the configuration of a model is read with its folder"
        return "is a text file, not a model"
    return f"is in no format that Modelglass reads (it begins with {head.start[:8].hex(' ')})"


def _readable() -> str:
    return "Readable are: " + ", ".join(entry.title for entry in FORMATS) + "."
