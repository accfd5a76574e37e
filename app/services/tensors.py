"""Tables of tensors and their statistics, which are kept once they were taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from app import workspace
from app.actors import Actor
from app.jobs import Job, Progress
from app.services.models import reach
from app.services.registry import service
from app.services.tables import TablePage, frame, query
from app.services.tables import page as as_frame
from core.errors import NotFound
from core.statistics.types import TensorStats

if TYPE_CHECKING:
    import pandas as pd

WRITE_EVERY: Final = 1.0
"""Seconds between two writes of a running scan."""


@service("viewer")
def page(
    actor: Actor,
    artifact: str,
    *,
    sort: str = "",
    descending: bool = False,
    text: str = "",
    dtype: str = "",
    encoding: str = "",
    role: str = "",
    after: int | None = None,
    start: int = 0,
    limit: int = 100,
    columns: Sequence[str] = (),
) -> TablePage:
    """Rows of the tensor table with statistics where known.

    Columns: idx, name, dtype, encoding, shape, elements, bytes, source, start, stop, role, graph,
    storage, quantized, problem; count, nan, inf, zero, min, max, mean, std, absmax, l2, q001 ...
    q500 (median) ... q999, histogram (counts), exact (empty until taken).

    Args:
        sort: idx, name, dtype, encoding, elements, bytes, start, role, rank, nan, inf, zero, min,
            max, mean, std, absmax, l2 or q500; empty for file order.
        text: part of the name.
        after: ``next`` of the page before; else ``start`` says at which place to begin.
        columns: the columns wanted, all where left out; fewer are faster in long tables.
    """
    asked = query(sort, descending, text, dtype=dtype, encoding=encoding, role=role)
    artifacts = workspace.current().store.artifacts
    return as_frame(
        artifacts.tensors_page(
            reach(actor, artifact).quick, asked, after=after, start=start, limit=limit, columns=columns
        )
    )


@service("viewer")
def count(actor: Actor, artifact: str, *, text: str = "", dtype: str = "", encoding: str = "", role: str = "") -> int:
    """Tensors under a filter."""
    return page(actor, artifact, text=text, dtype=dtype, encoding=encoding, role=role, limit=0).total


@service("viewer")
def facets(actor: Actor, artifact: str) -> pd.DataFrame:
    """Tensors and bytes by dtype, encoding and role, the largest first."""
    return frame(workspace.current().store.artifacts.tensor_facets(reach(actor, artifact).quick))


@service("viewer")
def statistics(actor: Actor, artifact: str, tensor: int) -> TensorStats:
    """Statistics of one tensor, taken now where they are not known; reads its bytes.

    Raises:
        NotFound: if there is no such tensor.
        Unavailable, BrokenFile: if its values cannot be decoded.
    """
    from core.statistics.tensors import of_tensor

    opened, artifacts = reach(actor, artifact), workspace.current().store.artifacts
    if not 0 <= tensor < len(opened.model.tensors):
        raise NotFound(f"the model has no tensor {tensor}", path=opened.model.path)
    found = artifacts.stats(opened.quick, tensor)
    if found is None:
        found = of_tensor(opened.model, tensor)
        artifacts.put_stats(opened.quick, {tensor: found})
    return found


@service("viewer")
def known_statistics(actor: Actor, artifact: str, tensor: int) -> TensorStats | None:
    """Statistics of one tensor where they were taken before; reads no file."""
    return workspace.current().store.artifacts.stats(reach(actor, artifact).quick, tensor)


@service("collaborator")
def scan(actor: Actor, artifact: str) -> Job:
    """Take the statistics of all tensors that lack them, in a job; what is ready is in the table at once."""
    opened, held = reach(actor, artifact), workspace.current()

    def work(progress: Progress, cancelled: Callable[[], bool]) -> int:
        from core.statistics.scan import scan as scanned

        model, artifacts = opened.model, held.store.artifacts
        known = artifacts.with_stats(opened.quick)
        ready: dict[int, TensorStats] = {}
        taken, written = 0, time.monotonic()

        def tell(done: int, total: int) -> None:
            progress(done, total, unit="bytes", message=f"{taken} tensors")

        try:
            for index, stats in scanned(model, known=known, progress=tell, cancelled=cancelled):
                ready[index] = stats
                taken += 1
                if time.monotonic() - written > WRITE_EVERY:
                    artifacts.put_stats(opened.quick, ready)
                    ready, written = {}, time.monotonic()
        finally:
            if ready:
                artifacts.put_stats(opened.quick, ready)
        return taken

    return held.jobs.submit(
        "statistics", f"Statistics of {opened.model.name}", work,
        key=f"statistics {opened.quick}", artifact=opened.quick, actor=actor.id,
    )  # fmt: skip
