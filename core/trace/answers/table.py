"""The questions that are asked of every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from core.ir import Finding, Model
from core.trace.answers import attention, constant, dead, depth, not_finite, overflow
from core.trace.answers.reading import Reading
from core.trace.types import TraceResult
from core.trace.values import load_value

ANSWERS: Final[tuple[Callable[[Reading], list[Finding]], ...]] = (
    not_finite.answer,
    overflow.answer,
    depth.answer,
    dead.answer,
    constant.answer,
    attention.answer,
)


def answers(run: Reading) -> list[Finding]:
    """Everything that there is to say about a run, each about one value."""
    return [found for ask in ANSWERS for found in ask(run)]


def of_result(model: Model, result: TraceResult) -> list[Finding]:
    """The answers about a run that has ended; reads its stored values."""
    return answers(Reading(model, result.values, lambda value: load_value(result, value)))
