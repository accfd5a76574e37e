"""Reading the stored elements of a traced value back from the spool of its run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DTYPES, to_numbers
from core.errors import NotFound, RunError
from core.limits import DECODE_ELEMENTS, check
from core.source import Source
from core.trace.types import TracedValue, TraceResult

VALUES: Final = "values.bin"


def load_value(run: TraceResult | str, value: TracedValue) -> NDArray[np.generic]:
    """The elements of a stored value in its shape; reads them from ``values.bin``.

    bfloat16 and smaller floats come as float32, int4 as int8, text as an object array of ``str``.

    Args:
        run: the result, or the path of its spool.

    Raises:
        NotFound: if the value is not stored, with the reason.
        LimitExceeded: if it has more elements than ``limits.DECODE_ELEMENTS``.
        RunError: if the file of values is gone or was cut.
    """
    if not value.stored:
        raise NotFound(f"the elements of {value.name!r} were not kept: {value.reason or 'the run ended before'}")
    dtype = DTYPES.get(value.dtype)
    if dtype is None:
        raise NotFound(f"{value.name!r} is a {value.dtype}, which has no elements")
    count = 1
    for size in value.shape:
        count = check(f"the number of elements of {value.name!r}", count * size, DECODE_ELEMENTS)
    raw = _read(run if isinstance(run, str) else run.spool, value)
    if dtype.kind == "string":
        texts = cast("list[str]", json.loads(raw))
        flat = np.empty(len(texts), object)
        flat[:] = texts
        return flat.reshape(value.shape)
    return to_numbers(np.frombuffer(raw, np.uint8), dtype, count).reshape(value.shape)


def _read(spool: str, value: TracedValue) -> bytearray:
    path = os.path.join(spool, VALUES)
    if not Path(path).is_file():
        raise RunError("the stored values of this run are gone", path=path, hint="Run it again.")
    source = Source(path)
    try:
        if value.stop > source.size:
            raise RunError("the stored values of this run were cut off", path=path, hint="Run it again.")
        raw = bytearray(value.stop - value.start)
        source.read_into(value.start, memoryview(raw))
        return raw
    finally:
        source.close()
