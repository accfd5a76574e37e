"""Predicted sizes against real ones, and cuts by hand calculation."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from core.limits import GIB, MIB
from core.opening import open_model
from core.trace.types import RunLimits
from tests.corpus import fetch
from tests.worker.running import all_outputs, default_inputs, save
from worker import slices
from worker.runtime_model import RuntimeModel

FLOAT = TensorProto.FLOAT


def chain(path: Path, count: int = 4) -> Path:
    names = ["x", *(f"v{i}" for i in range(count))]
    nodes = [helper.make_node("Neg", [a], [b]) for a, b in itertools.pairwise(names)]
    return save(path, nodes, [("x", FLOAT, ["n"])], [(names[-1], FLOAT, ["n"])])


def test_the_budget_is_a_quarter_of_memory_and_at_most_256_mib() -> None:
    assert slices.budget(RunLimits()) == 256 * MIB
    assert slices.budget(RunLimits(memory=GIB // 2)) == 128 * MIB
    assert slices.budget(RunLimits(capture=MIB)) == MIB


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["magika", "rapidocr_det", "rapidocr_cls"])
def test_predictions_are_right_where_there_are_any(name: str) -> None:
    path = fetch(name)
    model = open_model(path)
    inputs = default_inputs(model)
    sizes = slices.predict(RuntimeModel(model).proto, {name: array.shape for name, array in inputs.items()})
    real = {key: array.nbytes for key, array in all_outputs(path, inputs).items()}
    assert {key: size for key, size in sizes.items() if key in real} == {k: v for k, v in real.items() if k in sizes}
    assert len(sizes.keys() & real.keys()) > 0.9 * len(real)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (4000, [(0, 1, 2, 3)]),
        (1600, [(0, 1, 2, 3)]),
        (1599, [(0, 1, 2), (3,)]),
        (800, [(0, 1), (2, 3)]),
        (1, [(0,), (1,), (2,), (3,)]),
    ],
)
def test_neighbours_stay_together_while_they_fit(most: int, expected: list[tuple[int, ...]], tmp_path: Path) -> None:
    runtime = RuntimeModel(open_model(chain(tmp_path / "m.onnx")))
    sizes = slices.predict(runtime.proto, {"x": (100,)})
    assert sizes == dict.fromkeys(("x", "v0", "v1", "v2", "v3"), 400)
    assert slices.cut(runtime, runtime.order, sizes, most) == expected


def test_an_unknown_size_counts_as_the_largest_input(tmp_path: Path) -> None:
    runtime = RuntimeModel(open_model(chain(tmp_path / "m.onnx")))
    assert slices.cut(runtime, runtime.order, {"x": 400}, 800) == [(0, 1), (2, 3)]


def test_a_value_taken_inside_a_subgraph_lives_until_then(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info
    branch = helper.make_graph([helper.make_node("Exp", ["a"], ["e"])], "b", [], [info("e", FLOAT, None)])
    other = helper.make_graph([helper.make_node("Identity", ["b"], ["o"])], "c", [], [info("o", FLOAT, None)])
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Abs", ["x"], ["b"]),
        helper.make_node("Neg", ["b"], ["c"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=other),
    ]
    yes = numpy_helper.from_array(np.array(True), "yes")
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [2])], [("y", FLOAT, None)], [yes])
    runtime = RuntimeModel(open_model(path))
    assert set(runtime.needs[3]) == {"yes", "a", "b"}
    last = slices.last_uses(runtime, ())
    assert {name: last[name] for name in "xabcy"} == {"x": 1, "a": 3, "b": 3, "c": 2, "y": 3}
