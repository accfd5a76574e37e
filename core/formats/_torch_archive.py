"""Storages that are members of a zip: checkpoints, packages and exported programs keep them so."""

from __future__ import annotations

from core.errors import ModelError
from core.formats._torch_tensors import StorageBytes
from core.formats._zip import DEFLATED, STORED, Archive
from core.ir import ByteRange


def member_bytes(archive: Archive, name: str, encoding: str = "plain") -> StorageBytes:
    """Where the bytes of that member are; the problem in words where they cannot be used.

    Args:
        encoding: ``plain`` or ``big``, the byte order of the archive.
    """
    member = archive.by_name.get(name)
    if member is None:
        return StorageBytes(None, 0, problem=f"its storage {name[:120]!r} is not in the archive")
    try:
        start, stop = archive.span(member)
        if member.method == DEFLATED:
            archive.check_ratio(member)
            problem = "is compressed and big-endian at once" if encoding == "big" else ""
            return StorageBytes(None if problem else ByteRange(0, start, stop), member.size, "deflate", problem)
    except ModelError as error:
        return StorageBytes(None, 0, problem=error.message)
    if member.method != STORED or member.encrypted:
        return StorageBytes(None, 0, problem=f"its storage {name[:120]!r} is packed in an unknown way")
    return StorageBytes(ByteRange(0, start, stop), stop - start, encoding)
