"""Running one job with the engine it asks for."""

from __future__ import annotations

from core.errors import RunError
from core.run.prepare import ENGINES
from core.run.spool import Spool
from worker.job import Outcome, read_job
from worker.report import Report


def run(spool: Spool, report: Report, held: dict[str, str]) -> Outcome:
    """Read the job, run it, and say how it ended; values and timings go to ``report``.

    Raises:
        ModelError: if the model cannot be run at all.
    """
    job = read_job(spool)
    if job.request.engine not in ENGINES:
        raise RunError(f"this worker has no engine called {job.request.engine!r}")
    if job.request.purpose == "dataset":
        from worker import dataset

        return dataset.run(job, report, held)
    if job.request.purpose == "load":
        from worker import load

        return load.run(job, report, held)
    from worker.engines.onnxruntime import execute

    return execute(job, report, held)
