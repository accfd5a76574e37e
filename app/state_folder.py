"""Where Modelglass keeps what it has to remember: one private folder a person."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from core.errors import StoreError

VARIABLE: Final = "MODELGLASS_HOME"

DATABASE: Final = "workspace.duckdb"
UPLOADS: Final = "uploads"
SPOOLS: Final = "spools"
LOGS: Final = "logs"
EDITS: Final = "edits"
COMPILED: Final = "compiled"


def locate() -> Path:
    """The state folder: ``MODELGLASS_HOME``, else the platform's place for such files; not created."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "modelglass"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "modelglass"
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "modelglass"


def prepare(folder: Path | None = None) -> Path:
    """Create the state folder so that only its owner may enter (mode 0700).

    Raises:
        StoreError: if it cannot be created or is not a folder.
    """
    home = locate() if folder is None else folder.absolute()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix":
            home.chmod(0o700)
        for name in (UPLOADS, SPOOLS, LOGS):
            (home / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the state folder cannot be used: {error.strerror}", path=str(home), hint=f"Set {VARIABLE} to another one."
        ) from None
    return home
