"""The query language of Find: words and ``field:value`` terms that must all hold.

op:Conv   op:*Norm*        operator type, * and ? stand for anything
dtype:int8                 of a port, a value or a tensor
shape:*x256  rank:4        dimensions written with x, symbols by name
bytes:>1M  params:>=1000   of stored tensors; K M G are 1000-fold, Ki Mi Gi 1024-fold
name:*attn*  name~/q.?proj/ scope:*.layer  domain:com.microsoft
attr:axis  attr:axis=1     attributes of an operator
kind:tensor                node, value, tensor, metadata
-op:Constant               a minus turns a term round
word "two words"           in a name or an operator type
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import translate
from typing import Final

from core.errors import UsageError
from core.structure.linear_regex import Regex

QUERY_LENGTH: Final = 1000
FIELDS: Final = ("op", "dtype", "shape", "rank", "bytes", "params", "name", "scope", "domain", "attr", "kind")
_NUMBERS: Final = frozenset({"rank", "bytes", "params"})
_PARTS: Final = re.compile(
    r"""\s*(?P<no>-)?(?:(?P<field>[a-z]{1,10})(?:~/(?P<regex>(?:\\.|[^/\\]){1,300})/|:(?P<value>"[^"]*"|\S*))"""
    r"""|"(?P<quoted>[^"]*)"|(?P<word>\S+))"""
)
_AMOUNT: Final = re.compile(r"(>=|<=|>|<|=)?(\d{1,18}(?:\.\d{1,6})?)([KMGT]i?)?B?", re.IGNORECASE)
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le, "=": operator.eq,
}  # fmt: skip
_FACTOR: Final = {letter: power for power, letter in enumerate("KMGT", start=1)}


@dataclass(frozen=True, slots=True)
class Term:
    """One condition.

    Attributes:
        field: one of ``FIELDS``, or ``word``.
        text: test of a text, for terms about texts; ``number`` test of a number.
        value: as written, lower case.
    """

    field: str
    value: str
    negated: bool
    text: Callable[[str], bool]
    number: Callable[[float], bool]


def parse(query: str) -> list[Term]:
    """Split a query into its terms.

    Raises:
        UsageError: if a field is unknown or a value makes no sense, with what would.
    """
    if len(query) > QUERY_LENGTH:
        raise UsageError(f"the query has {len(query)} characters, allowed are {QUERY_LENGTH}")
    terms: list[Term] = []
    at = 0
    while query[at:].strip():
        match = _PARTS.match(query, at)
        if match is None:
            raise UsageError(f"the query cannot be read from {query[at : at + 20]!r} on")
        at = match.end()
        terms.append(_term(match))
    return terms


def _term(match: re.Match[str]) -> Term:
    field, value = match["field"], match["value"]
    negated = match["no"] is not None
    if field is None:
        word = match["quoted"] if match["quoted"] is not None else match["word"]
        wanted = word.lower()
        return Term("word", wanted, negated, lambda text: wanted in text.lower(), _never)
    if field not in FIELDS:
        raise UsageError(f"no field is called {field!r}", hint=f"There are {', '.join(FIELDS)}.")
    if match["regex"] is not None:
        pattern = match["regex"].replace("\\/", "/")
        return Term(field, pattern, negated, Regex(pattern).search, _never)
    value = value.strip('"')
    if not value:
        raise UsageError(f"{field}: needs a value")
    if field in _NUMBERS:
        return Term(field, value, negated, _nothing, _amount(field, value))
    return Term(field, value.lower(), negated, glob(value), _never)


def glob(pattern: str) -> Callable[[str], bool]:
    """Test a whole text, case aside; ``*`` and ``?`` stand for anything, nothing else is special."""
    parts = pattern.lower().split("*")
    if len(parts) == 1 and "?" not in pattern:
        return lambda text: text.lower() == parts[0]
    if "?" not in pattern:
        return lambda text: _in_order(parts, text.lower())
    if pattern.count("*") > 1:
        raise UsageError(f"{pattern!r} mixes ? with several *")
    compiled = re.compile(translate(pattern.lower().replace("[", "[[]")))
    return lambda text: compiled.match(text.lower()) is not None


def _in_order(parts: list[str], text: str) -> bool:
    """Whether the parts follow each other in the text, the first and last at its ends; linear."""
    first, *middle, last = parts
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    at, stop = len(first), len(text) - len(last)
    for part in middle:
        at = text.find(part, at, stop)
        if at < 0:
            return False
        at += len(part)
    return True


def _amount(field: str, value: str) -> Callable[[float], bool]:
    match = _AMOUNT.fullmatch(value)
    if match is None:
        raise UsageError(f"{field}:{value[:40]} is no number", hint=f"Write {field}:>1M or {field}:=16.")
    compare, unit = _COMPARE[match[1] or "="], match[3] or ""
    base = 1024 if unit.lower().endswith("i") else 1000
    amount = float(match[2]) * base ** _FACTOR.get(unit[:1].upper(), 0)
    return lambda found: compare(found, amount)


def _never(_number: float) -> bool:
    return False


def _nothing(_text: str) -> bool:
    return False
