from __future__ import annotations

import random
import re
import time

import pytest

from core.errors import UsageError
from core.graph_builder import GraphBuilder
from core.ir import Attribute, Model, Tensor
from core.structure.linear_regex import Regex
from core.structure.search import find


@pytest.fixture
def model() -> Model:
    b = GraphBuilder(0, "main", "net")
    x, w, y, z = b.value("x"), b.value("enc.attn.q.weight"), b.value("y"), b.value("z")
    b.inputs.append(x)
    b.set_type(x, "float32", ("N", 3, 256))
    b.set_type(y, "int8", (1, 256))
    b.initializer(w, 0)
    b.node("Conv", "/enc/attn/q_proj/Conv", [x, w], [y], scope="enc/attn", attributes=[Attribute("group", 2)])
    b.node("Softmax", "<img src=x onerror=alert(1)>", [y], [z], attributes=[Attribute("axis", -1)])
    b.outputs.append(z)
    tensors = (
        Tensor("enc.attn.q.weight", "int8", (256, 3, 3, 3), b"\0" * 6912),
        Tensor("table", "float16", (1000, 1000), None),
    )
    return Model(
        "onnx", "ONNX model", "net.onnx", (), {"author": "somebody", "licence": "MIT"}, tensors, (b.finish(),), {}
    )


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("op:Conv", ["g0.n0"]),
        ("op:*max", ["g0.n1"]),
        ("op:conv dtype:int8", ["g0.n0"]),
        ("op:Softmax dtype:float32", []),
        ("dtype:int8", ["g0.n0", "g0.n1", "t0", "g0.v2"]),
        ("shape:*x256", ["g0.n0", "g0.n1", "g0.v0", "g0.v2"]),
        ("shape:Nx3x256", ["g0.n0", "g0.v0"]),
        ("bytes:>1M", ["t1"]),  # 1000 x 1000 float16 are 2 MB
        ("bytes:=6912", ["g0.n0", "t0"]),
        ("bytes:<7Ki kind:tensor", ["t0"]),
        ("params:>=1M", ["t1"]),
        ("rank:4", ["g0.n0", "t0"]),
        ("name~/attn.*q/", ["g0.n0", "t0"]),
        ("name~/ATTN.*Q/ kind:node", ["g0.n0"]),
        ("name:*weight", ["t0"]),
        ("scope:enc/*", ["g0.n0"]),
        ("attr:axis", ["g0.n1"]),
        ("attr:axis=-1", ["g0.n1"]),
        ("attr:group=1", []),
        ("onerror", ["g0.n1"]),
        ('"src=x onerror"', ["g0.n1"]),
        ("-op:Conv kind:node", ["g0.n1"]),
        ("somebody", ["author"]),
        ("conv attn", ["g0.n0"]),
        ("domain:ai.onnx", ["g0.n0", "g0.n1"]),
        ("nothing-of-that-name", []),
        ("", []),
    ],
)  # fmt: skip
def test_queries(model: Model, query: str, ids: list[str]) -> None:
    assert [hit.id for hit in find(model, query)] == ids


def test_hits_say_where(model: Model) -> None:
    [hit] = find(model, "op:Conv")
    assert hit.to_json() == {"kind": "node", "id": "g0.n0", "name": "/enc/attn/q_proj/Conv", "where": "Conv, enc/attn"}


@pytest.mark.parametrize(
    "query",
    [
        "colour:red",
        "bytes:many",
        "op:",
        "name~/(/",
        "name~/a{1000}/",
        r"name~/(a)\1/",
        "name~/(?=a)/",
        "x" * 2000,
        "name~/*/",
    ],
)
def test_nonsense_is_refused(model: Model, query: str) -> None:
    with pytest.raises(UsageError):
        find(model, query)


PATTERNS = [
    "a", "ab", "a|b", "a*", "a+b", "(ab)+c", "^a", "a$", "^$", "^a*$", "[a-c]+d", "[^a]b", "a.c", "(a|b)*c", "a?b?c?$",
    "a{2}", "a{1,2}b", "(a|ab)(c|bcd)", r"\d+", r"\w\s\w", "b$|^c", "(^a|b)c", "a{2,}", "[]a]b", "[a-]c", ".*b.*c$", "(a*)*b",
    "x|", "()", "a(b|c$)", r"\.", "[.]",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_texts_match_as_with_the_standard_library(pattern: str) -> None:
    rng, mine, oracle = random.Random(pattern), Regex(pattern), re.compile(pattern, re.IGNORECASE)
    for _ in range(400):
        text = "".join(rng.choice("abcdxA1 .]-") for _ in range(rng.randint(0, 8)))
        assert mine.search(text) == (oracle.search(text) is not None), text


def test_patterns_that_blow_up_elsewhere_stay_quick() -> None:
    start = time.process_time()
    assert not Regex("(a+)+$").search("a" * 4000 + "b")
    assert not Regex("(a|aa)*b").search("a" * 4000)
    assert not Regex(".*.*.*.*.*=x").search("y" * 4000)
    assert (
        time.process_time() - start < 20
    )  # a safety bound: the standard library needs longer than the universe for the first


def test_one_of_50_000_operators_is_found() -> None:
    b = GraphBuilder(0, "main", "net")
    for i in range(50_000):
        b.node("Relu", f"/encoder/layer.{i // 50}/attn/op_{i}", [b.value(f"v{i}")], [b.value(f"v{i + 1}")])
    big = Model("onnx", "ONNX model", "m.onnx", (), {}, (), (b.finish(),), {})
    assert [hit.name for hit in find(big, "kind:node name~/layer\\.999.*op_49999$/")] == [
        "/encoder/layer.999/attn/op_49999"
    ]
