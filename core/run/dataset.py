"""From a data set to requests for its worker: a few samples at a time, so that neither disk nor memory grows."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.errors import ModelError
from core.inputs.kinds import kind_of
from core.inputs.recipe import Recipe
from core.ir import Finding, Model
from core.limits import MIB
from core.run import prepare, process
from core.run.spool import Spool
from core.trace.dataset import DataSetStats
from core.trace.types import Approval, RunLimits, Status, TraceRequest, TraceResult

STATE: Final = "dataset.npz"
"""The statistics so far, in the spool; the worker goes on from there."""

SAMPLES: Final = 64
"""Samples that one worker takes at most, and so the spool holds."""

SPOOL_BYTES: Final = 256 * MIB
TICK: Final = 0.05

Arrays = Mapping[str, NDArray[np.generic]]
_SUFFIXES: Final = {
    "npy": (".npy",),
    "image": (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"),
    "audio": (".wav", ".flac", ".mp3", ".ogg"),
    "table": (".csv", ".tsv", ".parquet"),
}


@dataclass(frozen=True, slots=True)
class SetOutcome:
    """How a run over a data set ended; what it gathered is in the file that it saves."""

    status: Status
    reason: str
    findings: tuple[Finding, ...] = ()
    peak_rss_bytes: int = 0


@dataclass(frozen=True)
class SetRun:
    """A run over a data set as a person approved it.

    Attributes:
        sample: gives the arrays of one sample by its number.
        sources: where each input comes from, in words.
        limits: of every worker; ``time`` is for one sample.
        save: file of the statistics so far, begun before and gone on with here.
        folder: parent of the spools.
    """

    model: Model
    digest: str
    sample: Callable[[int], Arrays]
    sources: Mapping[str, str]
    limits: RunLimits
    actor: str
    save: Path
    folder: str | None = None

    def run(self, progress: Callable[[int, int], object], cancelled: Callable[[], bool]) -> SetOutcome:
        """Go on from where the statistics end, until the set or a limit does.

        Raises:
            ModelError: if a sample cannot be made or the model cannot be run.
        """
        stats = DataSetStats.load(self.save)
        findings: list[Finding] = []
        peak = 0
        while stats.done < len(stats.samples):
            before, result = stats.done, self._some(stats, progress, cancelled)
            stats = DataSetStats.load(self.save)
            findings += [f for f in result.findings if f not in findings]
            peak = max(peak, result.peak_rss_bytes)
            if result.status not in ("complete", "partial") and (result.status != "failed" or stats.done == before):
                return SetOutcome(result.status, result.reason, tuple(findings), peak)
        failed = sum(finding.code == "run.sample" for finding in findings)
        if not failed:
            return SetOutcome("complete", "", tuple(findings), peak)
        reason = f"{failed} of {len(stats.samples)} samples could not be run whole."
        return SetOutcome("partial", reason, tuple(findings), peak)

    def _some(
        self, stats: DataSetStats, progress: Callable[[int, int], object], cancelled: Callable[[], bool]
    ) -> TraceResult:
        samples: list[Arrays] = []
        held = 0
        while len(samples) < SAMPLES and held < SPOOL_BYTES and stats.done + len(samples) < len(stats.samples):
            made = self.sample(stats.done + len(samples))
            held += sum(array.nbytes for array in made.values())
            samples.append(made)
        limits = replace(self.limits, time=self.limits.time * len(samples))
        made, spool = request(self.model, samples, self.sources, stats, limits, self.digest, self.folder)
        try:
            return self._watched(made, spool, len(stats.samples), progress, cancelled)
        finally:
            try:
                DataSetStats.load(spool.file(STATE)).save(self.save)
            except ModelError:
                stats.save(self.save)  # the worker ended while it was writing
            spool.remove()

    def _watched(
        self,
        made: TraceRequest,
        spool: Spool,
        total: int,
        progress: Callable[[int, int], object],
        cancelled: Callable[[], bool],
    ) -> TraceResult:
        run = process.start(made, spool, Approval(made.fingerprint(), self.actor, time.time()))
        while run.running:
            if cancelled():
                run.cancel()
            for event in run.poll():
                if event.get("event") == "progress" and event.get("phase") == "data set":
                    progress(int(event.get("done", 0)), total)
            time.sleep(TICK)
        return run.wait()


def recipe_for(file: str, planned: Recipe) -> Recipe:
    """How the files of a set are read: as planned where that recipe reads files of this kind, else by their ending."""
    ending = os.path.splitext(file)[1].lower()
    kind = next((name for name, endings in _SUFFIXES.items() if ending in endings), "bytes")
    if planned.kind == kind:
        return planned
    reads = kind_of(planned.kind).param("path") is not None and planned.kind != "npy"
    return planned if reads and kind == "bytes" else Recipe(kind, dims=planned.dims)


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
