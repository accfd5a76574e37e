"""Which way to go through the blocks: numpy for little, compiled kernels for much."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from typing import Final, cast

from core.limits import MIB
from core.statistics import vectors
from core.statistics.stream import Engine

KERNEL_BYTES: Final = 32 * MIB
"""Bytes to scan beyond which the kernels are worth importing (1 s, and 15 s to compile once)."""

THREADS: Final = 2

_KERNELS: Final = "core.statistics.kernels"
_ready = threading.Event()


def keep_compiled_in(folder: str | os.PathLike[str]) -> None:
    """Let compiled kernels be kept in ``folder``; has effect before the kernels are first used."""
    os.environ.setdefault("NUMBA_CACHE_DIR", os.fspath(folder))


def for_scan(nbytes: int) -> Engine:
    """The engine for a scan of so many bytes in all; may import Numba, never below ``KERNEL_BYTES``."""
    if nbytes > KERNEL_BYTES and available():
        return _kernels()
    return _kernels() if _ready.is_set() and nbytes > MIB else vectors


def available() -> bool:
    """Whether Numba is installed; does not import it."""
    return "numba" in sys.modules or importlib.util.find_spec("numba") is not None


def warm_up() -> bool:
    """Import and compile the kernels, or load them from their cache; ``False`` where Numba is missing.

    Takes seconds the first time: for a thread in the background. From then on scans below
    ``KERNEL_BYTES`` use them too.
    """
    if not available():
        return False
    importlib.import_module(_KERNELS).warm_up()
    _ready.set()
    return True


def _kernels() -> Engine:
    return cast("Engine", importlib.import_module(_KERNELS))
