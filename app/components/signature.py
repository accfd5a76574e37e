"""What a model takes and gives: inputs, the model, outputs, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamlit.components.v2 import component

from app import format_text
from app.components.dom import DOM_CSS, DOM_JS
from app.plain_text import shorten
from core.overview import Slot

_SHOWN: Final = 6
_COPIED: Final = 10_000

_JS: Final = (
    DOM_JS
    + """
function row(slot) {
  const line = el("div", "slot");
  const name = el("div", "name mono", slot.name);
  name.title = slot.name;
  const head = el("div", "head");
  head.append(name, copyButton("", slot.copied, "the signature of this tensor"));
  const kind = el("div", "kind");
  kind.append(el("span", "dtype", slot.dtype));
  const shape = el("span", "shape mono");
  slot.dims.forEach((dim, place) => {
    if (place) shape.append(el("span", "times", " × "));
    shape.append(el("span", dim.dynamic ? "dynamic" : "", dim.text));
  });
  shape.title = slot.dims.some((dim) => dim.dynamic) ? "Marked dimensions are chosen at run time" : "";
  kind.append(shape);
  line.append(head, kind);
  return line;
}

function card(title, slots, hidden) {
  const box = el("section", "card");
  const head = el("div", "title", title);
  head.append(el("span", "muted", " " + (slots.length + hidden)));
  box.append(head);
  if (!slots.length) box.append(el("div", "muted", "None declared"));
  slots.forEach((slot) => box.append(row(slot)));
  if (hidden) box.append(el("div", "muted", "and " + hidden + " more, listed under Graph"));
  return box;
}

export default function ({ data, parentElement }) {
  let root = parentElement.querySelector(".root");
  if (!root) {
    root = el("div", "root");
    parentElement.append(root);
  }
  const model = el("section", "card model");
  const name = el("div", "name mono", data.model.name);
  name.title = data.model.name;
  model.append(el("div", "title", data.model.title), name);
  data.model.facts.forEach((fact) => model.append(el("div", "muted", fact)));
  const all = copyButton("Copy signature", data.copied, "the whole signature", "all");
  model.append(all);
  root.replaceChildren(
    card("Inputs", data.inputs, data.hiddenInputs),
    el("div", "arrow", "→"),
    model,
    el("div", "arrow", "→"),
    card("Outputs", data.outputs, data.hiddenOutputs),
  );
}
"""
)

_CSS: Final = (
    DOM_CSS
    + """
.root {
  display: grid;
  grid-template-columns: minmax(0, 1fr) auto minmax(0, 0.8fr) auto minmax(0, 1fr);
  gap: 0.75rem;
  align-items: stretch;
}
.card {
  border: 1px solid var(--st-border-color);
  border-radius: calc(var(--st-base-radius) * 1.4);
  padding: 0.6rem 0.8rem;
  min-width: 0;
}
.card.model {
  background: var(--st-secondary-background-color);
  border-color: transparent;
  display: flex;
  flex-direction: column;
  gap: 0.1rem;
}
.title { font-size: 0.8125rem; color: var(--st-gray-text-color); margin-bottom: 0.25rem; }
.arrow { align-self: center; color: var(--st-gray-text-color); font-size: 1.1rem; }
.slot + .slot { border-top: 1px solid var(--st-border-color); margin-top: 0.35rem; padding-top: 0.35rem; }
.head { display: flex; align-items: center; justify-content: space-between; gap: 0.5rem; }
.name, .shape { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.name { font-weight: 600; }
.kind { display: flex; gap: 0.6rem; align-items: baseline; min-width: 0; }
.dtype { color: var(--st-gray-text-color); font-family: var(--st-code-font); font-size: 0.8125rem; }
.times { color: var(--st-gray-text-color); }
.dynamic { color: var(--st-primary-color); font-style: italic; }
.all { align-self: flex-start; margin: auto 0 0 -0.3rem; font-family: var(--st-font); }
@media (max-width: 760px) {
  .root { grid-template-columns: 1fr; }
  .arrow { transform: rotate(90deg); justify-self: center; }
}
"""
)

_SIGNATURE: Final = component("modelglass_signature", js=_JS, css=_CSS)


def signature(
    inputs: Sequence[Slot], outputs: Sequence[Slot], *, title: str, name: str, facts: Sequence[str], key: str
) -> None:
    """Draw the three cards; ``facts`` are short lines under the model's name."""
    _SIGNATURE(
        key=key,
        data={
            "inputs": [_row(slot) for slot in inputs[:_SHOWN]],
            "outputs": [_row(slot) for slot in outputs[:_SHOWN]],
            "hiddenInputs": max(0, len(inputs) - _SHOWN),
            "hiddenOutputs": max(0, len(outputs) - _SHOWN),
            "model": {"title": title, "name": shorten(name), "facts": [shorten(fact) for fact in facts]},
            "copied": signature_text(inputs, outputs)[:_COPIED],
        },
    )


def signature_text(inputs: Sequence[Slot], outputs: Sequence[Slot]) -> str:
    """The signature as lines to paste: ``input tokens: int64[batch, 128]``."""
    lines = [f"input {line(slot)}" for slot in inputs] + [f"output {line(slot)}" for slot in outputs]
    return "\n".join(lines)


def line(slot: Slot) -> str:
    """One tensor as text to paste: ``tokens: int64[batch, 128]``."""
    if slot.shape is None:
        return f"{slot.name}: {slot.dtype}"
    return f"{slot.name}: {slot.dtype}[{', '.join('?' if dim is None else str(dim) for dim in slot.shape)}]"


def _row(slot: Slot) -> dict[str, Any]:
    dims = [
        {"text": "?" if dim is None else shorten(str(dim), 40), "dynamic": not isinstance(dim, int)}
        for dim in slot.shape or ()
    ]
    if not slot.shape:
        dims = [{"text": format_text.shape(slot.shape), "dynamic": slot.shape is None}]
    return {
        "name": shorten(slot.name, 200),
        "dtype": shorten(slot.dtype, 60),
        "dims": dims,
        "copied": line(slot)[:_COPIED],
    }
