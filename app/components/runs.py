"""Which run the pages talk about, and how it ended in words."""

from __future__ import annotations

from typing import Final

from app import format_text, session
from app.plain_text import plain
from app.services import tracing
from core.store.traces import TraceRecord

WORDS: Final = {
    "complete": "complete",
    "partial": "partial",
    "failed": "failed",
    "cancelled": "stopped",
    "timeout": "out of time",
    "memory": "out of memory",
}
ICONS: Final = {
    "complete": ":material/check_circle:",
    "partial": ":material/incomplete_circle:",
    "failed": ":material/error:",
    "cancelled": ":material/stop_circle:",
    "timeout": ":material/timer_off:",
    "memory": ":material/memory_alt:",
}


def current_run(artifact: str) -> TraceRecord | None:
    """The run in the address if it is one of this model, else the newest that left values."""
    history = tracing.history(session.actor(), artifact)
    wanted = session.view().trace
    chosen = next((record for record in history if record.id == wanted), None)
    return chosen or next((record for record in history if record.values), None)


def sentence(record: TraceRecord) -> str:
    """How a run ended, in one sentence of Markdown."""
    spent = f"{format_text.seconds(record.elapsed_s)}, {format_text.size(record.peak_rss_bytes)} at most"
    if record.status == "complete":
        return f"Complete: {format_text.plural(record.values, 'value')} in {spent}."
    kept = f" {format_text.plural(record.values, 'value')} were kept." if record.values else ""
    reason = plain(record.reason, 600)
    return f"{WORDS.get(record.status, record.status).capitalize()} after {spent}: {reason}{_stop(reason)}{kept}"


def _stop(text: str) -> str:
    return "" if text.endswith((".", "\\.")) else "."
