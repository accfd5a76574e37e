from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import onnx
import pytest

from core.ir import Model
from core.opening import open_model
from core.structure.detectors.table import layers
from core.structure.modes import MODES, Mode, region_tree
from core.structure.repeats import repeated
from core.structure.separators import segments
from core.structure.view import graph_view
from core.structure.wiring import wiring
from tests.corpus import fetch
from tests.structure import nets
from tests.structure.graphs import chain, graph_of, model_of


def counts(model: Model, mode: Mode = "auto") -> Counter[str]:
    graph = model.main_graph
    assert graph is not None
    return Counter(region.detector for region in region_tree(model, graph, mode).regions)


def labels(model: Model, mode: Mode = "auto") -> Counter[str]:
    graph = model.main_graph
    assert graph is not None
    return Counter(region.label for region in region_tree(model, graph, mode).regions)


def check_tree(model: Model, mode: Mode) -> None:
    """Regions nest, ids are distinct, members and homes agree."""
    for graph in model.graphs:
        tree = region_tree(model, graph, mode)
        assert len(tree.index) == len(tree.regions)
        for region in tree.regions:
            assert len(region.members) > 1
            assert region.evidence
            assert 0 < region.confidence <= 1
            if region.parent >= 0:
                assert set(region.members.tolist()) < set(tree.regions[region.parent].members.tolist())
        for node, home in enumerate(tree.home.tolist()):
            inside = [number for number, region in enumerate(tree.regions) if node in set(region.members.tolist())]
            assert (max(inside, key=lambda n: -len(tree.regions[n].members)) if inside else -1) == home


# --- networks made here, without names ---------------------------------------------------


def test_minilm_like_has_six_of_six() -> None:
    model = nets.bert(6)
    found = counts(model)
    assert (found["attention"], found["feed-forward"], found["embedding"]) == (6, 6, 1)
    assert found["norm"] == 13  # one after the embedding, two in each layer
    assert labels(model)["6 × transformer block"] == 1
    [run] = repeated(wiring(model, model.graphs[0]))
    assert len(run.blocks) == 6
    assert run.same_shapes


def test_scopes_and_patterns_come_together() -> None:
    model = nets.bert(6, scoped=True)
    found = labels(model)
    assert found["layer.0 … layer.5 (6×)"] + found["encoder (layer.0 … layer.5 (6×))"] == 1
    assert counts(model)["attention"] == 6
    view = graph_view(model, level="block")
    assert [n.label for n in view.nodes if n.label.startswith("layer.")] == [f"layer.{i}" for i in range(6)]


def test_a_vision_transformer() -> None:
    model = nets.vit(4)
    found = counts(model)
    assert (found["attention"], found["feed-forward"], found["norm"], found["residual"]) == (4, 4, 9, 8)
    assert labels(model)["4 × transformer block"] == 1


def test_a_decoder_with_cache_rotary_and_gate() -> None:
    model = nets.llama(3)
    found = counts(model)
    assert (found["attention"], found["norm"]) == (3, 7)
    assert labels(model)["gated feed-forward"] == 3
    assert labels(model)["RMS norm"] == 7


def test_a_residual_network() -> None:
    model = nets.resnet(4)
    found = counts(model, "patterns")
    assert found["convolution"] == 10  # the stem, two in each of four blocks, one on the skip
    assert found["pooling"] == found["head"] == 1
    assert found["attention"] == found["feed-forward"] == 0
    assert counts(model)["residual"] + sum(labels(model)[f"convolution block {i}"] for i in (1, 2, 3)) >= 4


def test_fused_attention() -> None:
    found = counts(nets.fused(2))
    assert (found["attention"], found["feed-forward"]) == (2, 2)


def test_a_softmax_at_the_end_is_no_attention() -> None:
    rows = [("MatMul", "", ["x", "w"], ["a"]), ("Softmax", "", ["a"], ["p"]), ("MatMul", "", ["p", "v"], ["y"])]
    model = model_of(graph_of(rows, outputs=["y"], weights=["w", "v"]))
    assert counts(model)["attention"] == 0


def test_evidence_is_in_words() -> None:
    model = nets.bert(1)
    [attention] = [f for f in layers(wiring(model, model.graphs[0])) if f.detector == "attention"]
    assert attention.evidence == (
        "Softmax between two matrix products of computed values, scaled by Div, masked by Add; "
        "queries, keys and values come from 3 projections of one value, then an output projection."
    )


# --- real models -------------------------------------------------------------------------

REAL = {
    # counted in the files: Softmax between two MatMul; ReduceMean-Pow-ReduceMean-Sqrt; GlobalAveragePool gates
    "rapidocr_rec": {"attention": 2, "feed-forward": 2, "norm": 5, "gating": 2, "head": 1},
    "rapidocr_det": {"attention": 0, "gating": 10, "head": 1},
    "rapidocr_cls": {"attention": 0, "gating": 9, "head": 1, "pooling": 1},
    "magika": {"attention": 0, "norm": 2, "pooling": 1},
    "silero_vad_16k_op15": {"attention": 0, "convolution": 4, "head": 1},
}


def renamed(path: Path, folder: Path) -> Path:
    """The same model with a random name for everything and no metadata."""
    model, rng = onnx.load(path), random.Random(11)
    names: dict[str, str] = {"": ""}

    def new(name: str) -> str:
        return names.setdefault(name, f"{rng.getrandbits(60):x}")

    def change(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            node.name = f"{rng.getrandbits(60):x}"
            node.doc_string = ""
            del node.metadata_props[:]
            node.input[:] = [new(name) for name in node.input]
            node.output[:] = [new(name) for name in node.output]
            for attribute in node.attribute:
                for inner in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
                    change(inner)
        for entry in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            entry.name = new(entry.name)

    change(model.graph)
    onnx.save(model, folder / "renamed.onnx")
    return folder / "renamed.onnx"


@pytest.mark.corpus
@pytest.mark.parametrize("name", REAL)
def test_regions_of_real_models_with_and_without_names(name: str, tmp_path: Path) -> None:
    for path in (fetch(name), renamed(fetch(name), tmp_path)):
        model = open_model(path)
        graph = model.main_graph
        assert graph is not None
        found = Counter(group.detector for group in layers(wiring(model, graph)))
        assert {key: found[key] for key in REAL[name]} == REAL[name]
        kept = counts(model, "patterns")
        assert kept["attention"] == REAL[name]["attention"] == counts(model)["attention"]


@pytest.mark.corpus
def test_ppocr_rec_shows_its_two_transformer_blocks(tmp_path: Path) -> None:
    model = open_model(renamed(fetch("rapidocr_rec"), tmp_path))
    view = graph_view(model, level="architecture")
    assert "2 × transformer block" in [node.label for node in view.nodes]
    assert len(view.nodes) < 25
    assert len(graph_view(model, level="layer").nodes) < 80  # of 440 operators


@pytest.mark.corpus
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("mode", MODES)
def test_trees_of_real_models_nest(name: str, mode: Mode) -> None:
    check_tree(open_model(fetch(name)), mode)


@pytest.mark.parametrize("mode", MODES)
def test_trees_of_odd_graphs_nest(mode: Mode) -> None:
    odd = [
        graph_of([("MatMul", "", ["q", "w"], ["p"]), ("Softmax", "", ["p"], ["q"])], weights=["w"]),
        graph_of([("Sqrt", "", ["p"], ["p"]), ("Add", "", ["p", "p"], ["p"])]),
        graph_of([("Softmax", "", [], []), ("MatMul", "", [], ["a"]), ("Conv", "", ["x"], []), ("Gather", "", [], [])]),
        graph_of(
            [("Softmax", "", ["nowhere"], ["a"]), ("MatMul", "", ["a", "a"], ["b"]), ("Div", "", ["b", "a"], ["c"])]
        ),
        graph_of([]),
        chain(50),
    ]
    for graph in odd:
        check_tree(model_of(graph), mode)


# --- structure without patterns ----------------------------------------------------------


def test_segments_are_cut_where_one_value_carries_everything() -> None:
    rows = [
        ("A", "", ["x"], ["a"]), ("B", "", ["a"], ["b"]), ("C", "", ["a"], ["c"]), ("D", "", ["c"], ["d"]),
        ("E", "", ["b", "d"], ["e"]), ("F", "", ["e"], ["y"]),
    ]  # fmt: skip
    model = model_of(graph_of(rows, outputs=["y"]))
    parts = segments(wiring(model, model.graphs[0]))
    assert [part.nodes for part in parts] == [(0,), (1, 2, 3), (4,), (5,)]
    assert parts[1].branches == ((1,), (2, 3))
    tree = region_tree(model, model.graphs[0], "structural")
    assert [(r.label, r.members.tolist()) for r in tree.regions] == [("2 branches", [1, 2, 3]), ("chain of 2", [4, 5])]


def test_repeats_need_no_names_and_find_their_border() -> None:
    n = nets.Net()
    x = n.op("Relu", n.op("Conv", n.input(1, 8, 8, 8), n.w(8, 8, 3, 3)))
    for _ in range(5):
        x = n.op(
            "Add", x, n.op("Tanh", n.op("Conv", n.op("Sigmoid", n.op("Conv", x, n.w(8, 8, 1, 1))), n.w(8, 8, 3, 3)))
        )
    model = n.done(n.op("Softmax", x))
    [run] = repeated(wiring(model, model.graphs[0]))
    assert [len(block) for block in run.blocks] == [5] * 5
    assert run.blocks[0] == (2, 3, 4, 5, 6)
    assert run.same_shapes


def test_10_000_operators_get_regions_and_a_first_level() -> None:
    model = nets.bert(210, width=8)  # 51 or more operators a layer
    assert model.node_count > 10_000
    view = graph_view(model, level="architecture")
    assert len(view.nodes) <= 150
    assert counts(model)["attention"] == 210


def test_constants_of_a_module_do_not_keep_a_layer_apart() -> None:
    rows = [
        ("Mul", "", ["w", "w"], ["s"]), ("MatMul", "", ["x", "w"], ["a"]), ("Relu", "", ["a"], ["b"]),
        ("MatMul", "", ["b", "w"], ["c"]), ("Add", "", ["c", "w"], ["d"]), ("Mul", "", ["d", "s"], ["y"]),
        ("Neg", "", ["y"], ["z"]),
    ]  # fmt: skip
    scopes = ["net/m/up", "net/m/up", "net/m", "net/m/down", "net/m/down", "net", "net"]
    model = model_of(graph_of(rows, outputs=["z"], weights=["w"], scopes=scopes))
    assert counts(model)["feed-forward"] == 1
