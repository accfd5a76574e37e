from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from core.errors import NotFound
from core.ir import Graph, Model
from core.structure.focus import cone, focus_view, longest_path, neighbourhood, node_at, shortest_path
from core.structure.topology import topology
from tests.structure.graphs import chain, graph_of, model_of


def random_model(seed: int) -> tuple[Model, Graph, nx.DiGraph]:
    rng = np.random.default_rng(seed)
    count = 40
    rows = [("N", "", [f"v{j}" for j in range(i) if rng.random() < 0.06] or ["x"], [f"v{i}"]) for i in range(count)]
    graph = graph_of(rows)
    model = model_of(graph)
    flow = topology(model, graph)
    oracle = nx.DiGraph(zip(flow.source.tolist(), flow.target.tolist(), strict=True))
    oracle.add_nodes_from(range(count))
    return model, graph, oracle


@pytest.mark.parametrize("seed", range(8))
def test_cones_ways_and_neighbourhoods_equal_networkx(seed: int) -> None:
    model, graph, oracle = random_model(seed)
    for node in (0, 17, 39):
        assert set(cone(model, graph, [node], "up")) == nx.ancestors(oracle, node) | {node}
        assert set(cone(model, graph, [node], "down")) == nx.descendants(oracle, node) | {node}
        near = nx.single_source_shortest_path_length(oracle.to_undirected(), node, cutoff=2)
        assert set(neighbourhood(model, graph, [node], 2)) == set(near)
    assert len(longest_path(model, graph)) == nx.dag_longest_path_length(oracle) + 1
    for start, stop in ((0, 39), (39, 0), (3, 30)):
        way = shortest_path(model, graph, start, stop)
        along = [(a, b) for a, b in ((start, stop), (stop, start)) if nx.has_path(oracle, a, b)]
        assert bool(way) == bool(along)
        if way:
            assert len(way) == nx.shortest_path_length(oracle, *along[0]) + 1
            assert all(oracle.has_edge(a, b) or oracle.has_edge(b, a) for a, b in itertools.pairwise(way))


def test_cycles_end() -> None:
    graph = graph_of([("A", "", ["q"], ["p"]), ("B", "", ["p"], ["q"])])
    model = model_of(graph)
    assert cone(model, graph, [0], "down") == [0, 1]
    assert longest_path(model, graph) == [0, 1]


def test_a_focus_is_drawn_within_the_limit() -> None:
    graph = chain(1000)
    model = model_of(graph)
    view = focus_view(model, graph, neighbourhood(model, graph, [500], 3), "3 hops around Relu")
    assert [n.id for n in view.nodes if n.kind == "operator"] == [f"g0.n{i}" for i in range(497, 504)]
    assert [n.label for n in view.nodes if n.kind != "operator"] == ["v497", "v504"]
    whole = focus_view(model, graph, cone(model, graph, [999], "up"), "all before", limit=50)
    assert len(whole.nodes) <= 50
    assert whole.folded


def test_nodes_are_found_by_id() -> None:
    model = model_of(chain(3))
    assert node_at(model, "g0.n2")[1] == 2
    for wrong in ("g0.n3", "g1.n0", "n0", ""):
        with pytest.raises(NotFound):
            node_at(model, wrong)
