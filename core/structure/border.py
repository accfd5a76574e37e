"""Boxes for the values that enter and leave a place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.ir import Graph, Ints
from core.structure.picture import NodeKind, ViewEdge, ViewNode
from core.structure.topology import Topology


def border(
    graph: Graph, flow: Topology, box: Ints, shown: NDArray[np.bool_], ids: Sequence[str], most: int, whole: bool
) -> tuple[list[ViewNode], list[ViewEdge]]:
    """Inputs and outputs of what is drawn, at most ``most`` boxes each, and their lines.

    Args:
        box: number of the box a node lies in, -1 outside.
        ids: ids of the boxes.
        whole: whether the place is the whole graph, whose unused inputs are shown as well.
    """
    to, taken = _entering(flow, box, shown)
    c = graph.columns
    declared = [v for v in graph.inputs if v >= 0 and c.tensor[v] < 0] if whole else []
    entering = _in_order(declared, taken)
    by, made, final = _leaving(graph, flow, box, shown)
    leaving = _in_order(final, made)
    nodes_in, place_in = _boxes(graph, "input", entering, most)
    nodes_out, place_out = _boxes(graph, "output", leaving, most)
    names = list(ids)
    edges = _lines(graph, [(place_in[v], names[b], v) for b, v in _pairs(to, taken)])
    edges += _lines(graph, [(names[b], place_out[v], v) for b, v in _pairs(by, made)])
    edges += _lines(graph, [(place_in[v], place_out[v], v) for v in final if v in place_in and c.producer[v] < 0])
    return nodes_in + nodes_out, edges


def _pairs(boxes: Ints, values: Ints) -> list[tuple[int, int]]:
    return list(zip(boxes.tolist(), values.tolist(), strict=True))


def _entering(flow: Topology, box: Ints, shown: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Boxes and the values from outside that they take, constants that are left out not counted."""
    crossing = (box[flow.target] >= 0) & (box[flow.source] < 0) & shown[flow.source]
    free = box[flow.free_target] >= 0
    boxes = np.concatenate([box[flow.target[crossing]], box[flow.free_target[free]]])
    return boxes, np.concatenate([flow.value[crossing], flow.free_value[free]])


def _leaving(graph: Graph, flow: Topology, box: Ints, shown: NDArray[np.bool_]) -> tuple[Ints, Ints, list[int]]:
    """Boxes and the values they give away, and which of these are outputs of the graph."""
    c = graph.columns
    crossing = (box[flow.source] >= 0) & (box[flow.target] < 0) & shown[flow.target]
    final = [v for v in graph.outputs if v >= 0 and (c.producer[v] < 0 or box[c.producer[v]] >= 0)]
    made = np.array([v for v in final if c.producer[v] >= 0], np.int32)
    boxes = np.concatenate([box[flow.source[crossing]], box[c.producer[made]]])
    return boxes, np.concatenate([flow.value[crossing], made]), final


def _in_order(first: Sequence[int], rest: Ints) -> list[int]:
    """Each value once: the declared ones in their order, then the others as met."""
    return list(dict.fromkeys([*first, *rest.tolist()]))


def _boxes(graph: Graph, kind: NodeKind, values: Sequence[int], most: int) -> tuple[list[ViewNode], dict[int, str]]:
    side = "in" if kind == "input" else "out"
    c = graph.columns
    alone = values if len(values) <= most else values[: most - 1]
    nodes: list[ViewNode] = []
    places: dict[int, str] = {}
    for value in alone:
        places[value] = name = f"{side}.g{graph.index}.v{value}"
        nodes.append(ViewNode(name, kind, c.value_names[value], "", (), "other", evidence=_origin(graph, kind, value)))
    rest = values[len(alone) :]
    if rest:
        name = f"{side}.g{graph.index}.rest"
        places.update(dict.fromkeys(rest, name))
        nodes.append(ViewNode(name, kind, f"{len(rest):,} more {kind}s", "", (), "other"))
    return nodes, places


def _origin(graph: Graph, kind: NodeKind, value: int) -> str:
    c = graph.columns
    if kind == "output":
        return "Output of the graph." if c.flags[value] & 2 else "Used outside of this region."
    if c.flags[value] & 1:
        return "Input of the graph."
    if c.captured_graph[value] >= 0:
        return "Taken from the enclosing graph."
    return "Made outside of this region." if c.producer[value] >= 0 else "Nothing in the file makes this value."


def _lines(graph: Graph, rows: Sequence[tuple[str, str, int]]) -> list[ViewEdge]:
    bundles: dict[tuple[str, str], set[int]] = {}
    for source, target, value in rows:
        bundles.setdefault((source, target), set()).add(value)
    return [
        ViewEdge(source, target, tuple(f"g{graph.index}.v{v}" for v in sorted(values)))
        for (source, target), values in bundles.items()
    ]
