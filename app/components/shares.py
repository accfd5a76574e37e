"""A whole and its shares: one thin bar with a legend that says the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streamlit.components.v2 import component

from app.components.dom import DOM_CSS, DOM_JS
from app.plain_text import shorten

_JS: Final = (
    DOM_JS
    + """
export default function ({ data, parentElement }) {
  let root = parentElement.querySelector(".root");
  if (!root) {
    root = el("div", "root");
    parentElement.append(root);
  }
  const bar = el("div", "bar");
  const legend = el("div", "legend");
  data.shares.forEach((share) => {
    if (data.bar && share.amount > 0) {
      const piece = el("div", "piece");
      piece.style.flexGrow = String(share.amount);
      piece.style.background = share.colour;
      piece.title = share.label + " " + share.note;
      bar.append(piece);
    }
    const entry = el("span", "entry");
    const swatch = el("span", "swatch");
    swatch.style.background = share.colour;
    entry.append(swatch, el("span", data.mono ? "mono" : "", share.label), el("span", "muted", share.note));
    legend.append(entry);
  });
  root.replaceChildren(...(data.bar ? [bar, legend] : [legend]));
}
"""
)

_CSS: Final = (
    DOM_CSS
    + """
.bar { display: flex; gap: 2px; height: 0.5rem; border-radius: 0.25rem; overflow: hidden; margin-bottom: 0.4rem; }
.piece { min-width: 2px; flex-basis: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 0.1rem 1rem; font-size: 0.8125rem; }
.entry { display: inline-flex; align-items: center; gap: 0.35rem; white-space: nowrap; }
.swatch { width: 0.7rem; height: 0.7rem; border-radius: 2px; flex: none; }
"""
)

_SHARES: Final = component("modelglass_shares", js=_JS, css=_CSS)


@dataclass(frozen=True, slots=True)
class Share:
    """One share: its colour, what it is, how much, and that in words."""

    colour: str
    label: str
    amount: float = 0.0
    note: str = ""


def shares(items: Sequence[Share], *, key: str, bar: bool = True, mono: bool = False) -> None:
    """Draw the legend, above it the bar unless ``bar`` is off; ``mono`` for labels that are names."""
    rows = [
        {"colour": item.colour, "label": shorten(item.label, 60), "amount": item.amount, "note": shorten(item.note, 60)}
        for item in items
    ]
    _SHARES(key=key, data={"shares": rows, "bar": bar, "mono": mono})
