"""Files as opened: bounded positional reads, and a check that the bytes are still the same."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from core.errors import BrokenFile, OutsideFolder, SourceChanged, UnreadableFile
from core.limits import MIB, READ_AT_ONCE, check

BLOCK: Final = 1 * MIB
PAGE: Final = 4096


class Source:
    """One regular file opened for reading; nothing is read until asked for.

    Reads are positional and may come from several threads. The file is opened at the first
    read and identified by size, modification time and inode from the moment of construction.

    Raises:
        UnreadableFile: if the path is missing, not a regular file or not readable.
    """

    __slots__ = ("_fd", "_identity", "_lock", "bytes_read", "name", "path", "size")

    def __init__(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        self.path = os.path.abspath(path)
        self.name = name if name is not None else os.path.basename(self.path)
        status = _status(self.path)
        self.size = status.st_size
        self._identity = _identity(status)
        self._fd: int | None = None
        self._lock = threading.Lock()
        self.bytes_read = 0

    def read(self, start: int, stop: int) -> bytes:
        """Read bytes ``start`` to ``stop`` (end excluded) from disk.

        Raises:
            BrokenFile: if the range leaves the file.
            LimitExceeded: if more than ``limits.READ_AT_ONCE`` bytes are asked for.
            SourceChanged: if the file was changed or replaced since it was opened.
        """
        self._check_range(start, stop)
        if stop - start > READ_AT_ONCE:
            check("the length of one read", stop - start, READ_AT_ONCE, path=self.path, byte=start)
        data = os.pread(self._open(), stop - start, start)
        if len(data) != stop - start:
            data += self._rest(start + len(data), stop)
        self.bytes_read += len(data)
        return data

    def expect(self, start: int) -> None:
        """Tell the system that the bytes at ``start`` are read next, so that it fetches them meanwhile."""
        if self._fd is not None and start < self.size and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, start, PAGE, os.POSIX_FADV_WILLNEED)

    def read_into(self, start: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``start`` on; reads from disk.

        Raises: as ``read``.
        """
        self._check_range(start, start + len(buffer))
        fd, done = self._open(), 0
        while done < len(buffer):
            got = os.preadv(fd, [buffer[done:]], start + done)
            if got == 0:
                raise self._changed()
            done += got
        self.bytes_read += done

    def blocks(self, start: int, stop: int, size: int = BLOCK) -> Iterator[bytes]:
        """Read ``start`` to ``stop`` in pieces of at most ``size`` bytes."""
        self._check_range(start, stop)
        for at in range(start, stop, size):
            yield self.read(at, min(at + size, stop))

    def sha256(self, progress: Callable[[int], object] | None = None) -> str:
        """Hash the whole file; reads all of it. ``progress`` gets the bytes done so far."""
        digest, buffer, at = hashlib.sha256(), bytearray(BLOCK), 0
        view = memoryview(buffer)
        while at < self.size:
            piece = view[: min(BLOCK, self.size - at)]
            self.read_into(at, piece)
            digest.update(piece)
            at += len(piece)
            if progress is not None:
                progress(at)
        self.check_unchanged()
        return digest.hexdigest()

    def check_unchanged(self) -> None:
        """Compare size, time and inode with those at opening; touches the file system.

        Raises:
            SourceChanged: if they differ or the file is gone.
        """
        try:
            now = os.stat(self.path)
        except OSError:
            raise self._changed() from None
        if _identity(now) != self._identity:
            raise self._changed()

    @property
    def modified_ns(self) -> int:
        """Modification time at opening, in nanoseconds since 1970."""
        return self._identity[1]

    @property
    def identity(self) -> tuple[int, int, int]:
        """Size, modification time in nanoseconds and inode at opening."""
        return self._identity

    def close(self) -> None:
        """Give the file descriptor back; a later read opens the file again."""
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def __del__(self) -> None:
        if getattr(self, "_fd", None) is not None:
            self.close()

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {self.size} bytes)"

    def _open(self) -> int:
        self.check_unchanged()
        opened = self._fd
        if opened is not None:
            return opened
        with self._lock:
            if self._fd is None:
                try:
                    self._fd = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | os.O_CLOEXEC)
                except OSError as error:
                    raise UnreadableFile(f"cannot be read: {error.strerror}", path=self.path) from None
                if _identity(os.fstat(self._fd)) != self._identity:
                    raise self._changed()
            return self._fd

    def _rest(self, start: int, stop: int) -> bytes:
        buffer = bytearray(stop - start)
        self.read_into(start, memoryview(buffer))
        return bytes(buffer)

    def _check_range(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.size:
            raise BrokenFile(
                f"bytes {start} to {stop} are asked for, the file has {self.size}", path=self.path, byte=start
            )

    def _changed(self) -> SourceChanged:
        return SourceChanged("changed on disk since it was opened", path=self.path, hint="Reopen the file.")


def contained(folder: str | os.PathLike[str], relative: str) -> Path:
    """Resolve a path that a file names, inside the folder of that file.

    Args:
        folder: the artifact's folder.
        relative: the location as written in the file; ``/`` or ``\\`` separate its parts.

    Raises:
        OutsideFolder: if it is absolute, has a drive, ``..``, a NUL byte or leaves the folder
            through a symbolic link.
    """
    parts = relative.replace("\\", "/").split("/")
    shown = repr(relative[:200])
    drive = len(parts[0]) > 1 and parts[0][1] == ":"
    if not relative or "\0" in relative or parts[0] == "" or drive or ".." in parts:
        raise OutsideFolder(f"names the data file {shown}, which is not a plain relative path", path=str(folder))
    root = Path(folder).resolve()
    target = (root / "/".join(parts)).resolve()
    if not target.is_relative_to(root):
        raise OutsideFolder(f"names the data file {shown}, which leads out of its folder", path=str(folder))
    return target


def _status(path: str) -> os.stat_result:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise UnreadableFile("does not exist", path=path, hint="Check the path.") from None
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"cannot be read: {getattr(error, 'strerror', error)}", path=path) from None
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise UnreadableFile(f"is {what}", path=path)
    return status


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino
