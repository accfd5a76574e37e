"""What a reader may look at to decide whether a file is its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from core.errors import UnreadableFile
from core.limits import FILES, KIB, check
from core.source import Source


@dataclass(frozen=True)
class Head:
    """One path to open: its first bytes, size and suffix, or the names in a folder.

    Attributes:
        path: absolute path.
        source: the opened file, ``None`` for a folder.
        start: its first 64 KiB.
        names: file names directly inside a folder, sorted; empty for a file.
    """

    path: str
    source: Source | None
    start: bytes
    names: tuple[str, ...]

    @property
    def suffix(self) -> str:
        """Lower-case file name ending with its dot."""
        return os.path.splitext(self.path)[1].lower()

    @property
    def size(self) -> int:
        """Bytes of the file, 0 for a folder."""
        return self.source.size if self.source else 0

    @property
    def folder(self) -> Path:
        """The artifact's folder: the path itself, or what holds the file."""
        return Path(self.path) if self.source is None else Path(self.path).parent

    @cached_property
    def tail(self) -> bytes:
        """The last 64 KiB; reads from disk (zip files are recognised by their end)."""
        if self.source is None:
            return b""
        return self.source.read(max(0, self.size - 64 * KIB), self.size)


def look(path: str | os.PathLike[str]) -> Head:
    """Open ``path`` and read at most its first 64 KiB.

    Raises:
        UnreadableFile: if it is missing, empty, a device or may not be read.
    """
    absolute = os.path.abspath(path)
    if os.path.isdir(absolute):
        try:
            names = tuple(sorted(os.listdir(absolute)))
        except OSError as error:
            raise UnreadableFile(f"cannot be listed: {error.strerror}", path=absolute) from None
        check("the number of files in the folder", len(names), FILES, path=absolute)
        return Head(absolute, None, b"", names)
    source = Source(absolute)
    if source.size == 0:
        raise UnreadableFile("is empty (0 bytes)", path=absolute, hint="Export or download it again.")
    return Head(absolute, source, source.read(0, min(source.size, 64 * KIB)), ())
