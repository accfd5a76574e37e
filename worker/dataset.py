"""A model over the samples of a data set: running statistics of every value, nothing stored."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType
from core.ir import Finding, Model
from core.run.dataset import STATE
from core.statistics.arrays import numbers_in
from core.trace.answers.channels import unit_axis
from core.trace.dataset import DataSetStats
from core.trace.types import Status
from worker.capture import Place
from worker.engines.onnxruntime import Repeated
from worker.job import Job, Outcome, load_inputs
from worker.report import Report

SAVE_EVERY: Final = 2.0
"""Seconds of work that an end of the process may cost."""

_NUMBERS: Final = ("float", "int", "uint", "bool")


class Gather:
    """Takes values as ``worker.capture.Capture`` does and adds them to running statistics."""

    def __init__(self, stats: DataSetStats, model: Model, sample: int) -> None:
        self._stats, self._model, self._sample = stats, model, sample

    def inside(self, place: Place) -> None:
        """Only the main graph is counted."""

    def tensor(
        self, name: str, node: str, dtype: DType, shape: tuple[int, ...], stored: NDArray[np.uint8], array: NDArray[Any]
    ) -> None:
        """Add one tensor; text has no statistics."""
        if dtype.kind not in _NUMBERS or not array.size:
            return
        flat = np.ascontiguousarray(array).reshape(-1)
        numbers = flat if dtype.kind == "bool" else numbers_in(flat, dtype)
        id_ = f"g0.v{self._model.graphs[0].value_index.get(name, -1)}"
        axis = unit_axis(self._model, id_, len(shape))
        self._stats.add(id_, name, dtype.name, 0, numbers.reshape(shape), self._sample, axis)

    def other(self, name: str, node: str, type_text: str, shape: tuple[int, ...], reason: str) -> None:
        """A value that is no tensor has no statistics."""

    def missing(self, name: str, node: str, dtype: str, reason: str) -> None:
        """A value that could not be made has none either."""


def run(job: Job, report: Report, held: dict[str, str]) -> Outcome:
    """Run every sample and leave the statistics in the spool; a sample that fails is passed over and said.

    Raises:
        ModelError: if the model cannot be run at all.
    """
    request, path = job.request, job.spool.file(STATE)
    stats = DataSetStats.load(path)
    engine = Repeated(job, report, held)
    saved, failed, total = time.monotonic(), 0, len(stats.samples)
    for sample in request.samples[max(0, stats.done - request.first_sample) :]:
        number = stats.done
        report.progress("data set", number, total, f"running sample {number + 1} of {total}")
        one = replace(job, request=replace(request, inputs=sample), inputs=load_inputs(job.spool, sample))
        status, reason = engine.run(one, Gather(stats, job.model, number))
        if status == "memory":
            stats.save(path)
            return Outcome(status, reason)
        if status != "complete":
            failed += 1
            words = f"Sample {stats.samples[number]!r} ended {status}: {reason}"
            report.finding(Finding("run.sample", "warning", words))
        stats.done = number + 1
        for item in sample:
            Path(job.spool.file("inputs", os.path.basename(item.file))).unlink(missing_ok=True)
        if time.monotonic() - saved > SAVE_EVERY:
            stats.save(path)
            saved = time.monotonic()
    stats.save(path)
    report.progress("data set", stats.done, total, "")
    return _outcome(failed, len(request.samples))


def _outcome(failed: int, count: int) -> Outcome:
    status: Status = "complete" if not failed else "partial" if failed < count else "failed"
    return Outcome(status, f"{failed} of {count} samples could not be run whole." if failed else "")
