"""The one place where errors meet a person: a sentence, the file, the next step; details go to the log."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.errors import FragmentHandledException

from app import workspace
from app.plain_text import mono, plain
from core.errors import Forbidden, ModelError

_LOG = logging.getLogger("modelglass")
_MESSAGE_LIMIT = 600


@dataclass
class Outcome:
    """Whether what was guarded came to its end."""

    failed: bool = False


@contextmanager
def guard() -> Iterator[Outcome]:
    """Run a piece of a page; what it raises is shown here and does not go further.

    Reruns, stops and page switches pass through: they are no ``Exception``.
    """
    outcome = Outcome()
    try:
        yield outcome
    except FragmentHandledException:  # a fragment inside has shown its error already
        outcome.failed = True
    except Exception as error:  # noqa: BLE001  the error box is where unknown errors end
        outcome.failed = True
        show(error)


def show(error: BaseException) -> bool:
    """Draw one error and log it; true so that Streamlit adds nothing of its own."""
    if isinstance(error, ModelError):
        _LOG.info("shown to the person: %s: %s", type(error).__name__, error)
        icon = ":material/lock:" if isinstance(error, Forbidden) else ":material/error:"
        st.error(model_error_text(error), icon=icon)
    else:
        reference = secrets.token_hex(3)
        _LOG.error("unexpected error %s", reference, exc_info=error)
        st.error(
            f"**Something in Modelglass went wrong here.** Nothing of yours was changed. "
            f"Reload the page to go on; the details are in the log under {mono(reference)}.",
            icon=":material/bug_report:",
        )
    return True


def model_error_text(error: ModelError) -> str:
    """The error as Markdown in which every word of a file is inert."""
    place = f" (byte {error.byte})" if error.byte is not None else ""
    message = error.message if error.path else error.message[:1].upper() + error.message[1:]
    sentence = plain(message.rstrip(".") + place, _MESSAGE_LIMIT) + "."
    first = f"{mono(_shown_path(error.path))} {sentence}" if error.path else sentence
    return f"{first}\n\n{plain(error.hint, _MESSAGE_LIMIT)}" if error.hint else first


def _shown_path(path: str) -> str:
    """An uploaded file by its name alone: where it was stored says nothing to a person."""
    found = Path(path)
    return found.name if found.parent.parent == workspace.current().uploads else path
