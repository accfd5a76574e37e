"""The private folder through which a run and its worker speak.

``request.json`` and ``inputs/*.npy`` are written before the worker starts. The worker appends JSON
lines to ``events.jsonl`` and stored elements to ``values.bin``, whose offsets are in the ``value``
events, and ends with ``result.json`` by temporary file and rename. Whatever is missing or cut off
half-way is simply not there yet.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from core.errors import RunError
from core.limits import MIB
from core.trace.types import RunInput, TraceRequest

VERSION: Final = 1
_PIECE: Final = 4 * MIB

Event = dict[str, Any]
"""One JSON line of the worker: ``event`` names its kind, e.g. ``progress`` or ``value``."""


class Spool:
    """The folder of one run; only its paths are held, so it is cheap to make again from a path."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)

    @classmethod
    def create(cls, parent: str | os.PathLike[str] | None = None) -> Spool:
        """Make a new folder that only its owner may enter (mode 0700).

        Args:
            parent: where to make it, the system's temporary folder where left out.

        Raises:
            RunError: if it cannot be written.
        """
        try:
            spool = cls(tempfile.mkdtemp(prefix="run-", dir=parent))
            for name in ("inputs", "tmp"):
                Path(spool.file(name)).mkdir(0o700)
        except OSError as error:
            raise RunError(f"the folder of the run cannot be made: {error.strerror}", path=str(parent or "")) from None
        return spool

    def file(self, *names: str) -> str:
        """The path of a file of the spool."""
        return os.path.join(self.path, *names)

    @property
    def events_file(self) -> str:
        """JSON lines of the worker."""
        return self.file("events.jsonl")

    @property
    def values_file(self) -> str:
        """Stored elements, one value after the other."""
        return self.file("values.bin")

    @property
    def result_file(self) -> str:
        """How the run ended, there only when the worker came to its end."""
        return self.file("result.json")

    def add_input(self, name: str, dtype: str, array: NDArray[np.generic], source: str) -> RunInput:
        """Write one input array to the spool.

        Args:
            dtype: element type of the model's input; types that numpy lacks come as stored bits.
        """
        count = len(os.listdir(self.file("inputs")))
        file = f"{count:04d}.npy"
        path = self.file("inputs", file)
        plain = array.astype(np.str_) if array.dtype.kind == "O" else array
        with _written(self, path):
            np.save(path, plain, allow_pickle=False)
        return RunInput(name, dtype, tuple(array.shape), file, _sha256(path), source)

    def write_request(self, request: TraceRequest, sources: Sequence[tuple[str, int, int, int]]) -> None:
        """Write what the worker is to do.

        Args:
            sources: path, size, modification time in nanoseconds and inode of each file of the model.
        """
        document = {"version": VERSION, "request": request.to_json(), "sources": [list(item) for item in sources]}
        path = self.file("request.json")
        with _written(self, path):
            Path(path).write_text(json.dumps(document), encoding="utf-8")

    def read_request(self) -> tuple[TraceRequest, list[tuple[str, int, int, int]]]:
        """The request and the files of the model; reads ``request.json``.

        Raises:
            RunError: if it is missing or of another version.
        """
        try:
            document = cast("dict[str, Any]", json.loads(Path(self.file("request.json")).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            raise RunError("the folder of the run holds no readable request", path=self.path) from None
        if document.get("version") != VERSION:
            raise RunError(f"the request has version {document.get('version')!r}, expected {VERSION}", path=self.path)
        sources = [(str(p), int(size), int(time), int(inode)) for p, size, time, inode in document["sources"]]
        return TraceRequest.from_json(document["request"]), sources

    def read_result(self) -> Mapping[str, Any] | None:
        """What ``result.json`` says, ``None`` where the worker did not come to its end."""
        try:
            document: object = json.loads(Path(self.result_file).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return cast("Mapping[str, Any]", document) if isinstance(document, dict) else None

    def remove(self) -> None:
        """Delete the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def __repr__(self) -> str:
        return f"Spool({self.path!r})"


class EventReader:
    """Reads the lines that were added to ``events.jsonl`` since the last time.

    A line without its end is left for the next time; a line that is no JSON object is passed over.
    """

    def __init__(self, spool: Spool) -> None:
        self._path = spool.events_file
        self._at = 0

    def read(self) -> Iterator[Event]:
        """The complete new lines; reads from disk."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    self._at += len(line)
                    event = _event(line)
                    if event is not None:
                        yield event
        except FileNotFoundError:
            return


def _event(line: bytes) -> Event | None:
    try:
        found: object = json.loads(line)
    except ValueError:
        return None
    return cast(Event, found) if isinstance(found, dict) and "event" in found else None


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


@contextmanager
def _written(spool: Spool, path: str) -> Generator[None]:
    """Turn a full or read-only disk into one sentence, and leave no half-written spool behind."""
    try:
        yield
    except OSError as error:
        spool.remove()
        raise RunError(f"cannot be written: {error.strerror}", path=path) from None
