"""Raw deflate (RFC 1951) out of a file, read in pieces and bounded."""

from __future__ import annotations

import zlib

from core.errors import BrokenFile
from core.limits import KIB
from core.source import Source


def inflate(source: Source, start: int, stop: int, bound: int) -> bytes:
    """Inflate bytes ``start`` to ``stop`` of a file up to ``bound`` bytes; reads from disk.

    Raises:
        BrokenFile: if the packed bytes are damaged.
    """
    engine, parts, left = zlib.decompressobj(-15), list[bytes](), bound
    try:
        for block in source.blocks(start, stop, 256 * KIB):
            piece = engine.decompress(block, left)
            parts.append(piece)
            left -= len(piece)
            if left <= 0:
                break
    except zlib.error as error:
        raise BrokenFile(f"packed bytes are damaged: {error}", path=source.path, byte=start) from None
    return b"".join(parts)
