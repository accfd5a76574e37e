"""``python -P -m worker SPOOL``: run one approved job and say how it ended."""

from __future__ import annotations

import os
import sys
import traceback

from core.errors import ModelError
from core.run.result import size_text
from core.run.spool import Spool
from core.trace.types import Status
from worker import limits, sandbox


def main() -> int:
    """Hold the limits, then load the engine, run the job and write ``result.json``."""
    spool = Spool(sys.argv[1])
    request, _ = spool.read_request()
    held = {**sandbox.enter(), **limits.apply(request.limits)}
    sandbox.end_with_parent()
    from worker.report import Report

    with Report(spool) as report:
        status: Status
        optimisation = engine = ""
        try:
            from worker.run import run

            outcome = run(spool, report, held)
            status, reason = outcome.status, outcome.reason
            optimisation, engine = outcome.latency_optimisation, outcome.engine
        except ModelError as error:
            status, reason = "failed", str(error)
        except MemoryError:
            status = "memory"
            reason = f"The run needs more memory than the {size_text(request.limits.memory)} it may use."
        except Exception as error:  # noqa: BLE001 the one place: whatever happens becomes a status and a sentence
            traceback.print_exc()
            status, reason = "failed", f"The worker met an unexpected problem: {type(error).__name__}: {error}"
        peak = limits.peak_resident()
        report.result(
            status=status, reason=reason, peak_rss_bytes=peak, latency_optimisation=optimisation, engine=engine
        )
    sys.stderr.flush()
    os._exit(0)  # native libraries may hang or crash on their way out; everything is on disk


if __name__ == "__main__":
    main()
