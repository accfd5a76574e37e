"""The models that are open in this process, a bounded number, the least used closed first."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from core.errors import NotFound
from core.ir import Model
from core.store.artifacts import PREFIX

MOST: Final = 8
T = TypeVar("T")


@dataclass(slots=True)
class OpenModel:
    """One open model with what was derived from it; both go when it is closed.

    Attributes:
        quick: quick identity; ``digest`` SHA-256, empty until hashed.
        root, revision: of an edited model the digest of the file it began with, and which state it is.
    """

    model: Model
    quick: str
    digest: str = ""
    uploaded: bool = False
    root: str = ""
    revision: str = ""
    _derived: dict[Hashable, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def id(self) -> str:
        """SHA-256 where known, else the quick identity."""
        return self.digest or self.quick

    def derived(self, key: Hashable, make: Callable[[Model], T]) -> T:
        """What ``make`` gives for the model, made once; others wait for it meanwhile."""
        with self._lock:
            if key not in self._derived:
                self._derived[key] = make(self.model)
            return cast(T, self._derived[key])

    def shut(self) -> None:
        """Give files and derived things back; the model can still be read by who holds it."""
        self.model.close()
        with self._lock:
            self._derived.clear()

    def named(self, artifact: str) -> bool:
        """Whether ``artifact`` is its quick identity, its digest, or the beginning of one."""
        return len(artifact) >= PREFIX and (self.quick.startswith(artifact) or self.digest.startswith(artifact))


class OpenModels:
    """All open models by quick identity."""

    def __init__(self, closed: Callable[[OpenModel], object] | None = None, most: int = MOST) -> None:
        self._models: OrderedDict[str, OpenModel] = OrderedDict()
        self._lock = threading.RLock()
        self._closed = closed
        self._most = most

    def add(self, opened: OpenModel) -> OpenModel:
        """Keep a model open; one that is already open under the same identity stays instead."""
        with self._lock:
            kept = self._models.setdefault(opened.quick, opened)
            self._models.move_to_end(opened.quick)
            over = [next(iter(self._models.values()))] if len(self._models) > self._most else []
        for old in over:
            self.close(old.id)
        return kept

    def find(self, artifact: str) -> OpenModel | None:
        """The open model of that id or unique beginning, ``None`` where it is not open.

        Raises:
            NotFound: if several begin so.
        """
        with self._lock:
            found = [m for m in self._models.values() if m.named(artifact)]
            exact = [m for m in found if artifact in (m.quick, m.digest)]
            if len(found) > 1 and not exact and len({m.id for m in found}) > 1:
                raise NotFound(f"{artifact[:80]!r} is the beginning of several ids", hint="Give more characters.")
            chosen = next(iter(exact or found), None)
            if chosen is not None:
                self._models.move_to_end(chosen.quick)
            return chosen

    def all(self) -> list[OpenModel]:
        """The open models, the last used first."""
        with self._lock:
            return list(self._models.values())[::-1]

    def close(self, artifact: str) -> bool:
        """Close a model, at all places it is open from; says whether it was open."""
        with self._lock:
            found = [m for m in self._models.values() if artifact in (m.quick, m.digest)]
            for opened in found:
                del self._models[opened.quick]
        for opened in found:
            opened.shut()
            if self._closed is not None:
                self._closed(opened)
        if found:
            give_memory_back()
        return bool(found)

    def close_all(self) -> None:
        """Close every model."""
        for opened in self.all():
            self.close(opened.quick)


def give_memory_back() -> None:
    """Return freed memory to the system, as far as the platform lets one."""
    gc.collect()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
        if trim is not None:
            trim(0)
