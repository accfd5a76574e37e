"""Statistics of all tensors of a model, smallest first, one after another."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from core.errors import Unavailable
from core.ir import Model
from core.statistics import engine
from core.statistics.tensors import Measured, Progress, measured
from core.statistics.types import TensorStats


def order(model: Model, indices: Iterable[int] | None = None, known: Container[int] = ()) -> list[int]:
    """Tensor indexes by stored bytes, ascending, without those in ``known``."""
    chosen = range(len(model.tensors)) if indices is None else indices
    return sorted((i for i in chosen if i not in known), key=lambda i: (model.tensors[i].nbytes, i))


def scan(
    model: Model,
    indices: Iterable[int] | None = None,
    *,
    known: Container[int] = (),
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    bins: int = 64,
) -> Iterator[tuple[int, TensorStats]]:
    """Statistics by tensor index; reads the tensors from disk while it is iterated.

    Tensors whose values cannot be decoded are left out. What was given before an error or a
    stop is complete, so a later scan goes on with those indexes as ``known``.

    Args:
        indices: the tensors wanted, all where left out.
        known: indexes to leave out.
        progress: gets bytes done and bytes to do over all tensors.
        cancelled: asked before every block.

    Raises:
        Cancelled: if ``cancelled`` says so.
        SourceChanged: if a file changed since it was opened.
    """
    for index, found in scan_with_digests(
        model, indices, known=known, progress=progress, cancelled=cancelled, bins=bins, digest=False
    ):
        yield index, found.stats


def scan_with_digests(
    model: Model,
    indices: Iterable[int] | None = None,
    *,
    known: Container[int] = (),
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    bins: int = 64,
    digest: bool = True,
) -> Iterator[tuple[int, Measured]]:
    """As ``scan``, with the content hash of every tensor from the same reading."""
    todo = order(model, indices, known)
    sizes = [model.tensors[i].nbytes for i in todo]
    total, before = sum(sizes), 0
    using = engine.for_scan(total)

    def within(done: int, _: int) -> None:
        if progress is not None:
            progress(min(before + done, total), total)

    for index, size in zip(todo, sizes, strict=True):
        try:
            found = measured(model, index, progress=within, cancelled=cancelled, bins=bins, digest=digest, using=using)
        except Unavailable:
            found = None
        before += size
        within(0, size)
        if found is not None:
            yield index, found
