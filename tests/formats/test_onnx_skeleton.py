"""The file without payloads parses to the same model once its payloads are put back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from core.errors import BrokenFile
from core.formats.onnx_skeleton import LARGE, skeleton
from core.source import Source
from tests.corpus import fetch

MARK = "itself"


def put_back(model: onnx.ModelProto, data: bytes) -> int:
    """Fill external data again from the file; how many tensors that were."""
    count = 0
    pending: list[onnx.GraphProto] = [model.graph]
    while pending:
        graph = pending.pop()
        tensors = list(graph.initializer)
        for node in graph.node:
            for attribute in node.attribute:
                tensors += [*attribute.tensors, *([attribute.t] if attribute.HasField("t") else [])]
                pending += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
        for tensor in tensors:
            entries = {entry.key: entry.value for entry in tensor.external_data}
            if entries.get("location") == MARK:
                start = int(entries["offset"])
                raw = data[start : start + int(entries["length"])]
                assert len(raw) >= LARGE
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
                tensor.raw_data = raw
                count += 1
    return count


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["magika", "silero_vad", "rapidocr_det", "rapidocr_rec"])
def test_real_files(name: str) -> None:
    path = fetch(name)
    data = path.read_bytes()
    small = skeleton(Source(path), MARK)
    model = onnx.ModelProto.FromString(small)
    assert put_back(model, data) >= 3
    assert model.SerializeToString(deterministic=True) == onnx.load(path).SerializeToString(deterministic=True)
    assert len(small) < len(data) / 10


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.sampled_from([0, 1, LARGE // 4 - 1, LARGE // 4, LARGE]), max_size=4),
    typed=st.booleans(),
    constant=st.booleans(),
)
def test_any_mix_of_sizes(sizes: list[int], typed: bool, constant: bool, tmp_path: Path) -> None:
    arrays = [np.arange(size, dtype=np.float32) for size in sizes]
    tensors = [
        helper.make_tensor(f"t{i}", TensorProto.FLOAT, [a.size], a.tolist())
        if typed
        else numpy_helper.from_array(a, f"t{i}")
        for i, a in enumerate(arrays)
    ]
    nodes = [helper.make_node("Constant", [], [f"c{i}"], value=t) for i, t in enumerate(tensors)] if constant else []
    graph = helper.make_graph(nodes, "g", [], [], [] if constant else tensors)
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    model = onnx.ModelProto.FromString(skeleton(Source(path), MARK))
    assert put_back(model, path.read_bytes()) == sum(size * 4 >= LARGE for size in sizes)
    found = [n.attribute[0].t for n in model.graph.node] if constant else list(model.graph.initializer)
    for tensor, array in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), array)


def test_a_truncated_file_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    tensor = numpy_helper.from_array(np.ones(LARGE, np.float32), "t")
    data = helper.make_model(helper.make_graph([], "g", [], [], [tensor])).SerializeToString()
    path.write_bytes(data[:-10])
    with pytest.raises(BrokenFile, match="a length leaves its message"):
        skeleton(Source(path), MARK)
