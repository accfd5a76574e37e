"""The order in which values are kept, on graphs small enough to rank by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node

from core.ir import Model
from core.opening import open_model
from core.trace.capture import plan, thinned
from tests.corpus import fetch
from tests.worker.running import save


@pytest.fixture
def blocks(tmp_path: Path) -> Model:
    """Three equal blocks in a row, each MatMul, Add, Relu: x -> r0 -> r1 -> r2 = y."""
    nodes, stored, before = [], [], "x"
    for n in range(3):
        after = "y" if n == 2 else f"r{n}"
        nodes += [
            make_node("MatMul", [before, f"w{n}"], [f"m{n}"], name=f"/block.{n}/mm"),
            make_node("Add", [f"m{n}", f"b{n}"], [f"a{n}"], name=f"/block.{n}/add"),
            make_node("Relu", [f"a{n}"], [after], name=f"/block.{n}/relu"),
        ]
        stored += [
            numpy_helper.from_array(np.eye(4, dtype=np.float32), f"w{n}"),
            numpy_helper.from_array(np.ones(4, np.float32), f"b{n}"),
        ]
        before = after
    path = tmp_path / "blocks.onnx"
    save(path, nodes, [("x", TensorProto.FLOAT, [1, 4])], [("y", TensorProto.FLOAT, [1, 4])], stored)
    return open_model(path)


def test_selection_outputs_and_borders_come_before_the_rest(blocks: Model) -> None:
    graph = blocks.graphs[0]
    names = {f"g0.v{i}": graph.value(i).name for i in range(graph.value_count)}
    ranked = [(names[wish.value], wish.rank) for wish in plan(blocks, [f"g0.v{graph.value_index['m1']}"])]
    assert ranked == [
        ("m1", 0), ("y", 1), ("r0", 2), ("r1", 2), ("x", 3), ("m0", 3), ("a0", 3), ("a1", 3), ("m2", 3), ("a2", 3),
    ]  # fmt: skip


def test_a_chosen_operator_stands_for_what_it_takes_and_makes(blocks: Model) -> None:
    graph = blocks.graphs[0]
    top = [graph.value(int(wish.value[4:])).name for wish in plan(blocks, ["g0.n1", "g0.v999", "nonsense"])][:2]
    assert top == ["m0", "a0"]


@pytest.mark.corpus
def test_a_real_model_keeps_every_value_once() -> None:
    model = open_model(fetch("rapidocr_det"))
    wishes = plan(model)
    assert len({wish.value for wish in wishes}) == len(wishes)
    counts = [sum(wish.rank == rank for wish in wishes) for rank in range(4)]
    assert counts[1] == 1
    assert 0 < counts[2] < counts[3]
    model.close()


@given(some.lists(some.integers(1, 200), max_size=4), some.integers(1, 1000))
def test_thinning_fits_and_wastes_at_most_half(shape: list[int], most: int) -> None:
    steps = thinned(tuple(shape), most)
    kept = int(np.prod([-(-size // step) for size, step in zip(shape, steps, strict=True)]))
    assert kept <= most
    if int(np.prod(shape)) > most:
        assert kept >= most / 3  # halving a length rounds up: 3 becomes 2
    else:
        assert set(steps) <= {1}
