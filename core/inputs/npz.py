"""``.npz`` files: several arrays by name, without pickle, each member's size checked before it is unpacked."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.errors import BrokenFile, UnreadableFile, UsageError
from core.inputs.npy import ARRAY_BYTES, HEADER_BYTES, array_of
from core.limits import check

MEMBERS: Final = 10_000


def read_npz(path: str | os.PathLike[str], nbytes: int = ARRAY_BYTES) -> dict[str, NDArray[np.generic]]:
    """Every array by the name it was saved under; reads all of the file.

    Args:
        nbytes: the most that all arrays together may take.

    Raises:
        UnreadableFile: if the file is missing or may not be read.
        BrokenFile: if it is no archive of plain arrays.
        LimitExceeded: if it unpacks to more than ``nbytes``.
    """
    shown = os.fspath(path)
    if not Path(path).is_file():
        raise UnreadableFile("is missing or is not a regular file", path=shown)
    try:
        with zipfile.ZipFile(path) as archive:
            return _members(archive, shown, nbytes)
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", path=shown) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError):
        raise BrokenFile("is no .npz archive, or a damaged one", path=shown) from None


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays by name, uncompressed; text arrays as fixed-width text.

    Raises:
        UsageError: if the file cannot be written.
    """
    plain = {name: array.astype(str) if array.dtype == object else array for name, array in arrays.items()}
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in plain.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", path=os.fspath(path)) from None


def _members(archive: zipfile.ZipFile, path: str, nbytes: int) -> dict[str, NDArray[np.generic]]:
    infos = archive.infolist()
    check("the number of arrays", len(infos), MEMBERS, path=path)
    total = sum(max(0, info.file_size) for info in infos)
    check("the size of all arrays", total, nbytes + len(infos) * HEADER_BYTES, path=path)
    found: dict[str, NDArray[np.generic]] = {}
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name in found:
            raise BrokenFile(f"holds {name[:80]!r} twice", path=path)
        with archive.open(info) as file:
            data = file.read(info.file_size + 1)
        if len(data) != info.file_size:
            raise BrokenFile(f"array {name[:80]!r} is not as long as the archive says", path=path)
        found[name] = array_of(data, f"{path}: {name[:80]}")
    return found
