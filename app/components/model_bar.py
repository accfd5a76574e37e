"""The bar on every page: which model this is, its state, and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st
from streamlit.components.v2 import component

from app import format_text, session
from app.components import jobs_panel, save_changes
from app.components.dom import DOM_CSS, DOM_JS
from app.components.findings import verdict
from app.format_text import THIN
from app.jobs import Job
from app.plain_text import shorten
from app.services import jobs, models, tracing
from core.formats.table import FORMATS
from core.ir import Model
from core.store.traces import TraceRecord

_JS: Final = (
    DOM_JS
    + """
export default function ({ data, parentElement, setTriggerValue }) {
  let root = parentElement.querySelector(".root");
  if (!root) {
    root = el("div", "root");
    parentElement.append(root);
  }
  const name = el("span", "name mono", data.name);
  name.title = data.path;
  const items = [name, el("span", "badge", data.format)];
  if (data.digest) {
    const chip = copyButton(data.digest.slice(0, 12), data.digest, "the SHA-256 digest", "digest");
    chip.title = "SHA-256 " + data.digest + " (click to copy)";
    items.push(chip);
  } else {
    const wait = el("span", "muted", data.hashing);
    wait.title = "The SHA-256 digest of the file";
    items.push(wait);
  }
  items.push(el("span", "muted", data.size));
  const found = el("button", "findings " + (data.severity || "none"), data.findings);
  found.type = "button";
  found.title = "Show the findings";
  found.onclick = () => setTriggerValue("findings", true);
  items.push(found);
  if (data.trace) {
    const trace = el("span", "muted trace", data.trace);
    trace.title = "Device and outcome of the last trace";
    items.push(trace);
  }
  root.replaceChildren(...items);
}
"""
)

_CSS: Final = (
    DOM_CSS
    + """
.root { display: flex; align-items: center; gap: 0.75rem; min-height: 2.25rem; white-space: nowrap; overflow: hidden; }
.name { font-weight: 600; font-size: 0.9375rem; overflow: hidden; text-overflow: ellipsis; min-width: 6rem; }
.badge {
  padding: 0.05rem 0.45rem;
  border-radius: 1rem;
  border: 1px solid var(--st-primary-color);
  color: var(--st-primary-color);
  font-size: 0.75rem;
  font-weight: 600;
}
.digest { margin: 0 -0.3rem; }
.findings {
  border: 0;
  background: none;
  padding: 0.05rem 0.3rem;
  margin: 0 -0.3rem;
  border-radius: var(--st-base-radius);
  font: inherit;
  cursor: pointer;
}
.findings:hover, .findings:focus-visible { background: var(--st-secondary-background-color); }
.findings.none { color: var(--st-green-text-color); }
.findings.info { color: var(--st-blue-text-color); }
.findings.warning { color: var(--st-orange-text-color); }
.findings.error { color: var(--st-red-text-color); }
@media (max-width: 900px) { .trace { display: none; } }
"""
)

_IDENTITY: Final = component("modelglass_identity", js=_JS, css=_CSS)


def model_bar() -> None:
    """Draw the bar of the open model; raises what opening it raises."""
    artifact, model = session.current_model()
    active = jobs.active(session.actor())
    with st.container(
        key="model-bar", horizontal=True, wrap=False, vertical_alignment="center", gap="small", width="stretch"
    ):
        _identity(artifact, model)
        jobs_panel.jobs_panel(active)
        save_changes.save_button(artifact)
        save_changes.close_button(artifact)


def _identity(artifact: str, model: Model) -> None:
    words, severity = verdict(model.findings)
    state = models.status(session.actor(), artifact)
    result = _IDENTITY(
        key="model-identity",
        data={
            "name": shorten(model.name, 200),
            "path": shorten(model.path, 400),
            "format": format_title(model.format),
            "digest": state.digest,
            "hashing": hashing_text(state.hashing),
            "size": format_text.size(model.size_bytes),
            "findings": words,
            "severity": severity or "",
            "trace": last_trace_text(tracing.history(session.actor(), artifact)),
        },
        on_findings_change=_nothing,
    )
    if result.findings:
        session.go("overview", inside="", selection="")


def format_title(name: str) -> str:
    """The name of a format for people."""
    return next((entry.title for entry in FORMATS if entry.name == name), name)


def hashing_text(job: Job | None) -> str:
    """``hashing… 43 %`` while the digest is computed, a word where it will not come."""
    if job is None or job.state in ("failed", "cancelled"):
        return "not hashed"
    return "hashing…" if job.share is None else f"hashing… {100 * job.share:.0f}{THIN}%"


def last_trace_text(history: Sequence[TraceRecord]) -> str:
    """``traced on CPU, 0.42 s``; how it ended where it is not whole; empty where nothing ran yet."""
    if not history:
        return ""
    last = history[0]
    device = last.provider.removesuffix("ExecutionProvider") or last.engine
    ending = "" if last.status == "complete" else f", {last.status}"
    return f"traced on {device}, {format_text.seconds(last.elapsed_s)}{ending}"


def _nothing() -> None:
    """A trigger exists only with a callback."""
