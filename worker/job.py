"""What a worker was asked to do, read from its spool and checked."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import RunError, SourceChanged
from core.ir import Model
from core.opening import open_model
from core.run.spool import Spool
from core.trace.types import RunInput, Status, TraceRequest


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        inputs: arrays by input name, as they lie in the spool.
        deadline: monotonic time at which the parent will end the worker.
    """

    request: TraceRequest
    spool: Spool
    model: Model
    inputs: dict[str, NDArray[Any]]
    deadline: float = field(default=float("inf"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an engine came to its end."""

    status: Status
    reason: str = ""
    latency_optimisation: str = ""
    engine: str = ""


def read_job(spool: Spool) -> Job:
    """Read the request, the input arrays and the model's metadata from disk.

    Raises:
        SourceChanged: if a file of the model is not the one that was prepared.
        RunError: if the spool is damaged.
        ModelError: if the model cannot be read.
    """
    started = time.monotonic()
    request, sources = spool.read_request()
    model = open_model(request.model_path)
    found = [(source.path, *source.identity) for source in model.sources]
    if found != sources:
        raise SourceChanged("changed on disk since the run was prepared", path=request.model_path)
    inputs = load_inputs(spool, request.inputs)
    return Job(request, spool, model, inputs, started + request.limits.time)


def load_inputs(spool: Spool, items: Sequence[RunInput]) -> dict[str, NDArray[Any]]:
    """The arrays of some inputs by name; reads the spool.

    Raises:
        RunError: if one of them is damaged.
    """
    return {item.name: _load(spool, item.file) for item in items}


def _load(spool: Spool, file: str) -> NDArray[Any]:
    try:
        return np.load(spool.file("inputs", os.path.basename(file)), allow_pickle=False)
    except (OSError, ValueError) as error:
        raise RunError(f"input file {file!r} cannot be read: {error}", path=spool.path) from None
