"""Where numbers stop being numbers: the first operators that make NaN or infinity out of finite inputs."""

from __future__ import annotations

from core.ir import Finding
from core.statistics.types import TensorStats
from core.trace.answers.reading import Reading, finding, listed
from core.trace.types import TracedValue


def answer(run: Reading) -> list[Finding]:
    """One finding for the first value with NaN and one for the first with infinity that arise by themselves.

    A value counts where no value that its operator took holds the same kind of non-number. Minus
    infinity beside nothing but zeros is how attention masks are written, and is only noted.
    """
    found: list[Finding] = []
    nan = [v for v in run.floats if _nan(v.stats) and not any(_nan(o.stats) for o in run.operands(v))]
    if nan:
        found.append(_first(run, "run.first_nan", "NaN", nan))
    inf = [v for v in run.floats if _inf(v.stats) and not any(_nan(o.stats) or _inf(o.stats) for o in run.operands(v))]
    arising = [v for v in inf if not _mask(v.stats)]
    if arising:
        found.append(_first(run, "run.first_inf", "infinity", arising))
    elif inf:
        words = f"{inf[0].name!r} holds minus infinity beside zeros, as attention masks do."
        found.append(finding("run.mask", "info", words, inf[0]))
    return found


def _first(run: Reading, code: str, what: str, arising: list[TracedValue]) -> Finding:
    value = arising[0]
    stats = value.stats
    assert stats is not None
    amount = stats.nan if what == "NaN" else stats.inf
    node = run.node(value)
    maker = "It is a model input" if node is None else f"Operator {node.name or node.id!r} ({node.op_type}) made it"
    taken = [f"{name!r} {_range(s)}" for name, s in run.ranges(value)]
    text = f"The first value with {what} is {value.name!r}: {amount:,} of {stats.count:,} elements. {maker}"
    text += f" from {listed(taken)}." if taken else "."
    if len(arising) > 1:
        text += f" {what[0].upper()}{what[1:]} arises by itself in {len(arising) - 1} more."
    return finding(code, "error" if what == "NaN" else "warning", text, value)


def _range(stats: TensorStats | None) -> str:
    if stats is None:
        return "(range not known)"
    if stats.min is None or stats.max is None:
        return "with no finite element"
    bad = [f"{stats.nan:,} NaN"] if stats.nan else []
    bad += [f"{stats.inf:,} infinite"] if stats.inf else []
    return f"from {stats.min:.6g} to {stats.max:.6g}" + (f" with {' and '.join(bad)}" if bad else "")


def _nan(stats: TensorStats | None) -> bool:
    return stats is not None and stats.nan > 0


def _inf(stats: TensorStats | None) -> bool:
    return stats is not None and stats.inf > 0


def _mask(stats: TensorStats | None) -> bool:
    return stats is not None and not stats.pos_inf and not stats.nan and stats.zero == stats.finite
