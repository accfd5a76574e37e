"""Remember what was derived from a graph or a model for as long as it lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from core.ir import Graph, Model

T = TypeVar("T")

# Graphs and models compare by value and hold arrays, so they cannot be dictionary keys: identity is the key,
# and a finaliser drops the entries before the identity can be used again.
_derived: dict[int, dict[object, Any]] = {}


def remembered(owner: Graph | Model, key: object, make: Callable[[], T]) -> T:
    """``make()`` the first time it is asked for this owner and key, later the same object."""
    known = _derived.get(id(owner))
    if known is None:
        known = _derived[id(owner)] = {}
        weakref.finalize(owner, _derived.pop, id(owner), None)
    if key not in known:
        known[key] = make()
    return known[key]
