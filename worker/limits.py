"""Limits that the worker puts on itself before it reads a single byte of the model."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Final

from core.limits import MIB
from core.run.memory import resident
from core.run.result import size_text
from core.trace.types import RunLimits

OPEN_FILES: Final = 256
SLACK: Final = 256 * MIB
"""Bytes a file may grow beyond ``limits.store``: the runtime's profile and the events."""


def apply(limits: RunLimits) -> dict[str, str]:
    """Set the limits that the system offers and say in words which of them hold.

    Data memory counts private writable memory: heap, thread stacks and mapped weights
    (getrlimit(2), ``RLIMIT_DATA``).
    """
    resource = _resource()
    if resource is None:
        return {"memory": "not held on this system"}
    held = {"memory": _memory(resource, limits.memory)}
    _set(resource, "RLIMIT_CORE", 0)
    held["core dumps"] = "off"
    if _set(resource, "RLIMIT_NOFILE", OPEN_FILES):
        held["open files"] = f"at most {OPEN_FILES}"
    most = limits.store + SLACK
    if _set(resource, "RLIMIT_FSIZE", most):
        held["file size"] = f"at most {size_text(most)} (RLIMIT_FSIZE)"
    held["threads"] = f"{limits.threads} for the runtime"
    return held


def peak_resident() -> int:
    """Highest resident memory of this process so far, in bytes; 0 where the system does not say.

    ``ru_maxrss`` only where ``/proc`` is missing: on Linux it remembers the parent from before ``exec``.
    """
    _, peak = resident(os.getpid())
    resource = _resource()
    if peak or resource is None:
        return peak
    found = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return found if sys.platform == "darwin" else found * 1024


def _memory(resource: ModuleType, nbytes: int) -> str:
    # Linux counts data memory since 4.7; elsewhere address space is the nearest thing there is.
    name = "RLIMIT_DATA" if sys.platform == "linux" else "RLIMIT_AS"
    if _set(resource, name, nbytes):
        return f"{size_text(nbytes)} from the start ({name})"
    return "not held inside the worker"


def _set(resource: ModuleType, name: str, value: int) -> bool:
    kind = getattr(resource, name, None)
    if kind is None:
        return False
    hard: int = resource.getrlimit(kind)[1]
    bound = value if hard < 0 else min(value, hard)
    try:
        resource.setrlimit(kind, (bound, bound))
    except (OSError, ValueError):
        return False
    return True


def _resource() -> ModuleType | None:
    try:
        return importlib.import_module("resource")
    except ModuleNotFoundError:  # Windows
        return None
