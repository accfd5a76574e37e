"""Values made again: the same bits as a run that stored everything, from as few nodes as needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from core.errors import NotFound
from core.opening import open_model
from core.run import load, process
from core.run.spool import Spool
from core.trace.types import RunLimits
from core.trace.values import load_value
from tests.corpus import fetch
from tests.run.test_process import finished
from tests.worker.running import all_outputs, default_inputs, same, save, trace
from tests.worker.test_inside import counting, within

FLOAT = TensorProto.FLOAT


@pytest.mark.corpus
def test_every_value_that_was_not_stored_comes_back_bit_for_bit(tmp_path: Path) -> None:
    path = fetch("rapidocr_cls")
    few = finished(path, tmp_path, RunLimits(store=200_000), latency=False)
    missing = [value for value in few.values if not value.stored]
    assert len(missing) > 50
    model = open_model(path)
    expected = all_outputs(path, default_inputs(model))
    model.close()
    for value in (missing[0], missing[len(missing) // 2], missing[-1]):
        assert same(load.again(few, value, "tester", tmp_path), expected[value.name])
    assert not [p for p in tmp_path.glob("run-*") if str(p) != few.spool]


def test_only_the_nodes_after_the_stored_ones_run(tmp_path: Path) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["a"])]
    nodes += [helper.make_node("Abs", [f"{a}"], [b]) for a, b in zip("abcd", "bcde", strict=True)]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [256])], [("e", FLOAT, [256])])
    x = np.arange(256, dtype=np.float32)
    first = trace(path, {"x": x}, tmp_path, RunLimits(store=3 * 1024), keep=["g0.v3"])  # c, the output, and x
    by_name = first.values
    assert [name for name, value in by_name.items() if value.stored] == ["x", "c", "e"]
    request, spool = load.request(first.result, by_name["d"], tmp_path)
    result = process.start(request, spool, process.approve(request, "tester")).wait(60)
    again = load.loaded(result, by_name["d"])
    assert [value.id for value in result.values] == [again.id] == [by_name["d"].id]
    assert load_value(result, again).tolist() == x.tolist()
    # had it not begun at the stored c, changed bytes there would not show
    stored = by_name["c"]
    with Path(first.result.spool, "values.bin").open("r+b") as file:
        file.seek(stored.start)
        file.write(np.full(256, -7, np.float32).tobytes())
    assert set(load.again(first.result, by_name["d"], "tester", tmp_path).tolist()) == {7.0}


def test_a_value_inside_a_loop_comes_back(tmp_path: Path) -> None:
    x = np.array([1, 2, 3], np.float32)
    path = counting(tmp_path / "m.onnx", None)
    whole = trace(path, {"x": x}, tmp_path).result
    none = trace(path, {"x": x}, tmp_path, RunLimits(store=0)).result
    value = within(none, "double")[2]
    assert not value.stored
    found = load.again(none, value, "tester", tmp_path)
    assert same(found, load_value(whole, within(whole, "double")[2]))


def test_what_was_not_made_cannot_be_loaded(tmp_path: Path) -> None:
    nodes = [helper.make_node("Wave", ["x"], ["w"], domain="com.acme"), helper.make_node("Neg", ["x"], ["y"])]
    path = save(
        tmp_path / "m.onnx", nodes, [("x", FLOAT, [2])], [("w", FLOAT, [2]), ("y", FLOAT, [2])],
        opsets=[helper.make_opsetid("com.acme", 1)],
    )  # fmt: skip
    traced = trace(path, {"x": np.ones(2, np.float32)}, tmp_path)
    with pytest.raises(NotFound, match="Wave"):
        load.request(traced.result, traced.values["w"], tmp_path)
    Spool(traced.result.spool).remove()
    with pytest.raises(load.RunError):
        load.request(traced.result, replace(traced.values["y"], start=-1, stop=-1), tmp_path)
