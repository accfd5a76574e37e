"""What a page shows, as one frozen value that becomes a URL and comes back from it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

VERSION: Final = 1
TEXT_LIMIT: Final = 400
"""Characters of one field; longer ones do not come from us."""

FILTER_LIMIT: Final = 24
_FILTER_PREFIX: Final = "f."
_MODEL: Final = re.compile(r"[0-9A-Za-z]{8,64}")
_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/\-]*")
_LEVELS: Final = ("architecture", "block", "layer", "operator")


@dataclass(frozen=True, slots=True)
class ViewState:
    """The place a person is at.

    Attributes:
        page: key of the page (its address, so not among the query parameters).
        model: artifact id (quick identity or digest, or a prefix of at least 8 characters).
        level: level of the graph, ``""`` for the page's own choice.
        inside: id of the region that the graph shows from inside.
        selection: id of the selected node, region or value, e.g. ``g0.n12``.
        tensor: index of the selected tensor as text.
        trace: id of the trace.
        value: id of the selected activation, e.g. ``g0.v7``; ``step`` its iteration.
        overlay: what colours the graph.
        filters: choices of single pages by name, e.g. ``(("tensors.sort", "bytes"),)``, sorted.
    """

    page: str = "home"
    model: str = ""
    level: str = ""
    inside: str = ""
    selection: str = ""
    tensor: str = ""
    trace: str = ""
    value: str = ""
    step: str = ""
    overlay: str = ""
    filters: tuple[tuple[str, str], ...] = ()
    version: int = VERSION

    def filter(self, name: str, default: str = "") -> str:
        """The choice called ``name``."""
        return dict(self.filters).get(name, default)

    def with_filters(self, **changes: str | None) -> ViewState:
        """The same place with some choices changed; ``None`` or ``""`` takes one away.

        A name's ``__`` stands for ``.``: ``tensors__sort`` is ``tensors.sort``.
        """
        kept = dict(self.filters)
        for name, text in changes.items():
            kept[name.replace("__", ".")] = text or ""
        return replace(self, filters=_filters(kept))

    def to_query(self) -> dict[str, str]:
        """Query parameters of the address; empty fields and the page are left out."""
        query = {name: getattr(self, name) for name in _CHECKS if getattr(self, name)}
        query |= {_FILTER_PREFIX + name: text for name, text in self.filters}
        if self.version != VERSION:
            query["v"] = str(self.version)
        return query

    def to_json(self) -> str:
        """One line of JSON with every field."""
        return json.dumps(asdict(self) | {"filters": dict(self.filters)}, sort_keys=True)


def _id(text: str) -> bool:
    return len(text) <= TEXT_LIMIT and _ID.fullmatch(text) is not None


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12


_CHECKS: Final = {
    "model": lambda text: _MODEL.fullmatch(text) is not None,
    "level": _LEVELS.__contains__,
    "inside": _id,
    "selection": _id,
    "tensor": _number,
    "trace": _id,
    "value": _id,
    "step": _number,
    "overlay": lambda text: _WORD.fullmatch(text) is not None,
}


def from_query(query: Mapping[str, str], page: str = "home") -> ViewState:
    """Read query parameters; unknown names, garbled values and other versions are ignored."""
    if query.get("v", str(VERSION)) != str(VERSION):
        return ViewState(page=page)
    known: Any = {name: query[name] for name, good in _CHECKS.items() if name in query and good(query[name])}
    named = {key[len(_FILTER_PREFIX) :]: text for key, text in query.items() if key.startswith(_FILTER_PREFIX)}
    return ViewState(page=page, filters=_filters(named), **known)


def from_json(text: str) -> ViewState:
    """Read what ``to_json`` wrote; anything unusable gives the home page."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ViewState()
    if not isinstance(data, dict) or data.get("version") != VERSION:
        return ViewState()
    query = {name: data[name] for name in _CHECKS if isinstance(data.get(name), str)}
    filters = data.get("filters")
    if isinstance(filters, dict):
        query |= {f"{_FILTER_PREFIX}{name}": value for name, value in filters.items() if isinstance(value, str)}
    page = data.get("page")
    return from_query(query, page if isinstance(page, str) and _WORD.fullmatch(page) else "home")


def changed(view: ViewState, **changes: str) -> ViewState:
    """The same place with some fields replaced; a value that no page could have made is left out.

    Raises:
        TypeError: if a field does not exist.
    """
    names = {field.name for field in fields(ViewState)} - {"filters", "version"}
    unknown = set(changes) - names
    if unknown:
        raise TypeError(f"a view has no {', '.join(sorted(unknown))}")
    good = {name: text if name not in _CHECKS or _CHECKS[name](text) else "" for name, text in changes.items()}
    return replace(view, **good)


def _filters(named: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    kept = {
        name: text
        for name, text in sorted(named.items())
        if text and len(text) <= TEXT_LIMIT and re.fullmatch(r"[a-z][a-z0-9_.]{0,39}", name) and text.isprintable()
    }
    return tuple(kept.items())[:FILTER_LIMIT]
