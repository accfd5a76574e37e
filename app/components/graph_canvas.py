"""The graph as streamlit-agraph draws it; nothing else touches that component.

It puts a node's ``title`` into ``innerHTML`` and opens it as a page on double-click, and its
``Node`` copies the id into an empty title. So it gets plain dictionaries of ours: opaque ids, no
title, an empty ``div`` (what its double-click looks into), and labels that vis.js draws as text
on a canvas (``font.multi`` off). Only the clicked node's number comes back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st
from streamlit_agraph import _agraph

from app.components.layered import Layout, layered
from app.plain_text import shorten
from app.theme import OTHER, Palette
from core.structure.categories import CATEGORIES
from core.structure.view import GraphView, ViewEdge, ViewNode

LEAST_HEIGHT: Final = 540
ABOVE: Final = 262
"""Pixels of the page above and below the canvas; it takes the rest of the window."""

_CSS: Final = f"""<style>
.st-key-graph-canvas-frame iframe {{ height: max({LEAST_HEIGHT}px, calc(100vh - {ABOVE}px)) !important; }}
div[height="{LEAST_HEIGHT + 64}px"] {{ min-height: max({LEAST_HEIGHT + 64}px, calc(100vh - {ABOVE - 64}px)); }}
</style>"""
MOST: Final = 150
"""Nodes it draws in good time: its cost grows with the square of their number."""

_CELL: Final = (172, 74)
_REGION_CELL: Final = (222, 104)
"""Width and height that a box takes, where operators alone are drawn and where regions are among them."""

_LABEL: Final = 16
_REGION_LABEL: Final = 28
_OPAQUE: Final = re.compile(r"n(\d{1,4})")
_HUES: Final[dict[str, int]] = {
    "convolution": 0, "matrix": 1, "attention": 3, "recurrent": 4, "normalisation": 5, "activation": 2,
    "pooling": 8, "elementwise": 6, "reduction": 7, "shape": OTHER, "constant": OTHER, "quantization": 4,
    "control flow": 7, "other": OTHER,
}  # fmt: skip


def graph_canvas(
    view: GraphView, *, selected: str, colours: Palette, key: str, on_select: Callable[[str], None]
) -> None:
    """Draw ``view``; a click on a box calls ``on_select`` with its id before the next run.

    The same ``key`` and the same boxes keep the viewport; a change of ``selected`` or of colours
    redraws single boxes only.
    """
    nodes = view.nodes[:MOST]
    name = canvas_key(view, key)

    def clicked() -> None:
        index = opaque_index(st.session_state.get(name), len(nodes))
        if index is not None:
            on_select(nodes[index].id)

    st.html(_CSS)
    with st.container(border=True, key="graph-canvas-frame"):
        _agraph(
            data=json.dumps(graph_data(nodes, view.edges, selected, colours)),
            config=json.dumps(graph_config(colours, _cell(nodes)[0])),
            key=name,
            default=None,
            on_change=clicked,
        )
        legend(nodes, colours)


def canvas_key(view: GraphView, key: str) -> str:
    """One key for one set of boxes: another place is another canvas, fitted anew."""
    boxes = hashlib.blake2b("\n".join(n.id for n in view.nodes[:MOST]).encode("utf-8", "replace"), digest_size=6)
    return f"{key}-{boxes.hexdigest()}"


def opaque_index(value: object, count: int) -> int | None:
    """The number of the clicked box; ``None`` for anything that this canvas cannot have sent."""
    match = _OPAQUE.fullmatch(value) if isinstance(value, str) else None
    index = int(match[1]) if match else count
    return index if index < count else None


def graph_data(
    nodes: Sequence[ViewNode], edges: Sequence[ViewEdge], selected: str, colours: Palette
) -> dict[str, list[dict[str, Any]]]:
    """What the component is given: boxes ``n0``, ``n1``, ... with places, and the lines between them."""
    opaque = {node.id: f"n{index}" for index, node in enumerate(nodes)}
    pairs = [(edge.source, edge.target) for edge in edges if edge.source in opaque and edge.target in opaque]
    width, height = _cell(nodes)
    layout = layered(list(opaque), pairs, box_width=width, layer_height=height)
    return {
        "nodes": [_box(node, opaque[node.id], layout.places[node.id], node.id == selected, colours) for node in nodes],
        "edges": [
            _line(number, edge, opaque, layout, selected in (edge.source, edge.target), colours)
            for number, edge in enumerate(edges)
            if edge.source in opaque and edge.target in opaque
        ],
    }


def graph_config(colours: Palette, width: int) -> dict[str, Any]:
    """Options of vis.js: places are ours, so no physics and no layout; zoom and drag stay."""
    return {
        "width": "100%",
        "height": f"max({LEAST_HEIGHT}px, 100vh)",  # vis.js only looks for "px" or "%"
        "physics": {"enabled": False},
        "layout": {"hierarchical": {"enabled": False}},
        "interaction": {
            "dragNodes": False,
            "hover": True,
            "multiselect": False,
            "selectConnectedEdges": False,
            "navigationButtons": False,
            "keyboard": False,
            "zoomSpeed": 0.6,
        },
        "nodes": {
            "shape": "box",
            "margin": {"top": 7, "bottom": 6, "left": 6, "right": 6},
            "widthConstraint": {"minimum": 110, "maximum": width - 6},
            "scaling": {"label": {"enabled": False, "drawThreshold": 4}},
            "font": {"multi": False, "size": 20, "face": "Inter, Source Sans Pro, sans-serif", "color": colours.text},
            "shapeProperties": {"borderRadius": 5},
        },
        "edges": {
            "arrows": {"to": {"enabled": True, "scaleFactor": 0.5}},
            "color": {"color": colours.muted, "highlight": colours.accent, "hover": colours.accent, "opacity": 0.65},
            "smooth": {"enabled": True, "type": "cubicBezier", "forceDirection": "vertical", "roundness": 0.4},
            "width": 1.2,
        },
    }


def legend(nodes: Sequence[ViewNode], colours: Palette) -> None:
    """A swatch and a name for every category on the canvas; names are ours, never the file's."""
    present = {node.category for node in nodes if node.kind in ("operator", "region")}
    shown = [category for category in CATEGORIES if category in present]
    swatches = [
        f"<span style='display:inline-flex;align-items:center;gap:.35rem'><span style='width:.7rem;height:.7rem;"
        f"border-radius:2px;background:{tint(c, colours)};border:1px solid {hue(c, colours)}'></span>{c}</span>"
        for c in shown
    ]
    st.html(
        f"<div style='display:flex;flex-wrap:wrap;gap:.15rem .9rem;font-size:.78rem;color:{colours.muted}'>"
        + "".join(swatches)
        + "</div>"
    )


def hue(category: str, colours: Palette) -> str:
    """The colour of a category."""
    return colours.categories[_HUES[category]]


def tint(category: str, colours: Palette, share: float = 0.22) -> str:
    """The colour of a category laid thinly over the surface, so that text on it reads."""
    return blend(hue(category, colours), colours.surface, share)


def blend(over: str, under: str, share: float) -> str:
    """``share`` of the colour ``over`` mixed with ``under``, both ``#rrggbb``."""
    pairs = [(int(over[i : i + 2], 16), int(under[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)


_OF_TENSORS: Final = ("tensor names", "file order")
"""What groups the boxes of a file that has weights and no operators."""


def label(node: ViewNode) -> str:
    """Plain text of one or two lines: the operator's type, a region's name and size, a value's name."""
    room = _REGION_LABEL if node.kind == "region" else _LABEL
    first = shorten(node.label or node.op_type or "unnamed", room)
    if node.kind == "region":
        unit = "tensor" if node.detector in _OF_TENSORS else "op"
        return f"{first}\n{node.count:,} {unit}{'' if node.count == 1 else 's'}"
    return first


def _cell(nodes: Sequence[ViewNode]) -> tuple[int, int]:
    return _REGION_CELL if any(node.kind == "region" for node in nodes) else _CELL


def _box(node: ViewNode, name: str, place: tuple[int, int], selected: bool, colours: Palette) -> dict[str, Any]:
    end = node.kind in ("input", "output")
    fill = colours.panel if end else tint(node.category, colours, 0.34 if selected else 0.2)
    edge = colours.accent if selected else colours.muted if end else hue(node.category, colours)
    chosen = {"background": fill, "border": colours.accent}
    return {
        "id": name,
        "label": label(node),
        "div": {"innerHTML": ""},
        "x": place[0],
        "y": place[1],
        "fixed": True,
        "borderWidth": 4 if selected else 2 if node.kind == "region" else 1,
        "borderWidthSelected": 4,
        "shapeProperties": {"borderRadius": 18 if end else 12 if node.kind == "region" else 4},
        "color": {"background": fill, "border": edge, "highlight": chosen, "hover": chosen},
        "font": {"color": colours.text},
    }


def _line(
    number: int, edge: ViewEdge, opaque: dict[str, str], layout: Layout, touched: bool, colours: Palette
) -> dict[str, Any]:
    line: dict[str, Any] = {
        "id": f"e{number}",
        "from": opaque[edge.source],
        "to": opaque[edge.target],
        "width": 2.4 if touched else 1.2 if len(edge.values) < 2 else 1.8,
        "color": {"color": colours.accent if touched else colours.muted, "opacity": 0.9 if touched else 0.6},
    }
    if (edge.source, edge.target) in layout.far and not touched:
        line["color"]["opacity"] = 0.25
    side, span = layout.lane.get((edge.source, edge.target), (0, 0))
    if side:
        line["smooth"] = {
            "enabled": True,
            "type": "curvedCW" if side < 0 else "curvedCCW",
            "roundness": round(min(0.5, 0.15 + 0.04 * span), 2),
        }
    return line
