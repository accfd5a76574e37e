"""What the graph component is given: opaque ids, no titles, our places; and what may come back."""

from __future__ import annotations

import itertools
import json

import pytest

from app.components import graph_canvas
from app.components.layered import layered
from app.theme import LIGHT
from core.structure.view import Crumb, GraphView, ViewEdge, ViewNode

HOSTILE = "<img src=x onerror=alert(1)>"


def view(count: int = 3) -> GraphView:
    nodes = tuple(
        ViewNode(f"g0.n{i}", "operator", HOSTILE, HOSTILE, (f"g0.n{i}",), "matrix", name=HOSTILE) for i in range(count)
    )
    edges = tuple(ViewEdge(f"g0.n{i}", f"g0.n{i + 1}", (f"g0.v{i}",)) for i in range(count - 1))
    return GraphView(nodes, edges, (Crumb("g0", "m"),), "operator", "g0", folded=False)


def test_ids_are_opaque_and_nothing_is_a_title() -> None:
    data = graph_canvas.graph_data(view().nodes, view().edges, "", LIGHT)
    assert [node["id"] for node in data["nodes"]] == ["n0", "n1", "n2"]
    assert [(edge["from"], edge["to"]) for edge in data["edges"]] == [("n0", "n1"), ("n1", "n2")]
    assert "title" not in json.dumps(data)
    assert all(node["div"] == {"innerHTML": ""} for node in data["nodes"])


def test_labels_are_drawn_as_text() -> None:
    config = graph_canvas.graph_config(LIGHT, 100)
    assert config["nodes"]["font"]["multi"] is False
    assert config["physics"] == {"enabled": False}
    label = graph_canvas.graph_data(view().nodes, (), "", LIGHT)["nodes"][0]["label"]
    assert len(label) <= 16


def test_only_the_selected_box_and_its_lines_change() -> None:
    before = graph_canvas.graph_data(view().nodes, view().edges, "", LIGHT)
    after = graph_canvas.graph_data(view().nodes, view().edges, "g0.n0", LIGHT)
    assert [a == b for a, b in zip(before["nodes"], after["nodes"], strict=True)] == [False, True, True]
    assert [a == b for a, b in zip(before["edges"], after["edges"], strict=True)] == [False, True]
    assert graph_canvas.canvas_key(view(), "k") == graph_canvas.canvas_key(view(), "k")
    assert graph_canvas.canvas_key(view(), "k") != graph_canvas.canvas_key(view(4), "k")


@pytest.mark.parametrize("value", [None, "", "n3", "n-1", "n01x", "g0.n1", 1, {"n": 1}, "n99999999", ["n1"]])
def test_anything_but_a_box_of_this_canvas_is_ignored(value: object) -> None:
    assert graph_canvas.opaque_index(value, 3) is None


def test_a_box_of_this_canvas_comes_back() -> None:
    assert graph_canvas.opaque_index("n2", 3) == 2


CELL = {"box_width": 100, "layer_height": 50}


def test_edges_point_downwards_and_boxes_do_not_overlap() -> None:
    names = [f"n{i}" for i in range(12)]
    edges = [(f"n{i}", f"n{j}") for i in range(12) for j in (2 * i + 1, 2 * i + 2) if j < 12]
    layout = layered(names, edges, **CELL)
    assert layout.columns == 1
    for a, b in edges:
        assert layout.places[a][1] < layout.places[b][1]
    for y in {place[1] for place in layout.places.values()}:
        row = sorted(x for x, other in layout.places.values() if other == y)
        assert all(right - left >= 99 for left, right in itertools.pairwise(row))


def test_a_long_chain_is_cut_into_columns_that_fill_the_shape() -> None:
    names = [f"n{i}" for i in range(80)]
    layout = layered(names, list(itertools.pairwise(names)), **CELL)
    width = max(x for x, _ in layout.places.values()) - min(x for x, _ in layout.places.values()) + 100
    height = max(y for _, y in layout.places.values()) + 50
    assert layout.columns > 2
    assert 0.7 < width / height < 2.8
    assert len(set(layout.places.values())) == 80


def test_cycles_loops_and_unknown_ends_are_drawn_too() -> None:
    layout = layered(["a", "b"], [("a", "b"), ("b", "a"), ("a", "a"), ("a", "gone")], **CELL)
    assert layout.places["a"] != layout.places["b"]
    assert layered([], [], **CELL).places == {}


def test_an_edge_past_a_layer_gets_a_lane() -> None:
    layout = layered(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")], **CELL)
    side, span = layout.lane["a", "c"]
    assert side in (-1, 1)
    assert span == 2
    assert ("a", "b") not in layout.lane
