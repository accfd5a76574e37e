"""JavaScript and CSS that our small components share; texts go in as ``textContent``, never as HTML."""

from __future__ import annotations

from typing import Final

DOM_JS: Final = """
function el(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = text;
  return node;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {
    const area = el("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

const COPY = "M8 5h11a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2zm0 2v14h11V7H8z" +
  "M16 1H4a2 2 0 0 0-2 2v14h2V3h12V1z";
const DONE = "M9 16.2 4.8 12l-1.4 1.4L9 19 21 7l-1.4-1.4L9 16.2z";

function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
  shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}

function copyButton(shown, copied, what, className) {
  const button = el("button", "copy " + (className || ""));
  button.type = "button";
  button.title = "Copy " + what;
  button.setAttribute("aria-label", "Copy " + what);
  if (shown) button.append(el("span", "", shown));
  let mark = icon(COPY);
  button.append(mark);
  button.onclick = async () => {
    await copyText(copied);
    const done = icon(DONE);
    mark.replaceWith(done);
    mark = done;
    button.classList.add("done");
    setTimeout(() => {
      const again = icon(COPY);
      mark.replaceWith(again);
      mark = again;
      button.classList.remove("done");
    }, 1200);
  };
  return button;
}
"""

DOM_CSS: Final = """
:host, .root {
  font-family: var(--st-font);
  font-size: 0.875rem;
  line-height: 1.45;
  color: var(--st-text-color);
}
.mono { font-family: var(--st-code-font); font-size: 0.8125rem; }
.muted { color: var(--st-gray-text-color); }
.copy {
  display: inline-flex;
  align-items: center;
  gap: 0.3rem;
  padding: 0.05rem 0.3rem;
  border: 0;
  border-radius: var(--st-base-radius);
  background: none;
  color: var(--st-gray-text-color);
  font-family: var(--st-code-font);
  font-size: 0.8125rem;
  cursor: pointer;
}
.copy:hover, .copy:focus-visible { background: var(--st-secondary-background-color); color: var(--st-text-color); }
.copy:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.copy svg { width: 0.85rem; height: 0.85rem; fill: currentColor; flex: none; }
.copy.done { color: var(--st-primary-color); }
"""
