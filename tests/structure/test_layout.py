from __future__ import annotations

import itertools

import numpy as np
import pytest

from core.opening import open_model
from core.structure.layers import layered
from core.structure.layout import Box, Layout, layout, layout_view
from core.structure.ordering import crossings, untangle
from core.structure.topology import topology
from core.structure.view import graph_view
from tests.corpus import fetch
from tests.structure import nets


def through(line: tuple[tuple[float, float], ...], box: Box) -> bool:
    """Whether a line of points has a piece inside a box (Liang and Barsky's clipping)."""
    for (x0, y0), (x1, y1) in itertools.pairwise(line):
        low, high = 0.0, 1.0
        for p, q in (
            (x0 - x1, x0 - box.x), (x1 - x0, box.x + box.width - x0),
            (y0 - y1, y0 - box.y), (y1 - y0, box.y + box.height - y0),
        ):  # fmt: skip
            if p == 0:
                if q <= 1e-6:
                    break
            elif p < 0:
                low = max(low, q / p)
            else:
                high = min(high, q / p)
        else:
            if high - low > 1e-6:
                return True
    return False


def check(result: Layout, edges: list[tuple[int, int]]) -> None:
    """No line through a box of others, no two boxes over each other, lines end at their boxes."""
    for (a, b), line in zip(edges, result.lines, strict=True):
        if a == b:
            continue
        for number, box in enumerate(result.boxes):
            if number not in (a, b):
                assert not through(line, box), (a, b, number)
        for end, number in ((line[0], a), (line[-1], b)):
            box = result.boxes[number]
            assert box.x <= end[0] <= box.x + box.width
            assert end[1] in (pytest.approx(box.y), pytest.approx(box.y + box.height))
    for one, other in itertools.combinations(result.boxes if len(result.boxes) < 300 else result.boxes[::5], 2):
        across = other.x >= one.x + one.width or one.x >= other.x + other.width
        assert across or other.y >= one.y + one.height or one.y >= other.y + other.height
        assert min(one.x, other.y) > -1e-9


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["magika", "rapidocr_det", "rapidocr_rec", "rapidocr_cls", "silero_vad_16k_op15"])
@pytest.mark.parametrize("level", ["architecture", "block", "layer", "operator"])
def test_no_line_runs_through_a_box_of_a_real_model(name: str, level: str) -> None:
    view = graph_view(open_model(fetch(name)), level=level)
    places = {node.id: number for number, node in enumerate(view.nodes)}
    check(layout_view(view), [(places[e.source], places[e.target]) for e in view.edges])


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["magika", "rapidocr_det", "rapidocr_rec", "rapidocr_cls", "silero_vad_16k_op15"])
def test_no_line_runs_through_a_box_of_all_operators_in_columns(name: str) -> None:
    view = graph_view(open_model(fetch(name)), level="operator", limit=10_000)
    places = {node.id: number for number, node in enumerate(view.nodes)}
    result = layout_view(view, aspect=1.5)
    check(result, [(places[e.source], places[e.target]) for e in view.edges])
    tall = layout_view(view)
    assert result.height < tall.height / 2
    assert 0.5 < result.width / result.height / 1.5 < 2


@pytest.mark.parametrize("seed", range(12))
def test_columns_of_a_deep_random_graph(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(60, 240))
    edges = [(i, i + 1) for i in range(count - 1)]
    edges += [(int(a), int(b)) for a, b in rng.integers(0, count, (int(rng.integers(1, 40)), 2))]  # cycles too
    sizes = [(float(w), 32.0) for w in rng.uniform(30, 260, count)]
    result = layout(sizes, edges, aspect=float(rng.uniform(0.5, 3)))
    assert len({round(box.y) for box in result.boxes}) < count / 2  # several columns side by side
    check(result, edges)


@pytest.mark.parametrize("seed", range(20))
def test_no_line_runs_through_a_box_of_a_random_graph(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 60))
    edges = [(int(a), int(b)) for a, b in rng.integers(0, count, (int(rng.integers(1, 120)), 2))]  # cycles too
    sizes = [
        (float(w), float(h)) for w, h in zip(rng.uniform(30, 260, count), rng.choice([32, 44], count), strict=True)
    ]
    check(layout(sizes, edges), edges)


def test_a_skip_goes_beside_the_blocks() -> None:
    edges = [(i, i + 1) for i in range(6)] + [(0, 6)]
    result = layout([(80.0, 32.0)] * 7, edges)
    assert [box.y for box in result.boxes] == sorted(box.y for box in result.boxes)
    check(result, edges)
    assert len({round(box.x) for box in result.boxes[1:6]}) == 1  # the blocks stay in one column


def test_lanes_take_over_where_long_lines_would_need_too_much() -> None:
    count = 200
    edges = [(i, i + 1) for i in range(count - 1)] + [(i, count - 1) for i in range(0, count - 50)]
    result = layout([(80.0, 32.0)] * count, edges)
    assert any(len(line) > 5 for line in result.lines[-60:])
    check(result, edges)
    check(layout([(80.0, 32.0)] * count, edges, aspect=1.0), edges)


def test_crossings_are_taken_away() -> None:
    edges = [(0, 5), (1, 4), (2, 3)]  # three lines that all cross in the given order
    shape = layered(6, edges)
    assert crossings(shape) == 3
    untangle(shape)
    assert crossings(shape) == 0


def test_crossings_are_counted_as_by_hand() -> None:
    rng = np.random.default_rng(5)
    pairs = sorted({(int(a), int(b) + 12) for a, b in rng.integers(0, 12, (60, 2))})
    shape = layered(24, pairs)
    assert len(shape.rows) == 2
    place = {v: i for row in shape.rows for i, v in enumerate(row)}
    by_hand = sum(
        (place[a] - place[c]) * (place[b] - place[d]) < 0 for i, (a, b) in enumerate(pairs) for c, d in pairs[:i]
    )
    assert crossings(shape) == by_hand


def test_the_same_structure_gives_the_same_layout() -> None:
    sizes, edges = [(80.0, 32.0)] * 3, [(0, 1), (0, 2)]
    assert layout(sizes, edges) is layout(list(sizes), list(edges))
    assert layout(sizes, edges).key != layout(sizes, [(0, 1), (1, 2)]).key


def test_nothing_and_one_are_laid_out() -> None:
    assert layout([], []).boxes == ()
    assert layout([(80.0, 32.0)], [(0, 0)]).lines == ((),)


def test_10_000_nodes_are_laid_out() -> None:
    edges = (
        [(i, i + 1) for i in range(9999)]
        + [(i, i + 7) for i in range(0, 9990, 5)]
        + [(0, i) for i in range(9, 9999, 40)]
    )
    result = layout([(90.0, 32.0)] * 10_000, edges)
    assert len(result.boxes) == 10_000


def test_long_graphs_do_not_drift_sideways() -> None:
    model = nets.bert(40)
    flow = topology(model, model.graphs[0])
    edges = sorted(set(zip(flow.source.tolist(), flow.target.tolist(), strict=True)))
    result = layout([(90.0, 32.0)] * model.node_count, edges)
    assert result.height > 50_000
    assert result.width < 2_000  # about twenty boxes side by side
