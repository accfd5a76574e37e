"""Writing an edited model: staged beside the target, checked, synced and renamed."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.edits.onnx_document import OnnxDocument
from core.edits.onnx_library import check as library_check
from core.edits.pieces import Piece, size_of, stream
from core.edits.splice import Payload, external_pieces
from core.errors import Cancelled, LimitExceeded, ModelError, UnreadableFile, UsageError
from core.limits import GIB, MIB

EMBEDDED: Final = 2 * GIB - 64 * MIB
"""Bytes of one ONNX file beyond which protobuf refuses it; payloads go beside it then."""

_BLOCK: Final = 4 * MIB
Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Attributes:
        files: name, size in bytes and SHA-256 of every file.
        reused: bytes that were copied from the source as they are; the rest was encoded anew.
        checked: what the onnx checker said, empty where it found nothing wrong.
    """

    files: tuple[tuple[str, int, str], ...]
    reused: int
    encoded: int
    checked: str


def export_onnx(
    document: OnnxDocument,
    target: str | os.PathLike[str],
    *,
    external: bool | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Written:
    """Write a document as an ONNX file, with its payloads inside or in one data file beside it.

    Nothing appears under the target's name before everything is written, checked and synced.

    Args:
        external: payloads beside the file; where left out only beyond protobuf's bound.
        overwrite: whether a file of that name may be replaced.

    Raises:
        UsageError: if the target exists, or is a file of the model that was opened.
        LimitExceeded: if the payloads must be inside and do not fit.
        ModelError: if the checker refuses what was written; nothing is left behind then.
        Cancelled: if it was stopped; nothing is left behind then.
    """
    path = Path(os.path.abspath(target))
    _check_target(document, path, overwrite)
    for source in document.source.sources:
        source.check_unchanged()
    pieces = document.pieces()
    if external is None:
        external = sum(map(size_of, pieces)) > EMBEDDED
    if not external and sum(map(size_of, pieces)) > EMBEDDED:
        raise LimitExceeded("is too large for one ONNX file", path=str(path), hint="Write its payloads beside it.")
    files: list[tuple[Path, Sequence[Piece]]] = [(path, pieces)]
    if external:
        data = path.with_name(path.name + ".data")
        if data.exists():  # what is there may belong to the file that is replaced, and stays whole until it is
            data = path.with_name(f"{path.name}.{secrets.token_hex(4)}.data")
        inside, payloads = external_pieces(document.proto, document.payload, data.name)
        files = [(data, _placed(payloads)), (path, inside)]
    return _Writing(document, files, progress, cancelled).run()


class _Writing:
    def __init__(
        self,
        document: OnnxDocument,
        files: list[tuple[Path, Sequence[Piece]]],
        progress: Progress | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._document, self._files, self._cancelled = document, files, cancelled
        self._progress, self._done = progress, 0
        self._total = sum(size_of(piece) for _, pieces in files for piece in pieces)

    def run(self) -> Written:
        """Stage all files in a folder beside the target, check them there, then rename them."""
        folder = self._files[-1][0].parent
        stage = folder / f".{self._files[-1][0].name}.{secrets.token_hex(6)}.part"
        try:
            stage.mkdir()
        except OSError as error:
            raise UnreadableFile(f"cannot be written to: {error.strerror}", path=str(folder)) from None
        try:
            rows = [self._write(stage / path.name, pieces) for path, pieces in self._files]
            problem = library_check(str(stage / self._files[-1][0].name))
            if problem and not library_check(self._document.source.path):
                raise ModelError(f"the edited model is not valid: {problem}", path=self._document.source.path)
            for path, _ in self._files:  # the model last: it is what names the data
                (stage / path.name).replace(path)
            sync_folder(folder)
        finally:
            for left in stage.iterdir():
                left.unlink()
            stage.rmdir()
        encoded = sum(size_of(piece) for _, pieces in self._files for piece in pieces if isinstance(piece, bytes))
        return Written(tuple(rows), self._total - encoded, encoded, problem)

    def _write(self, path: Path, pieces: Sequence[Piece]) -> tuple[str, int, str]:
        digest, size = hashlib.sha256(), 0
        try:
            with open(path, "xb") as file:
                for block in stream(pieces, _BLOCK):
                    self._step(len(block))
                    file.write(block)
                    digest.update(block)
                    size += len(block)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UnreadableFile(
                f"cannot be written: {error.strerror}", path=str(path.parent.parent / path.name)
            ) from None
        return path.name, size, digest.hexdigest()

    def _step(self, nbytes: int) -> None:
        if self._cancelled is not None and self._cancelled():
            raise Cancelled("was stopped; nothing was written", path=self._document.source.path)
        self._done += nbytes
        if self._progress is not None:
            self._progress(self._done, self._total)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _placed(payloads: Sequence[Payload]) -> list[Piece]:
    placed: list[Piece] = []
    at = 0
    for payload in payloads:
        placed += [bytes(payload.offset - at), payload.piece]
        at = payload.offset + size_of(payload.piece)
    return placed


def _check_target(document: OnnxDocument, path: Path, overwrite: bool) -> None:
    for source in document.source.sources:
        if os.path.realpath(source.path) == os.path.realpath(path):
            raise UsageError("is the opened file, which is never changed", path=str(path), hint="Choose another name.")
    if path.is_dir():
        raise UsageError("is a folder", path=str(path))
    if path.exists() and not overwrite:
        raise UsageError("exists already", path=str(path), hint="Choose another name, or allow replacing it.")
