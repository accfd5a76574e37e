"""info, tensors, stats and graph against the onnx library and numpy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app.cli import main
from tests.corpus import fetch

SAMPLE = Path(__file__).parents[2] / "app" / "sample" / "sample.onnx"
REAL = ["magika", "silero_vad", "silero_vad_16k_op15", "rapidocr_det", "rapidocr_rec", "rapidocr_cls"]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    code = main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return json.loads(out)


def ports(values: Any) -> list[tuple[str, str, list[Any] | None]]:
    """Name, dtype and shape as the onnx library reads them; a negative size (PaddlePaddle's -1) says not known."""
    found = []
    for value in values:
        kind = value.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim]
        known = [None if isinstance(dim, int) and dim < 0 else dim for dim in dims]
        found.append((value.name, str(helper.tensor_dtype_to_np_dtype(kind.elem_type)), known))
    return found


def all_nodes(graph: onnx.GraphProto) -> int:
    inner = [a for node in graph.node for a in node.attribute]
    subgraphs = [a.g for a in inner if a.type == onnx.AttributeProto.GRAPH] + [g for a in inner for g in a.graphs]
    return len(graph.node) + sum(map(all_nodes, subgraphs))


@pytest.mark.corpus
@pytest.mark.parametrize("name", REAL)
def test_info_agrees_with_the_onnx_library(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = fetch(name)
    data, model = run(capsys, "info", path), onnx.load(path)
    initial = {tensor.name for tensor in model.graph.initializer}
    assert data["format"] == "onnx"
    assert data["size_bytes"] == path.stat().st_size
    assert data["nodes"] == all_nodes(model.graph)
    assert data["opsets"] == {o.domain or "ai.onnx": o.version for o in model.opset_import}
    assert data["metadata"] == {p.key: p.value for p in model.metadata_props}
    got = {side: [(p["name"], p["dtype"], p["shape"]) for p in data[side]] for side in ("inputs", "outputs")}
    assert got["inputs"] == ports(v for v in model.graph.input if v.name not in initial)
    assert got["outputs"] == ports(model.graph.output)
    assert data["capabilities"]["graph"] == {"available": "available", "reason": ""}
    assert all(each["reason"] for each in data["capabilities"].values() if each["available"] != "available")


def test_info_has_the_keys_that_stay_stable(capsys: pytest.CaptureFixture[str]) -> None:
    data = run(capsys, "info", SAMPLE)
    assert {"format", "kind", "size_bytes", "files", "producer", "opsets", "inputs", "outputs", "graphs", "nodes",
            "tensors", "parameters", "dtypes", "metadata", "capabilities", "findings"} <= set(data)  # fmt: skip
    assert set(data["inputs"][0]) >= {"name", "dtype", "shape", "quantization"}
    model = onnx.load(SAMPLE)
    sizes = [int(np.prod(t.dims)) for t in model.graph.initializer]
    assert data["tensors"] == len(sizes)
    assert data["parameters"] == sum(sizes)
    assert sum(each["tensors"] for each in data["dtypes"].values()) == len(sizes)
    assert data["producer"].startswith("modelglass sample")


def test_tensors_are_the_initializers_where_their_bytes_are(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["name"]: row for row in run(capsys, "tensors", SAMPLE)}
    raw = SAMPLE.read_bytes()
    for tensor in onnx.load(SAMPLE).graph.initializer:
        array, row = numpy_helper.to_array(tensor), rows[tensor.name]
        assert (row["dtype"], row["shape"], row["bytes"]) == (str(array.dtype), list(array.shape), array.nbytes)
        assert raw[row["start"] : row["stop"]] == array.tobytes()


def test_tensors_sorts_filters_and_measures(capsys: pytest.CaptureFixture[str]) -> None:
    arrays = {t.name: numpy_helper.to_array(t) for t in onnx.load(SAMPLE).graph.initializer}
    rows = run(capsys, "tensors", SAMPLE, "--where", "rank = 2 AND bytes > 16000", "--sort", "bytes", "--descending")
    wanted = [name for name, array in arrays.items() if array.ndim == 2 and array.nbytes > 16000]
    assert sorted(row["name"] for row in rows) == sorted(wanted)
    sizes = [row["bytes"] for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    top = run(capsys, "tensors", SAMPLE, "--stats", "--sort", "absmax", "--descending", "--limit", 1)[0]
    name = max(arrays, key=lambda each: float(np.abs(arrays[each]).max()))
    assert top["name"] == name
    assert top["stats"]["absmax"] == float(np.abs(arrays[name]).max())


@pytest.mark.parametrize("condition", ["bytes >", "1) ; DROP TABLE tensors; --", "nonsense = 1",
                                       "name IN (SELECT content FROM read_text('/etc/hostname'))"])  # fmt: skip
def test_a_condition_that_cannot_be_used_is_one_sentence(condition: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tensors", str(SAMPLE), "--where", condition]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"modelglass: error: {SAMPLE}: the condition ")
    assert err.count("\n") == 1


def test_stats_equal_numpy_in_double_precision(capsys: pytest.CaptureFixture[str]) -> None:
    name = "blocks.1.mlp.fc1.weight"
    array = next(numpy_helper.to_array(t) for t in onnx.load(SAMPLE).graph.initializer if t.name == name)
    data, wide = run(capsys, "stats", SAMPLE, name, "--axis", 1), array.astype(np.float64)
    assert data["count"] == array.size
    assert (data["min"], data["max"], data["absmax"]) == (wide.min(), wide.max(), np.abs(wide).max())
    assert data["zero"] == int((array == 0).sum())
    assert (data["nan"], data["inf"], data["exact"]) == (0, 0, True)
    assert np.isclose(data["mean"], wide.mean(), rtol=1e-12, atol=1e-15)
    assert np.isclose(data["std"], wide.std(), rtol=1e-12)
    assert np.isclose(data["l2"], np.linalg.norm(wide), rtol=1e-12)
    assert np.isclose(data["quantiles"]["0.25"], np.quantile(wide, 0.25), rtol=1e-6)
    assert sum(data["histogram"]["counts"]) == array.size
    assert len(data["channels"]) == array.shape[1]
    assert np.allclose([each["max"] for each in data["channels"]], wide.max(axis=0))


def test_a_tensor_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(SAMPLE), "nothing"]) == 2
    assert capsys.readouterr().err == (
        f"modelglass: error: {SAMPLE}: there is no tensor 'nothing'. See modelglass tensors FILE.\n"
    )
    assert main(["stats", str(SAMPLE), "#3", "--axis", "9"]) == 2
    assert "there is no axis 9" in capsys.readouterr().err


@pytest.mark.parametrize("level", ["architecture", "block", "layer", "operator"])
def test_graph_gives_nodes_and_edges_that_meet(level: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = run(capsys, "graph", SAMPLE, "--level", level)
    ids = {node["id"] for node in data["nodes"]}
    assert len(ids) == len(data["nodes"]) <= 150
    keys = {"id", "kind", "label", "op_type", "members", "confidence", "evidence", "detector"}
    assert all(keys <= set(node) for node in data["nodes"])
    assert {end for edge in data["edges"] for end in (edge["source"], edge["target"])} <= ids
    assert all(edge["values"] for edge in data["edges"])
    if level == "operator":
        operators = [node for node in data["nodes"] if node["kind"] == "operator"]
        assert len(operators) == len(onnx.load(SAMPLE).graph.node)


def test_graph_enters_a_region(capsys: pytest.CaptureFixture[str]) -> None:
    outside = run(capsys, "graph", SAMPLE, "--level", "block")
    region = next(node for node in outside["nodes"] if node["kind"] == "region" and "blocks.1" in node["label"])
    inside = run(capsys, "graph", SAMPLE, "--level", "operator", "--inside", region["id"])
    names = [node["label"] for node in inside["nodes"]]
    assert len([node for node in inside["nodes"] if node["kind"] == "operator"]) > 10, names
    assert main(["graph", str(SAMPLE), "--inside", "r999"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_text_of_a_file_cannot_move_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "a\x1b[2J\x9b31m\u202eb\nc"
    weight = helper.make_tensor(evil, TensorProto.FLOAT, [2], [1.0, 2.0])
    node = helper.make_node("Add", ["x", evil], ["y"], evil)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    model = helper.make_model(helper.make_graph([node], evil, [x], [y], [weight]), producer_name=evil)
    helper.set_model_props(model, {evil: evil})
    path = tmp_path / "evil.onnx"
    path.write_bytes(model.SerializeToString())
    for arguments in (["info"], ["tensors"], ["stats"], ["graph"], ["stats", "--axis", "0"]):
        tensor = ["#0"] if arguments[0] == "stats" else []
        for extra in ([], ["--json"]):
            assert main([arguments[0], str(path), *tensor, *arguments[1:], *extra]) == 0
            out = capsys.readouterr().out
            assert not set(out) & set("\x1b\x9b\u202e"), arguments
    assert main(["stats", str(path), "\x1b[2Jgone"]) == 2
    assert "\x1b" not in capsys.readouterr().err
