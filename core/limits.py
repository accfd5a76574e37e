"""Bounds that every length, count and offset of a file meets before a loop or an allocation."""

from __future__ import annotations

from typing import Final

from core.errors import LimitExceeded

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

NESTING: Final = 200
"""Depth of nested messages, subgraphs, lists or scopes."""

NODES: Final = 5_000_000
"""Operators of one artifact, all graphs together."""

TENSORS: Final = 5_000_000
GRAPHS: Final = 200_000
RANK: Final = 64
"""Dimensions of one tensor."""

ELEMENTS: Final = 1 << 48
"""Elements a shape may claim (a stride-0 view may claim this many and stay unread)."""

NAME_BYTES: Final = 1 * MIB
"""Bytes of one name or metadata key; longer ones are cut with a finding."""

METADATA_BYTES: Final = 64 * MIB
"""Bytes of metadata text held in memory for one artifact."""

HEADER_BYTES: Final = 100_000_000
"""The safetensors header bound, also used for other JSON headers."""

ATTRIBUTE_BYTES: Final = 64 * MIB
"""Bytes of one attribute decoded at once; longer ones are shown in part."""

READ_AT_ONCE: Final = 64 * MIB
"""Bytes one read may bring into memory; callers stream beyond it."""

DECODE_ELEMENTS: Final = 64 * MIB
"""Elements decoded at once for a picture or a table."""

FILES: Final = 10_000
"""Files of one artifact (shards, external data)."""

ARCHIVE_MEMBERS: Final = 1_000_000
ARCHIVE_RATIO: Final = 200
"""Uncompressed to compressed size beyond which a deflated member is refused."""

UPLOAD_BYTES: Final = 4 * GIB


def check(what: str, found: int, bound: int, *, path: str | None = None, byte: int | None = None) -> int:
    """Return ``found`` if ``0 <= found <= bound``.

    Raises:
        LimitExceeded: with the name of the quantity, the value found and the bound.
    """
    if found < 0 or found > bound:
        raise LimitExceeded(f"{what} is {found}, allowed is 0 to {bound}", path=path, byte=byte)
    return found
