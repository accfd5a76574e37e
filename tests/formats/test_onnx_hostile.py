"""ONNX files made to hurt: each opens with a finding or is refused in one sentence, quickly and in little memory."""

import os
import struct
import time
import tracemalloc
from pathlib import Path

import pytest

from core import open_model
from core.errors import BrokenFile, ModelError, Unavailable
from core.ir import GraphRef, Model
from core.tensors.read import decodable, values

SECONDS = 1.0
MEMORY = 64 << 20


def number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(tag: int, payload: bytes) -> bytes:
    return number(tag << 3 | 2) + number(len(payload)) + payload


def integer(tag: int, value: int) -> bytes:
    return number(tag << 3) + number(value % (1 << 64))


def node(op: bytes, inputs: list[bytes], outputs: list[bytes], attributes: bytes = b"") -> bytes:
    return (
        b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op) + attributes
    )  # fmt: skip


def info(name: bytes, type_: bytes | None = None) -> bytes:
    return field(1, name) + field(2, type_ if type_ is not None else field(1, integer(1, 1)))


def tensor(name: bytes, dims: list[int], code: int = 1, raw: bytes | None = None, rest: bytes = b"") -> bytes:
    data = field(9, raw) if raw is not None else b""
    return b"".join(integer(1, d) for d in dims) + integer(2, code) + field(8, name) + data + rest


def outside(location: bytes, offset: bytes = b"0", length: bytes = b"16") -> bytes:
    pairs = ((b"location", location), (b"offset", offset), (b"length", length))
    return b"".join(field(13, field(1, k) + field(2, v)) for k, v in pairs) + integer(14, 1)


def graph(nodes: list[bytes], tensors: list[bytes] = []) -> bytes:  # noqa: B006
    body = b"".join(field(1, n) for n in nodes) + field(2, b"g") + b"".join(field(5, t) for t in tensors)
    return body + field(11, info(b"x")) + field(12, info(b"y"))


def model(body: bytes) -> bytes:
    return integer(1, 10) + field(7, body) + field(8, integer(2, 21))


ADD = node(b"Add", [b"x", b"w"], [b"y"])
RELU = node(b"Relu", [b"x"], [b"y"])


def bounded(path: Path, data: bytes) -> Model:
    path.write_bytes(data)
    tracemalloc.start()
    start = time.perf_counter()
    try:
        return open_model(path)
    finally:
        took, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert took < 5 * SECONDS, "tracing memory slows down by about five times"
        assert peak < MEMORY


def codes(opened: Model) -> set[str]:
    return {f.code for f in opened.findings}


def nested_ifs(depth: int) -> bytes:
    inner = RELU
    for _ in range(depth):
        branch = field(1, b"then_branch") + field(6, field(1, inner)) + integer(20, 5)
        inner = node(b"If", [b"x"], [b"y"], field(5, branch))
    return model(graph([inner]))


def nested_types(depth: int) -> bytes:
    inner = field(1, integer(1, 1))
    for _ in range(depth):
        inner = field(4, field(1, inner))
    return model(field(1, RELU) + field(11, info(b"x", inner)) + field(12, info(b"y")))


def test_subgraphs_nested_3000_deep_are_cut(tmp_path: Path) -> None:
    opened = bounded(tmp_path / "m.onnx", nested_ifs(3000))
    assert "onnx.nesting" in codes(opened)
    assert 30 < len(opened.graphs) < 100


def test_subgraphs_as_deep_as_onnx_allows_are_all_read(tmp_path: Path) -> None:
    """``onnx`` parses 100 messages deep: a graph in a model and three more for each branch."""
    opened = bounded(tmp_path / "m.onnx", nested_ifs(32))
    assert codes(opened) == set()
    assert len(opened.graphs) == 33
    assert opened.graphs[32].node(0).op_type == "Relu"
    assert opened.graphs[5].parent == (4, 0, "then_branch")
    (attribute,) = opened.graphs[4].node(0).attributes
    assert opened.attribute(attribute) == GraphRef(5)
    place = (32, opened.graphs[32].value_index["x"])
    while (captured := opened.graphs[place[0]].value(place[1]).captured) is not None:
        assert captured[0] < place[0]
        place = captured
    assert place == (0, opened.graphs[0].inputs[0])


def test_types_nested_20000_deep_are_cut(tmp_path: Path) -> None:
    opened = bounded(tmp_path / "m.onnx", nested_types(20_000))
    assert "onnx.nesting" in codes(opened)
    assert opened.graphs[0].value(opened.graphs[0].inputs[0]).type_text.startswith("sequence(sequence(")


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (tensor(b"w", [1 << 31, 1 << 31], raw=b""), "4611686018427387904 elements"),
        (tensor(b"w", [1000], raw=bytes(16)), "16 bytes of data, its shape [1000] of float32 needs 4000"),
        (tensor(b"w", [-4], raw=bytes(16)), "negative size"),
        (tensor(b"w", [4], 99, raw=bytes(16)), "element type 99"),
        (tensor(b"w", [1] * 200, raw=bytes(4)), "more than 64 dimensions"),
        (tensor(b"w", [4]), "no data"),
        (tensor(b"w", [4], 8, raw=bytes(16)), "strings cannot be raw data"),
        (tensor(b"w", [4], rest=outside(b"../w.bin")), "not a plain relative path"),
        (tensor(b"w", [4], rest=outside(b"w.bin\0/../../etc/passwd")), "not a plain relative path"),
        (tensor(b"w", [4], rest=outside(b"C:\\w.bin")), "not a plain relative path"),
        (tensor(b"w", [4], rest=outside(b"there.bin", b"1000000")), "its offset '1000000'"),
        (tensor(b"w", [4], rest=outside(b"there.bin", b"-8")), "its offset '-8'"),
        (tensor(b"w", [4], rest=outside(b"there.bin", b"0x10; rm")), "its offset '0x10; rm'"),
        (
            tensor(b"w", [4], rest=outside(b"there.bin", b"0", b"9223372036854775807")),
            "is not within that file's 16 bytes",
        ),
    ],
)
def test_tensors_that_lie_say_so_and_are_not_read(tmp_path: Path, weight: bytes, words: str) -> None:
    (tmp_path / "there.bin").write_bytes(bytes(16))
    opened = bounded(tmp_path / "m.onnx", model(graph([ADD], [weight])))
    assert words in decodable(opened, 0)
    assert any(f.severity == "error" for f in opened.findings)
    with pytest.raises(Unavailable, match="cannot be read"):
        values(opened, 0)


def test_a_pipe_as_data_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.bin")
    opened = bounded(tmp_path / "m.onnx", model(graph([ADD], [tensor(b"w", [4], rest=outside(b"w.bin"))])))
    assert "not a regular file" in decodable(opened, 0)


def test_typed_numbers_fewer_than_the_shape_are_refused_when_read(tmp_path: Path) -> None:
    opened = bounded(tmp_path / "m.onnx", model(graph([ADD], [tensor(b"w", [4], 6, rest=field(5, b"\1\2\3"))])))
    with pytest.raises(BrokenFile, match="expected 16, found 12"):
        values(opened, 0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (integer(1, 10) + b"\x3a" + number(2**63 - 1) + b"x", "found 9223372036854775807"),
        (b"\x08" + b"\xff" * 11, "longer than 10 bytes"),
        (model(graph([ADD]))[:3], "ends within a number"),
        (integer(1, 10) + field(8, integer(2, 21)), "holds no graph"),
    ],
)
def test_files_without_anything_to_show_are_one_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        bounded(tmp_path / "m.onnx", data)


def test_a_weight_cut_off_keeps_its_name_and_shape(tmp_path: Path) -> None:
    whole = model(graph([ADD], [tensor(b"w", [4], raw=bytes(16))]))
    opened = bounded(tmp_path / "m.onnx", whole[: whole.index(b"\x4a\x10") + 10])
    (weight,) = opened.tensors
    assert (weight.name, weight.dtype, weight.shape) == ("w", "float32", (4,))
    assert weight.problem
    assert [n.op_type for n in opened.graphs[0].nodes()] == ["Add"]
    assert opened.capability("trace").availability == "unavailable"


def test_a_name_that_leaves_its_node_makes_no_value(tmp_path: Path) -> None:
    broken = field(4, b"Relu") + b"\x0a\x7fx"
    opened = bounded(tmp_path / "m.onnx", model(graph([broken, node(b"Relu", [b"y"], [b"z"])])))
    assert {v.name for v in opened.graphs[0].values()} == {"x", "y", "z"}
    assert "onnx.truncated" in codes(opened)


@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        ([node(b"Add", [b"x", b"b"], [b"a"]), node(b"Relu", [b"a"], [b"b"]), node(b"Relu", [b"b"], [b"y"])], "onnx.cycle"),
        ([node(b"Relu", [b"a"], [b"y"]), node(b"Relu", [b"x"], [b"a"])], "onnx.unsorted"),
        ([node(b"Relu", [b"nope"], [b"y"])], "onnx.dangling"),
        ([RELU, node(b"Neg", [b"x"], [b"y"])], "graph.duplicate_output"),
        ([], "onnx.empty_graph"),
    ],
)  # fmt: skip
def test_graphs_that_are_none_are_findings(tmp_path: Path, nodes: list[bytes], code: str) -> None:
    assert code in codes(bounded(tmp_path / "m.onnx", model(graph(nodes))))


def test_a_constant_of_2_to_the_62_elements_is_not_folded(tmp_path: Path) -> None:
    value = field(1, b"value") + field(5, tensor(b"", [2], 7, struct.pack("<qq", 1 << 31, 1 << 31))) + integer(20, 4)
    nodes = [node(b"Constant", [], [b"c"], field(5, value)), node(b"ConstantOfShape", [b"c"], [b"y"])]
    opened = bounded(tmp_path / "m.onnx", model(graph(nodes)))
    assert values(opened, 0).tolist() == [1 << 31, 1 << 31]
    assert opened.tensors[0].name == "c"


def test_graphs_written_in_two_pieces_are_merged(tmp_path: Path) -> None:
    """A singular message that occurs twice is one message: lists concatenate, the last name wins."""
    first, second = field(1, RELU) + field(2, b"first"), field(1, node(b"Neg", [b"y"], [b"z"])) + field(2, b"second")
    opened = bounded(tmp_path / "m.onnx", integer(1, 10) + field(7, first) + field(7, second))
    assert [n.op_type for n in opened.graphs[0].nodes()] == ["Relu", "Neg"]
    assert opened.graphs[0].name == "second"
