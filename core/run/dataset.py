"""From a data set to requests for its worker: a few samples at a time, so that neither disk nor memory grows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.ir import Model
from core.run import prepare
from core.run.spool import Spool
from core.trace.dataset import DataSetStats
from core.trace.types import RunLimits, TraceRequest

STATE: Final = "dataset.npz"
"""The statistics so far, in the spool; the worker goes on from there."""

Arrays = Mapping[str, NDArray[np.generic]]


def fingerprint(digest: str, names: Sequence[str], recipes: Mapping[str, object], limits: RunLimits) -> str:
    """What a person's consent to a data set is bound to: model, samples in their order, recipes and limits."""
    text = json.dumps([digest, list(names), dict(recipes), asdict(limits)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def request(
    model: Model,
    samples: Sequence[Arrays],
    sources: Mapping[str, str],
    stats: DataSetStats,
    limits: RunLimits,
    digest: str,
    folder: str | os.PathLike[str] | None = None,
) -> tuple[TraceRequest, Spool]:
    """A job over the next samples, beginning with number ``stats.done``; writes the spool.

    Args:
        samples: arrays by input name, at least one sample.
        stats: what is known so far, which the job goes on with.

    Raises:
        as ``core.run.prepare.request``.
    """
    first, spool = prepare.request(
        model, samples[0], sources, replace(limits, store=0), digest, latency=False, folder=folder
    )
    slots = {slot.name: slot for slot in prepare.input_slots(model)}
    written = [first.inputs]
    for arrays in samples[1:]:
        prepare.check_inputs(list(slots.values()), arrays)
        written.append(
            tuple(spool.add_input(n, slots[n].dtype or "", a, sources.get(n, "given")) for n, a in arrays.items())
        )
    made = replace(first, purpose="dataset", samples=tuple(written), first_sample=stats.done)
    spool.write_request(made, [(source.path, *source.identity) for source in model.sources])
    stats.save(spool.file(STATE))
    return made, spool
