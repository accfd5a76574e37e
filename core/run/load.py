"""Making one value of a run again whose elements were not stored, from what the run did store."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DTYPES
from core.errors import NotFound, RunError, RunFailed
from core.run import process
from core.run.spool import Spool
from core.trace.types import TracedValue, TraceRequest, TraceResult
from core.trace.values import load_value


def request(
    result: TraceResult, value: TracedValue, folder: str | os.PathLike[str] | None = None
) -> tuple[TraceRequest, Spool]:
    """A job that makes one value again; copies the inputs into a new spool.

    It is started like any other run, with an approval by whoever approved the first one: model,
    inputs and limits are those of that run, only more may be stored.

    Args:
        folder: parent of the spool, the system's temporary folder where left out.

    Raises:
        NotFound: if the run did not make the value, or it has no elements.
        RunError: if what the run left is gone.
    """
    if value.dtype not in DTYPES or (value.stats is None and not value.stored):
        raise NotFound(f"{value.name!r} has no elements to load: {value.reason or f'it is a {value.dtype}'}")
    before, sources = Spool(result.spool).read_request()
    spool = Spool.create(folder)
    try:
        for item in before.inputs:
            shutil.copyfile(Spool(result.spool).file("inputs", item.file), spool.file("inputs", item.file))
    except OSError as error:
        spool.remove()
        raise RunError(f"the inputs of the run cannot be read: {error.strerror}", path=result.spool) from None
    made = replace(
        before, purpose="load", latency=False, limits=replace(before.limits, store=before.limits.memory),
        keep=(value.id,), origin=result.spool, targets=(f"{value.id}@{value.step}",),
    )  # fmt: skip
    spool.write_request(made, sources)
    return made, spool


def loaded(result: TraceResult, value: TracedValue) -> TracedValue:
    """The value as that job left it, whose elements ``core.trace.values.load_value(result, ...)`` gives.

    Raises:
        RunFailed: if the job did not make it, with its reason.
    """
    found = next((v for v in result.values if (v.id, v.step) == (value.id, value.step) and v.stored), None)
    if found is None:
        raise RunFailed(result.reason or f"{value.name!r} was not made again", path=result.spool)
    return found


def again(
    result: TraceResult, value: TracedValue, actor: str, folder: str | os.PathLike[str] | None = None
) -> NDArray[np.generic]:
    """The elements of a value, stored or made again by a worker; waits for it and leaves nothing behind.

    Raises:
        as ``request``, ``loaded`` and ``core.run.process.start``.
    """
    if value.stored and Path(result.spool).is_dir():
        return load_value(result, value)
    made, spool = request(result, value, folder)
    try:
        ended = process.start(made, spool, process.approve(made, actor)).wait()
        return load_value(ended, loaded(ended, value))
    finally:
        spool.remove()
