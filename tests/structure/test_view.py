from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from core.errors import NotFound, UsageError
from core.graph_builder import GraphBuilder
from core.ir import Tensor
from core.structure.categories import CATEGORIES, category
from core.structure.topology import topology
from core.structure.view import GraphView, graph_view
from tests.structure.graphs import chain, graph_of, model_of

# Two blocks of two layers, two operators each, then a loose head.
SCOPED = [
    ("MatMul", "/net/block.0/a/MatMul", ["x", "w"], ["t0"]),
    ("Add", "/net/block.0/a/Add", ["t0", "w"], ["t1"]),
    ("MatMul", "/net/block.0/b/MatMul", ["t1", "w"], ["t2"]),
    ("Add", "/net/block.0/b/Add", ["t2", "x"], ["t3"]),
    ("MatMul", "/net/block.1/a/MatMul", ["t3", "w"], ["t4"]),
    ("Add", "/net/block.1/a/Add", ["t4", "w"], ["t5"]),
    ("MatMul", "/net/block.1/b/MatMul", ["t5", "w"], ["t6"]),
    ("Add", "/net/block.1/b/Add", ["t6", "t3"], ["t7"]),
    ("Softmax", "/Softmax", ["t7"], ["y"]),
]


def scoped() -> object:
    return model_of(graph_of(SCOPED, outputs=["y"], weights=["w"]))


def labels(view: GraphView) -> list[str]:
    return [node.label for node in view.nodes]


def edges(view: GraphView) -> set[tuple[str, str]]:
    names = {node.id: node.label for node in view.nodes}
    return {(names[e.source], names[e.target]) for e in view.edges}


def test_levels_open_scopes_one_after_the_other() -> None:
    model = scoped()
    assert labels(graph_view(model, level="architecture", mode="scopes")) == ["net", "Softmax", "x", "y"]
    assert labels(graph_view(model, level="block", mode="scopes")) == ["block.0", "block.1", "Softmax", "x", "y"]
    assert labels(graph_view(model, level="layer", mode="scopes")) == ["a", "b", "a", "b", "Softmax", "x", "y"]
    assert [n.op_type for n in graph_view(model, level="operator", mode="scopes").nodes[:9]] == [r[0] for r in SCOPED]


def test_edges_between_regions_carry_the_values_that_cross() -> None:
    view = graph_view(scoped(), level="block", mode="scopes")
    assert edges(view) == {("x", "block.0"), ("block.0", "block.1"), ("block.1", "Softmax"), ("Softmax", "y")}
    names = {node.label: node.id for node in view.nodes}
    [between] = [e for e in view.edges if e.source == names["block.0"] and e.target == names["block.1"]]
    graph = scoped().graphs[0]
    assert [graph.value(int(v.split("v")[1])).name for v in between.values] == ["t3"]


def test_an_entered_region_shows_what_crosses_its_border() -> None:
    model = scoped()
    block = next(n for n in graph_view(model, level="block", mode="scopes").nodes if n.label == "block.1")
    inner = graph_view(model, inside=block.id, mode="scopes")
    assert [(n.kind, n.label) for n in inner.nodes] == [
        ("region", "a"), ("region", "b"), ("input", "t3"), ("output", "t7"),
    ]  # fmt: skip
    assert edges(inner) == {("t3", "a"), ("t3", "b"), ("a", "b"), ("b", "t7")}
    assert [crumb.label for crumb in inner.breadcrumbs] == ["toy.onnx", "net", "block.1"]
    assert [crumb.id for crumb in inner.breadcrumbs][-1] == block.id == inner.inside


def test_region_ids_are_plain_and_do_not_depend_on_the_session() -> None:
    first, second = (graph_view(scoped(), level="block", mode="scopes") for _ in range(2))
    ids = [node.id for node in first.nodes]
    assert ids == [node.id for node in second.nodes]
    assert all(re.fullmatch(r"[A-Za-z0-9.~-]+", i) for i in ids)


def test_scopes_from_metadata_win_over_names() -> None:
    rows = [("Relu", f"n{i}", [f"v{i}"], [f"v{i + 1}"]) for i in range(4)]
    graph = graph_of(rows, ["v0"], ["v4"], scopes=["/enc", "/enc/enc.l1", "/enc/enc.l1", "/dec"])
    view = graph_view(model_of(graph), level="architecture", mode="scopes")
    assert labels(view) == ["enc", "Relu", "v0", "v4"]  # a scope of one operator is that operator
    inner = graph_view(model_of(graph), inside=view.nodes[0].id, level="architecture", mode="scopes")
    assert labels(inner) == ["Relu", "l1", "v0", "v3"]


@pytest.mark.parametrize("length", [121, 1000, 20_000])
@pytest.mark.parametrize("limit", [8, 40, 150])
def test_never_more_nodes_than_the_limit_however_deep(length: int, limit: int) -> None:
    model = model_of(chain(length))
    view = graph_view(model, level="operator", limit=limit, mode="scopes")
    seen = 0
    while view.nodes[0].kind == "region":
        assert len(view.nodes) <= limit
        assert view.folded
        assert view.nodes[0].label.startswith("operators 1–")
        view = graph_view(model, level="operator", limit=limit, inside=view.nodes[0].id, mode="scopes")
        seen += 1
    assert len(view.nodes) <= limit
    assert [n.id for n in view.nodes if n.kind == "operator"][:3] == ["g0.n0", "g0.n1", "g0.n2"]
    assert seen >= (length > limit)


def test_slices_hold_every_operator_once() -> None:
    view = graph_view(model_of(chain(672)), level="operator", mode="scopes")
    slices = [node for node in view.nodes if node.kind == "region"]
    assert labels(view)[0] == "operators 1–120 of 672"
    assert sorted(m for node in slices for m in node.members) == sorted(f"g0.n{i}" for i in range(672))
    assert [e.source for e in view.edges if e.target == slices[3].id] == [slices[2].id]


def test_constants_are_left_out_and_counted() -> None:
    rows = [("Constant", "c", [], ["k"]), ("Add", "", ["x", "k"], ["y"])]
    model = model_of(graph_of(rows, outputs=["y"]))
    view = graph_view(model)
    assert (labels(view), view.hidden) == (["Add", "x", "y"], 1)
    assert labels(graph_view(model, hide_constants=False)) == ["Constant", "Add", "x", "y"]


def test_shape_arithmetic_is_left_out_on_demand() -> None:
    rows = [
        ("Shape", "", ["x"], ["s"]), ("Gather", "", ["s", "i"], ["d"]), ("Concat", "", ["d", "d"], ["t"]),
        ("Reshape", "", ["x", "t"], ["r"]), ("Gather", "", ["w", "r"], ["y"]),
    ]  # fmt: skip
    model = model_of(graph_of(rows, outputs=["y"], weights=["i", "w"]))
    assert labels(graph_view(model, hide_shapes=True, level="operator")) == ["Reshape", "Gather", "x", "y"]


def test_subgraphs_are_entered_and_captures_count_as_inputs() -> None:
    outer = GraphBuilder(0, "main", "outer")
    x, y, c = outer.value("x"), outer.value("y"), outer.value("c")
    outer.inputs += [c, x]
    hidden = outer.value("h")
    outer.node("Relu", "", [x], [hidden])
    node = outer.node("If", "choose", [c], [y])
    outer.outputs.append(y)
    inner = []
    for number, name in ((1, "then_branch"), (2, "else_branch")):
        b = GraphBuilder(number, "subgraph", name, (0, node, name))
        h, out = b.value("h"), b.value("out")
        b.capture(h, 0, hidden)
        b.node("Neg" if number == 1 else "Exp", "", [h], [out])
        b.outputs.append(out)
        outer.subgraph(node, number)
        inner.append(b.finish())
    model = model_of(outer.finish(), *inner)
    view = graph_view(model)
    assert ("Relu", "If") in edges(view)
    assert [n.enterable for n in view.nodes if n.label == "If"] == [True]
    both = graph_view(model, inside=f"g0.n{node}")
    assert labels(both)[:2] == ["then_branch", "else_branch"]
    other = graph_view(model, inside=both.nodes[1].id)
    assert labels(other) == ["Exp", "h", "out"]
    assert [crumb.label for crumb in other.breadcrumbs] == ["toy.onnx", "choose", "else_branch"]


def test_functions_are_entered_through_their_calls() -> None:
    main = graph_of([("Twice", "", ["x"], ["y"])], outputs=["y"])
    b = GraphBuilder(1, "function", "Twice")
    a, z = b.value("a"), b.value("z")
    b.inputs.append(a)
    b.node("Add", "", [a, a], [z])
    b.outputs.append(z)
    model = model_of(main, b.finish())
    assert [n.enterable for n in graph_view(model).nodes] == [True, False, False]
    assert labels(graph_view(model, inside="g0.n0")) == ["Add", "a", "z"]


@pytest.mark.parametrize(
    "rows",
    [
        [("A", "", ["q"], ["p"]), ("B", "", ["p"], ["q"])],  # a cycle
        [("A", "", ["p"], ["p"])],  # a node that feeds itself
        [("A", "", ["nowhere"], ["p"]), ("B", "", ["p", "gone"], [])],  # dangling inputs
        [("A", "", ["x"], ["p"]), ("B", "", ["x"], ["p"]), ("C", "", ["p"], ["y"])],  # made twice
        [("C", "", ["b"], ["y"]), ("B", "", ["a"], ["b"]), ("A", "", ["x"], ["a"])],  # last first
        [],
    ],
)  # fmt: skip
def test_damaged_graphs_are_drawn(rows: list[tuple[str, str, list[str], list[str]]]) -> None:
    view = graph_view(model_of(graph_of(rows, outputs=["y"])), level="operator")
    assert [n.label for n in view.nodes if n.kind == "operator"] == sorted(r[0] for r in rows)
    ids = {node.id for node in view.nodes}
    assert len(ids) == len(view.nodes)
    assert all({e.source, e.target} <= ids for e in view.edges)


def test_what_nothing_makes_is_said() -> None:
    view = graph_view(model_of(graph_of([("A", "", ["nowhere"], ["y"])], outputs=["y"])))
    assert [n.evidence for n in view.nodes if n.label == "nowhere"] == ["Nothing in the file makes this value."]


def test_many_inputs_are_taken_together() -> None:
    names = [f"past.{i}" for i in range(64)]
    view = graph_view(model_of(graph_of([("Concat", "", names, ["y"])], names, ["y"])))
    assert [n.label for n in view.nodes if n.kind == "input"][13:] == ["past.13", "50 more inputs"]


def test_unknown_places_and_levels_are_refused() -> None:
    model = scoped()
    for inside in ("r0.0123456789ab", "g7", "g0.n99", "g0.n0", "../etc", "g0~c1", "g0~x", "r0.", "g0" + "~c0-1" * 99):
        with pytest.raises(NotFound):
            graph_view(model, inside=inside)
    with pytest.raises(UsageError, match="no level"):
        graph_view(model, level="cellar")  # type: ignore[arg-type]


def test_order_equals_an_independent_topological_sort() -> None:
    nx: Any = import_module("networkx")
    rng = np.random.default_rng(3)
    for _ in range(20):
        count = 60
        place = rng.permutation(count)
        rows = [
            (
                "N",
                "",
                [f"v{j}" for j in range(count) if place[j] < place[i] and rng.random() < 0.08] or ["x"],
                [f"v{i}"],
            )
            for i in range(count)
        ]
        flow = topology(model_of(g := graph_of(rows)), g)
        oracle = nx.DiGraph(zip(flow.source.tolist(), flow.target.tolist(), strict=True))
        oracle.add_nodes_from(range(count))
        assert not flow.cyclic
        assert flow.order.tolist() == list(nx.lexicographical_topological_sort(oracle))


def test_a_graph_of_50_000_operators_is_folded() -> None:
    rows = [("Relu", f"/m/layer.{i // 50}/op{i % 50}/Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(50_000)]
    model = model_of(graph_of(rows, ["v0"], ["v50000"]))
    view = graph_view(model, mode="scopes")
    assert len(view.nodes) <= 150


def test_weights_alone_fold_repeated_layers() -> None:
    names = [f"model.layers.{i}.{part}" for i in range(12) for part in ("attn.q.weight", "mlp.up.weight")]
    names += ["model.embed.weight", "model.norm.weight", "model.norm.bias"]
    model = model_of(tensors=[Tensor(name, "float16", (4, 2), None) for name in names], path="w.safetensors")
    view = graph_view(model)
    assert labels(view) == ["layers", "embed", "norm"]
    assert view.nodes[0].count == 24
    inner = graph_view(model, inside=view.nodes[0].id)
    assert labels(inner) == ["0 … 11 (12×)"]
    layers = graph_view(model, inside=inner.nodes[0].id)
    assert labels(layers) == [str(i) for i in range(12)]
    last = graph_view(model, inside=layers.nodes[-1].id)
    assert labels(last) == ["attn", "mlp"]
    assert [c.label for c in last.breadcrumbs] == ["w.safetensors", "layers", "0 … 11 (12×)", "11"]


def test_weights_alone_keep_the_limit() -> None:
    tensors = [Tensor(f"t{i:04}", "float32", (1,), None) for i in range(5000)]
    model = model_of(tensors=tensors, path="flat.safetensors")
    view = graph_view(model)
    assert len(view.nodes) <= 150
    assert sum(node.count for node in view.nodes) == 5000
    assert labels(graph_view(model, inside=view.nodes[1].id, limit=150))[0] == "t0120"


def test_to_json_has_the_keys_of_the_graph_verb() -> None:
    data = graph_view(scoped(), level="block", mode="scopes").to_json()
    wanted = {"id", "kind", "label", "op_type", "members", "confidence", "evidence", "detector"}
    assert all(wanted <= node.keys() for node in data["nodes"])
    assert all(edge.keys() == {"source", "target", "values"} for edge in data["edges"])


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("Conv", "convolution"), ("MatMulNBits", "matrix"), ("GroupQueryAttention", "attention"), ("GRU", "recurrent"),
        ("SimplifiedLayerNormalization", "normalisation"), ("FastGelu", "activation"), ("GlobalAveragePool", "pooling"),
        ("Where", "elementwise"), ("ReduceL2", "reduction"), ("Unsqueeze", "shape"), ("Constant", "constant"),
        ("DynamicQuantizeLinear", "quantization"), ("Loop", "control flow"), ("MyCustomOp", "other"),
        ("FancyConv3000", "convolution"), ("aten.hard_swish", "activation"),
    ],
)  # fmt: skip
def test_categories(op: str, kind: str) -> None:
    assert category(op) == kind
    assert kind in CATEGORIES
