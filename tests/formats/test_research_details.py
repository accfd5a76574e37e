"""What each research format says beside its tensors: graphs, scopes, metadata, architecture, sharing."""

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors.numpy

from core import open_model
from core.architecture import from_config
from core.formats.gguf import array_page
from core.ir import GraphRef, Model, Node
from core.tensors.read import values
from tests.corpus import fetch
from tests.corpus import names as corpus_names
from tests.formats import research_files as make


def nodes(model: Model, graph: int = 0) -> list[Node]:
    return list(model.graphs[graph].nodes())


def names(model: Model, graph: int, ids: tuple[int, ...]) -> list[str]:
    return [model.graphs[graph].value(i).name for i in ids]


def test_exported_program_has_operator_scope_and_symbols(tmp_path: Path) -> None:
    model = open_model(make.write_pt2(tmp_path)[0])
    (node,) = nodes(model)
    assert (node.domain, node.op_type, node.scope) == ("aten", "linear", "fc")
    assert names(model, 0, node.inputs) == ["x", "p_w"]
    graph = model.graphs[0]
    (x,) = graph.inputs
    assert graph.value(x).shape == ("s0", 6)
    assert model.tensors[graph.value(node.inputs[1]).tensor].name == "fc.weight"
    assert model.opsets == {"aten": 10}


def test_torchscript_code_becomes_a_graph(tmp_path: Path) -> None:
    model = open_model(make.write_torchscript(tmp_path)[0])
    operators = [node.op_type for node in nodes(model)]
    # ``training`` is False in the pickle, so dropout is never reached; the loop is one node with a body.
    assert operators == ["matmul", "range", "Loop", "split", "cat"]
    matmul = nodes(model)[0]
    assert names(model, 0, matmul.inputs) == ["x", "weight"]
    loop = nodes(model)[2]
    (body,) = [a.value for a in loop.attributes if a.name == "body"]
    assert isinstance(body, GraphRef)
    assert [node.op_type for node in nodes(model, body.graph)] == ["sum", "gt", "bool", "If"]
    split = nodes(model)[3]
    assert names(model, 0, split.outputs) == ["a", "b"]
    assert [model.graphs[0].value(i).type_text for i in model.graphs[0].inputs] == ["", "int"]


def test_mlir_regions_are_subgraphs_with_captures(tmp_path: Path) -> None:
    model = open_model(make.write_mlir(tmp_path)[0])
    assert [node.op_type for node in nodes(model)] == ["dot_general", "while"]
    loop = nodes(model)[1]
    assert names(model, 0, loop.inputs) == ["arg1", "0"]
    assert names(model, 0, loop.outputs) == ["1#0", "1#1"]
    main = model.graphs[0]
    assert names(model, 0, main.outputs) == ["1#1"]
    assert main.value(main.outputs[0]).shape == (None, 6)
    condition, body = (model.graphs[i] for i in main.subgraphs[1])
    assert [n.op_type for n in condition.nodes()] == ["compare"]
    captured = [v for v in condition.values() if v.captured]
    assert [(v.name, v.captured) for v in captured] == [("arg1", (0, main.inputs[1]))]
    assert [n.op_type for n in body.nodes()] == ["add"]


def test_mlir_long_constant_stays_in_the_file(tmp_path: Path) -> None:
    path, expected = make.write_mlir(tmp_path, 200_000)
    model = open_model(path)
    tensor = model.tensors[0]
    assert tensor.encoding == "mlir.hex"
    start, stop = tensor.data.start, tensor.data.stop
    assert path.read_bytes()[start:stop].decode() == expected["main/cst"].tobytes().hex().upper()


def test_mlir_quantized_type(tmp_path: Path) -> None:
    path = tmp_path / "q.mlir"
    path.write_text(
        "func.func @main(%a: tensor<2x3x!quant.uniform<i8:f32:1, {0.5:-3, 0.25, 2.0:7}>>) -> tensor<*xf32> {\n"
        '  %0 = "other.thing"(%a) {note = "x"} : (tensor<2x3x!quant.uniform<i8:f32:1, {0.5:-3, 0.25, 2.0:7}>>) -> tensor<*xf32>\n'
        "  return %0 : tensor<*xf32>\n}\n"
    )
    graph = open_model(path).graphs[0]
    assert (graph.value(graph.inputs[0]).dtype, graph.value(graph.inputs[0]).shape) == ("int8", (2, 3))
    assert (graph.value(graph.outputs[0]).dtype, graph.value(graph.outputs[0]).shape) == ("float32", None)


def test_shared_storages_are_shown_as_shared(tmp_path: Path) -> None:
    model = open_model(make.write_torch_zip(tmp_path)[0])
    by_name = {t.name: t for t in model.tensors}
    weight, view = by_name["state_dict.layers.0.weight"], by_name["state_dict.view"]
    assert weight.storage == view.storage >= 0
    assert by_name["state_dict.scale"].storage != weight.storage
    assert model.parameters == 24 + 24 + 1  # the view counts once
    assert any(f.code == "pytorch.shared" for f in model.findings)
    assert model.metadata["epoch"] == "3"


def test_gguf_arrays_are_paged(tmp_path: Path) -> None:
    model = open_model(make.write_gguf(tmp_path)[0])
    page = array_page(model, "tokenizer.ggml.tokens", 40, 100)
    assert (page.start, page.count) == (40, 50)
    assert page.items == tuple(f"token {i}" for i in range(40, 50))
    assert array_page(model, "numbers", 3, 2).items == (3, 4)


def test_gguf_split_files_are_one_artifact(tmp_path: Path) -> None:
    data = {f"t{i}": np.full(32, i, np.float32) for i in range(3)}
    for number, (name, array) in enumerate(data.items(), 1):
        writer = gguf.GGUFWriter(str(tmp_path / f"m-{number:05d}-of-00003.gguf"), "llama")
        writer.add_uint16("split.count", 3)
        writer.add_int32("split.tensors.count", 3)
        writer.add_tensor(name, array)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    model = open_model(tmp_path / "m-00001-of-00003.gguf")
    assert len(model.sources) == 3
    assert {t.name: values(model, t)[0] for t in model.tensors} == {"t0": 0, "t1": 1, "t2": 2}
    (tmp_path / "m-00002-of-00003.gguf").unlink()
    broken = open_model(tmp_path / "m-00001-of-00003.gguf")
    assert {t.name for t in broken.tensors} == {"t0", "t2"}
    assert any("Split 2 of 3" in f.message and "does not exist" in f.message for f in broken.findings)


def test_gguf_mix_contradicts_the_file_name(tmp_path: Path) -> None:
    path = tmp_path / "model-Q4_K_M.gguf"
    make.write_gguf(tmp_path)[0].rename(path)
    (finding,) = [f for f in open_model(path).findings if f.code == "gguf.mix"]
    assert finding.message.startswith("Q4_K_M in the name of the file, the matrices say float32 100 %")


def test_gguf_unknown_type_keeps_its_bytes(tmp_path: Path) -> None:
    path, _ = make.write_gguf(tmp_path)
    body = path.read_bytes()
    at = body.index(b"layers.0.weight") + len("layers.0.weight") + 4 + 2 * 8
    path.write_bytes(body[:at] + (200).to_bytes(4, "little") + body[at + 4 :])
    model = open_model(path)
    tensor = next(t for t in model.tensors if t.name == "layers.0.weight")
    assert tensor.nbytes > 0
    assert "GGML type 200 is unknown" in tensor.problem


def test_gguf_transformer_graph_uses_every_weight_once(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(str(tmp_path / "m.gguf"), "llama")
    wanted = ["token_embd", "output_norm", "output"]
    for layer in range(2):
        wanted += [f"blk.{layer}.{part}" for part in (
            "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")]  # fmt: skip
    for name in wanted:
        writer.add_tensor(f"{name}.weight", np.zeros((32, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = open_model(tmp_path / "m.gguf")
    graph = model.main_graph
    assert graph is not None
    assert graph.kind == "reconstructed"
    assert "general.architecture is 'llama'" in graph.doc
    used = [graph.value(i).tensor for node in graph.nodes() for i in node.inputs if graph.value(i).tensor >= 0]
    assert sorted(used) == list(range(len(wanted)))
    assert [n.op_type for n in graph.nodes()].count("Attention") == 2
    assert model.capability("graph").availability == "partial"


def test_hugging_face_folder_says_its_architecture(tmp_path: Path) -> None:
    model = open_model(make.write_huggingface(tmp_path)[0])
    facts = model.details["architecture"]
    assert isinstance(facts, dict)
    assert (facts["layers"], facts["heads"], facts["kv_heads"], facts["head_dim"]) == (2, 8, 2, 8)
    assert (facts["vocabulary"], facts["context"]) == (1000, 512)
    assert model.details["tokenizer_files"] == ["tokenizer.json"]


def test_key_value_cache_by_hand() -> None:
    # Llama-2 7B: 32 layers, 32 heads of 128; 2 * 32 * 1 * 4096 * 32 * 128 * 2 bytes = 2 GiB for one sequence in fp16.
    seven = from_config(
        {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}, "c"
    )
    assert seven is not None
    assert seven.kv_cache_bytes(batch=1, length=4096, bits=16) == 2 * 1024**3


def test_index_and_shards_are_checked_both_ways(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"a": np.zeros(2), "extra": np.zeros(2)}, tmp_path / "one.safetensors")
    index = {
        "metadata": {"total_size": 1},
        "weight_map": {"a": "one.safetensors", "b": "one.safetensors", "c": "gone.safetensors"},
    }
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    said = " ".join(f.message for f in open_model(path).findings)
    assert "weight_map says 'b' is in 'one.safetensors', which does not hold it" in said
    assert "'one.safetensors' holds 'extra', weight_map does not name it" in said
    assert "gone.safetensors" in said
    assert "total_size says 1 bytes, the shards hold 32" in said


@pytest.mark.corpus
def test_real_safetensors_equal_the_library() -> None:
    for name, count in (("minilm", 104), ("wordllama", 1)):
        path = fetch(name)
        model = open_model(path)
        assert len(model.tensors) == count
        with safetensors.safe_open(path, "np") as oracle:
            assert {t.name: list(t.shape) for t in model.tensors} == {
                key: oracle.get_slice(key).get_shape()
                for key in oracle.keys()  # noqa: SIM118 (no iterator)
            }
            for tensor in model.tensors:
                np.testing.assert_array_equal(values(model, tensor), oracle.get_tensor(tensor.name))


VOCABULARIES = [name for name in corpus_names("vocab_") if not name.endswith(("_inp", "_out"))]


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("name", VOCABULARIES)
def test_real_gguf_metadata_equals_gguf_py(name: str) -> None:
    path = fetch(name)
    model, oracle = open_model(path), gguf.GGUFReader(path)
    fields = {key: field for key, field in oracle.fields.items() if not key.startswith("GGUF.")}
    assert set(model.metadata) == set(fields)
    for key, field in fields.items():
        expected = field.contents()
        if isinstance(expected, list):
            page = array_page(model, key, 0, len(expected))
            assert page.count == len(expected)
            assert (
                list(page.items) == pytest.approx(expected)
                if isinstance(expected[0], float)
                else list(page.items) == expected
            )
        elif isinstance(expected, str):
            assert model.metadata[key] == expected
        else:
            assert float(model.metadata[key].replace("true", "1").replace("false", "0")) == pytest.approx(
                float(expected), rel=1e-5
            )
