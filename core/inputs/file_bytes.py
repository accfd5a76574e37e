"""The bytes of any file as whole numbers: its beginning, its end, or both."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.errors import UnreadableFile, UsageError
from core.inputs.encode import as_dtype
from core.inputs.generated import Generated
from core.inputs.recipe import Recipe


def file_bytes(path: str, length: int, part: str, block: int, strip: bool, pad: int, dtype: str) -> Generated:
    """[1, length]: a beginning is padded behind, an end before; ``both`` takes half of each.

    With ``strip`` white space (as Python's ``bytes.strip``) is left out before the beginning and behind the end of
    the ``block`` bytes read at either side.

    Raises:
        UnreadableFile: if the file is missing or may not be read.
        UsageError: if ``both`` is asked for an odd length, or the padding does not fit the type.
    """
    if part == "both" and length % 2:
        raise UsageError(f"{length} bytes cannot be halved", hint="Choose an even length.")
    size = length // 2 if part == "both" else length
    try:
        place = Path(path)
        if not path or not place.is_file():
            raise UnreadableFile("is missing or is not a regular file", path=path or None)
        with place.open("rb") as file:
            total = file.seek(0, 2)
            file.seek(0)
            first = file.read(max(block, size))
            file.seek(max(0, total - max(block, size)))
            last = file.read(max(block, size))
    except (OSError, ValueError):
        raise UnreadableFile("cannot be read", path=path) from None
    if strip:
        first, last = first.lstrip(), last.rstrip()
    begin = np.full(size, pad, np.int64)
    begin[: len(first[:size])] = np.frombuffer(first[:size], np.uint8)
    end = np.full(size, pad, np.int64)
    kept = last[max(0, len(last) - size) :]
    end[size - len(kept) :] = np.frombuffer(kept, np.uint8)
    parts = {"start": [begin], "end": [end], "both": [begin, end]}[part]
    source = Recipe("bytes", options={"path": path}).describe()
    facts: dict[str, object] = {"file_bytes": total}
    return Generated(as_dtype(np.concatenate(parts)[None], dtype), source, "The file's own bytes.", facts)
