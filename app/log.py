"""The log: a rotating file in the state folder, on the terminal as well where asked for."""

from __future__ import annotations

import logging
import logging.handlers
from pathlib import Path
from typing import Final

from core.limits import MIB

NAME: Final = "modelglass"
FILE: Final = "modelglass.log"
_LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def begin(folder: Path, *, verbose: bool = False) -> logging.Logger:
    """Send everything logged under ``modelglass`` to ``folder``; called again it changes the place.

    Args:
        folder: the state folder's ``logs``.
        verbose: whether it is shown on standard error too, details included.
    """
    logger = end()
    file = logging.handlers.RotatingFileHandler(
        folder / FILE, maxBytes=MIB, backupCount=3, encoding="utf-8", errors="backslashreplace", delay=True
    )
    handlers: list[logging.Handler] = [file, *([logging.StreamHandler()] if verbose else [])]
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_LINE))
        logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    logger.propagate = False
    return logger


def end() -> logging.Logger:
    """Close the log file."""
    logger = logging.getLogger(NAME)
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    return logger


def logger(part: str) -> logging.Logger:
    """The logger of one part; texts of a model file go in as arguments, never as the format."""
    return logging.getLogger(f"{NAME}.{part}")
