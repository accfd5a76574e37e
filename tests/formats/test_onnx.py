"""The ONNX reader against the onnx library: real models, node tests, every dtype, damage."""

import contextlib
import os
import shutil
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, GraphProto, TensorProto, helper, numpy_helper

from core import open_model
from core.errors import BrokenFile, ModelError, UnknownFormat, UnreadableFile
from core.ir import Graph, GraphRef, Model, TensorRef
from core.tensors.read import decodable, values
from tests.corpus import fetch

WHEEL = Path(onnx.__file__).parent / "backend" / "test" / "data"
NAMES = {
    TensorProto.BFLOAT16: "bfloat16", TensorProto.FLOAT8E4M3FN: "float8e4m3fn", TensorProto.FLOAT8E4M3FNUZ: "float8e4m3fnuz",
    TensorProto.FLOAT8E5M2: "float8e5m2", TensorProto.FLOAT8E5M2FNUZ: "float8e5m2fnuz", TensorProto.INT4: "int4",
    TensorProto.UINT4: "uint4", TensorProto.FLOAT4E2M1: "float4e2m1", TensorProto.STRING: "string",
    TensorProto.FLOAT8E8M0: "float8e8m0", TensorProto.INT2: "int2", TensorProto.UINT2: "uint2",
}  # fmt: skip
REAL = [
    "magika", "silero_vad", "silero_vad_16k_op15", "silero_vad_openvino_16k", "rapidocr_det", "rapidocr_rec", "rapidocr_cls",
    "openwakeword_alexa", "openwakeword_embedding_model", "openwakeword_hey_jarvis", "openwakeword_hey_mycroft",
    "openwakeword_hey_rhasspy", "openwakeword_melspectrogram", "openwakeword_silero_vad", "openwakeword_timer",
    "openwakeword_weather",
]  # fmt: skip


def dtype_name(code: int) -> str:
    name = NAMES.get(code) or np.dtype(helper.tensor_dtype_to_np_dtype(code)).name
    return {"float6_e2m3fn": "float6e2m3", "float6_e3m2fn": "float6e3m2"}.get(name, name)


def text(name: str | bytes) -> str:
    """A name as shown: the library gives bytes where a mutation made it no UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", "backslashreplace")


def graphs_of(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and all graphs inside its attributes, in the order of their nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs:
                yield from graphs_of(inner)


def assert_equal(model: Model, proto: onnx.ModelProto) -> None:
    """Nodes, values, attributes, tensors and signature as the library has them."""
    graph = model.main_graph
    assert graph is not None
    assert dict(model.opsets) == {o.domain or "ai.onnx": o.version for o in proto.opset_import}
    assert dict(model.metadata) == {p.key: p.value for p in proto.metadata_props}
    assert_graph(model, graph, proto.graph)
    functions = [g for g in model.graphs if g.kind == "function"]
    assert [(g.domain, g.name) for g in functions] == [(f.domain, f.name) for f in proto.functions]
    for found, expected in zip(functions, proto.functions, strict=True):
        assert [n.op_type for n in found.nodes()] == [n.op_type for n in expected.node]


def assert_graph(model: Model, graph: Graph, proto: GraphProto) -> None:
    assert graph.node_count == len(proto.node)
    for found, expected in zip(graph.nodes(), proto.node, strict=True):
        assert (found.op_type, found.name, found.domain) == (expected.op_type, expected.name, expected.domain)
        assert [graph.value(i).name if i >= 0 else "" for i in found.inputs] == list(expected.input)
        assert [graph.value(i).name if i >= 0 else "" for i in found.outputs] == list(expected.output)
        assert [a.name for a in found.attributes] == [a.name for a in expected.attribute]
        for attribute, wanted in zip(found.attributes, expected.attribute, strict=True):
            assert_attribute(model, model.attribute(attribute), wanted)
    for ids, infos in ((graph.inputs, proto.input), (graph.outputs, proto.output)):
        assert [graph.value(i).name for i in ids] == [info.name for info in infos]
        for i, info in zip(ids, infos, strict=True):
            if info.type.HasField("tensor_type"):
                assert_type(graph, i, info.type.tensor_type)
    for initializer in proto.initializer:
        value = graph.value(graph.value_index[initializer.name])
        assert_tensor(model, value.tensor, initializer)


def assert_type(graph: Graph, value: int, expected: onnx.TypeProto.Tensor) -> None:
    found = graph.value(value)
    assert found.dtype == (dtype_name(expected.elem_type) if expected.elem_type else None)
    if expected.HasField("shape"):
        wanted = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in expected.shape.dim)
        assert found.shape == tuple(None if isinstance(d, int) and d < 0 else d for d in wanted)
    else:
        assert found.shape is None


def assert_attribute(model: Model, found: object, expected: AttributeProto) -> None:
    if expected.ref_attr_name:
        return
    if expected.type == AttributeProto.TENSOR:
        assert isinstance(found, TensorRef)
        assert_tensor(model, found.tensor, expected.t)
    elif expected.type == AttributeProto.GRAPH:
        assert isinstance(found, GraphRef)
        assert_graph(model, model.graphs[found.graph], expected.g)
    elif expected.type in (AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING):
        wanted = helper.get_attribute_value(expected)
        if isinstance(wanted, bytes):
            with contextlib.suppress(UnicodeDecodeError):
                wanted = wanted.decode()
        np.testing.assert_equal(found, wanted)
    elif expected.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        np.testing.assert_array_equal(np.array(found), np.array(helper.get_attribute_value(expected)))


def assert_tensor(model: Model, index: int, expected: TensorProto) -> None:
    tensor = model.tensors[index]
    assert (tensor.dtype, tensor.shape) == (dtype_name(expected.data_type), tuple(expected.dims))
    if decodable(model, tensor):
        assert expected.data_location == TensorProto.EXTERNAL, decodable(model, tensor)
        return
    found, wanted = values(model, tensor), numpy_helper.to_array(expected, str(Path(model.path).parent))
    if tensor.dtype == "string":
        assert found.tolist() == [[w.decode() if isinstance(w, bytes) else w for w in np.ravel(wanted)]][0]
    elif wanted.dtype.kind in "fc":
        np.testing.assert_array_equal(found, wanted)
    else:  # the library's own small types compare as what they stand for
        np.testing.assert_array_equal(np.asarray(found, np.float64), wanted.astype(np.float64))


@pytest.mark.corpus
@pytest.mark.parametrize("name", REAL)
def test_real_models_equal_the_library(name: str) -> None:
    path = fetch(name)
    model, proto = open_model(path), onnx.load(path)
    assert_equal(model, proto)
    inner = list(graphs_of(proto.graph))
    assert model.node_count == sum(len(g.node) for g in inner)
    assert [f for f in model.findings if f.severity == "error"] == []
    constants = sum(
        a.type == AttributeProto.TENSOR or n.op_type == "Constant" for g in inner for n in g.node for a in n.attribute
    )
    assert Counter(t.role for t in model.tensors)["constant"] == constants


@pytest.mark.parametrize("path", sorted(WHEEL.rglob("*.onnx")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_models_of_the_onnx_wheel_equal_the_library(path: Path) -> None:
    assert_equal(open_model(path), onnx.load(path, load_external_data=False))


@pytest.mark.corpus
@pytest.mark.slow
def test_debian_node_models_equal_the_library() -> None:
    folder = fetch("libonnx_testdata")
    paths = sorted(folder.rglob("model.onnx"))
    assert len(paths) > 900
    for path in paths:
        assert_equal(open_model(path), onnx.load(path))


def model_of(nodes: list[onnx.NodeProto], initializers: list[TensorProto], **extra: object) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], **extra)  # type: ignore[arg-type]


def test_every_element_type_raw_and_typed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    initializers = []
    for code in TensorProto.DataType.values():
        if code in (TensorProto.UNDEFINED, TensorProto.STRING):
            continue
        kind = helper.tensor_dtype_to_np_dtype(code)
        array = rng.integers(0, 2, (3, 5)).astype(kind)
        initializers.append(numpy_helper.from_array(array, f"raw{code}"))
        initializers.append(helper.make_tensor(f"typed{code}", code, (3, 5), array.ravel().tolist()))
    initializers.append(helper.make_tensor("text", TensorProto.STRING, (2,), [b"a", "ß".encode()]))
    initializers += [
        numpy_helper.from_array(np.zeros((0, 4), np.float32), "empty"),
        numpy_helper.from_array(np.array(7.0), "scalar"),
    ]
    path = tmp_path / "types.onnx"
    onnx.save(model_of([helper.make_node("Relu", ["x"], ["y"])], initializers), path)
    assert_equal(open_model(path), onnx.load(path))


def test_sparse_initializer_is_dense_when_read(tmp_path: Path) -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("s", TensorProto.FLOAT, (2,), [5.0, 7.0]),
        helper.make_tensor("i", TensorProto.INT64, (2,), [1, 5]),
        [2, 3],
    )
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [])
    model.graph.sparse_initializer.append(sparse)
    path = tmp_path / "sparse.onnx"
    onnx.save(model, path)
    opened = open_model(path)
    (tensor,) = opened.tensors
    np.testing.assert_array_equal(values(opened, tensor), [[0, 5, 0], [0, 0, 7]])


def external(tmp_path: Path, location: str) -> Path:
    model = model_of(
        [helper.make_node("Add", ["x", "w"], ["y"])], [numpy_helper.from_array(np.arange(3000, dtype=np.float32), "w")]
    )
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.data")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"w.data", location.encode(), 1) if len(location) == 6 else data)
    return path


def test_external_data_is_read_in_place(tmp_path: Path) -> None:
    opened = open_model(external(tmp_path, "w.data"))
    assert [source.name for source in opened.sources] == ["model.onnx", "w.data"]
    np.testing.assert_array_equal(values(opened, 0), np.arange(3000))


@pytest.mark.parametrize(
    ("location", "words"), [("../x.d", "not a plain relative path"), ("/etc/h", "not a plain relative path")]
)
def test_external_data_outside_its_folder_is_refused(tmp_path: Path, location: str, words: str) -> None:
    opened = open_model(external(tmp_path, location))
    assert opened.tensors[0].problem
    assert any(words in f.message for f in opened.findings if f.severity == "error")


def test_missing_external_data_is_a_finding(tmp_path: Path) -> None:
    path = external(tmp_path, "w.data")
    (tmp_path / "w.data").unlink()
    opened = open_model(path)
    assert opened.node_count == 1
    assert any("w.data" in f.message for f in opened.findings if f.severity == "error")


def test_external_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = external(tmp_path, "w.data")
    (tmp_path / "w.data").unlink()
    (tmp_path / "w.data").symlink_to("/etc/passwd")
    assert any("leads out of its folder" in f.message for f in open_model(path).findings)


def test_broken_beginnings_are_one_sentence(tmp_path: Path) -> None:
    cases = {
        "missing.onnx": (None, UnreadableFile, "does not exist"),
        "empty.onnx": (b"", UnreadableFile, "is empty"),
        "text.onnx": (b"hello, I am text\n" * 20, UnknownFormat, "is a text file"),
        "cut.onnx": (b"\x08\x08\x12\x06torc", BrokenFile, ""),
        "bad.onnx": (b"\x08\x08" + b"\xff" * 20, ModelError, ""),
    }
    for name, (data, kind, words) in cases.items():
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(kind) as caught:
            open_model(path)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.corpus
def test_a_truncated_model_shows_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(fetch("magika").read_bytes()[:100_000])
    opened = open_model(path)
    assert opened.node_count > 0
    assert any(f.code == "onnx.truncated" and "byte" in (f.at or "") for f in opened.findings)


def test_a_length_that_leaves_the_file_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bomb.onnx"
    onnx.save(model_of([helper.make_node("Relu", ["x"], ["y"])], []), path)
    huge = b"\x2a" + b"\xff\xff\xff\xff\x7f"  # an initializer of 34 GB
    data = path.read_bytes()
    at = data.index(b"\x3a") + 2
    path.write_bytes(
        data[: at - 1] + bytes([data[at - 1] + len(huge)]) + data[at:] + huge if data[at - 1] < 100 else data + huge
    )
    with contextlib.suppress(ModelError):
        open_model(path)


def small_model() -> bytes:
    inner = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["t"])],
        "then",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("Constant", [], ["c"], value=helper.make_tensor("v", TensorProto.BOOL, (), [True])),
        helper.make_node("If", ["c"], ["z"], name="branch", then_branch=inner, else_branch=inner),
        helper.make_node("Concat", ["z", "x", ""], ["y"], name="join", axis=1, domain="ai.onnx"),
    ]
    weights = [
        numpy_helper.from_array(np.arange(3, dtype=np.float32), "w"),
        helper.make_tensor("i", TensorProto.INT32, (4,), [1, 2, 3, 400]),
    ]
    return model_of(nodes, weights, producer_name="test").SerializeToString()


ORIGINAL = small_model()


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    body = bytearray(ORIGINAL)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(body) - 1))
        match draw(st.sampled_from(["flip", "set", "cut", "insert", "delete", "copy"])):
            case "flip":
                body[at] ^= 1 << draw(st.integers(0, 7))
            case "set":
                body[at] = draw(st.integers(0, 255))
            case "cut":
                del body[max(1, at) :]
            case "insert":
                body[at:at] = draw(st.binary(min_size=1, max_size=6))
            case "delete":
                del body[at : at + draw(st.integers(1, 6))]
                body = body or bytearray(b"\0")
            case "copy":  # repeated fields concatenate, singular messages merge
                body += body[at:]
    return bytes(body)


@pytest.mark.slow
@pytest.mark.fuzz
def test_whatever_onnx_parses_is_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mutated.onnx"

    @settings(max_examples=int(os.environ.get("MODELGLASS_FUZZ_CASES", "2000")), deadline=None, database=None,
              derandomize=True, suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(mutated())
    def run(data: bytes) -> None:
        path.write_bytes(data)
        try:
            proto = onnx.load_model_from_string(data)
        except DecodeError:
            proto = None
        try:
            model = open_model(path)
        except ModelError:
            return  # it says why; what must hold is that nothing else is raised
        if proto is None or model.format != "onnx" or model.main_graph is None:
            return
        graph = model.main_graph
        assert [n.op_type for n in graph.nodes()] == [text(n.op_type) for n in proto.graph.node]
        assert [n.name for n in graph.nodes()] == [text(n.name) for n in proto.graph.node]
        for found, expected in zip(graph.nodes(), proto.graph.node, strict=True):
            assert [graph.value(i).name if i >= 0 else "" for i in found.inputs] == [text(n) for n in expected.input]
            assert [a.name for a in found.attributes] == [text(a.name) for a in expected.attribute]
        assert [graph.value(i).name for i in graph.inputs] == [text(i.name) for i in proto.graph.input]
        initializers = [t for t in model.tensors if t.role == "initializer" and t.graph == graph.index]
        assert Counter(t.name for t in initializers) == Counter(
            [text(t.name) for t in proto.graph.initializer]
            + [text(t.values.name) for t in proto.graph.sparse_initializer]
        )

    run()


def test_packed_and_unpacked_lists_are_the_same(tmp_path: Path) -> None:
    """An unpacked ``ints`` attribute (field 8, one tag an element) as old writers made it."""
    plain = model_of([helper.make_node("Squeeze", ["x"], ["y"], name="s", axes=[1, 2])], []).SerializeToString()
    packed = struct.pack("BBBB", 0x42, 2, 1, 2)
    unpacked = struct.pack("BBBB", 0x40, 1, 0x40, 2)
    path = tmp_path / "unpacked.onnx"
    path.write_bytes(plain.replace(packed, unpacked) if packed in plain else plain)
    opened = open_model(path)
    (attribute,) = opened.graphs[0].node(0).attributes
    assert opened.attribute(attribute) == (1, 2)


def test_the_suffix_does_not_decide(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(ORIGINAL)
    assert open_model(path).format == "onnx"
    shutil.copy(path, tmp_path / "noname")
    assert open_model(tmp_path / "noname").format == "onnx"
