"""PyTorch files against torch itself (``weights_only=True``); run by ``make test-torch``."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from core import open_model
from core.ir import Model
from core.tensors.read import decodable, values
from tests.corpus import fetch
from tests.torch_oracle.models import build, save_all

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore:.*not writable.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor.*:UserWarning"),
]
REAL = [
    "facenet_onet", "facenet_pnet", "facenet_rnet", "lpips_v00_alex", "lpips_v00_squeeze", "lpips_v00_vgg",
    "lpips_v01_alex", "lpips_v01_squeeze", "lpips_v01_vgg", "attacut_c", "attacut_sc", "chgnet_020", "chgnet_030",
    "chgnet_r2scan",
]  # fmt: skip


def flat(item: object, path: str = "") -> dict[str, torch.Tensor]:
    """Tensors of nested containers by dotted path."""
    if isinstance(item, torch.Tensor):
        return {path: item}
    pairs = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list | tuple) else ()
    return {k: v for key, child in pairs for k, v in flat(child, f"{path}.{key}" if path else str(key)).items()}


def numbers(tensor: torch.Tensor) -> np.ndarray:
    plain = tensor.int_repr() if tensor.is_quantized else tensor
    if plain.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        plain = plain.float()
    return plain.detach().resolve_conj().resolve_neg().numpy()


def assert_same(model: Model, expected: dict[str, torch.Tensor]) -> None:
    assert {t.name for t in model.tensors} == set(expected)
    for tensor in model.tensors:
        wanted = numbers(expected[tensor.name])
        found = values(model, tensor)
        assert found.shape == wanted.shape, tensor.name
        np.testing.assert_array_equal(found, wanted, err_msg=tensor.name)


@pytest.mark.corpus
@pytest.mark.parametrize("name", REAL)
def test_real_checkpoints_equal_torch(name: str) -> None:
    path = fetch(name)
    assert_same(open_model(path), flat(torch.load(path, map_location="cpu", weights_only=True)))


def test_odd_tensors_equal_torch(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(2, 3, 4)
    odd = {
        "bf16": torch.randn(3, 5).bfloat16(), "f8": torch.randn(7).to(torch.float8_e4m3fn), "bool": torch.tensor([True, False]),
        "complex": torch.randn(3, dtype=torch.complex64), "empty": torch.zeros(0, 3), "scalar": torch.tensor(2.5),
        "transposed": base.transpose(0, 2), "sliced": base[:, 1:, ::2], "expanded": torch.ones(1, 1).expand(4, 6),
        "int8": torch.arange(-5, 5, dtype=torch.int8), "uint16": torch.arange(5).to(torch.uint16),
        "quantized": torch.quantize_per_tensor(torch.randn(4, 4), 0.1, 3, torch.qint8),
    }  # fmt: skip
    torch.save(odd, tmp_path / "odd.pt")
    model = open_model(tmp_path / "odd.pt")
    assert_same(model, odd)
    shared = {t.name: t.storage for t in model.tensors}
    assert shared["transposed"] == shared["sliced"]


def content(model: Model) -> set[str]:
    """Hashes over shape and elements of all tensors with more than one element."""
    hashes: set[str] = set()
    for tensor in model.tensors:
        if decodable(model, tensor) or tensor.elements < 2:
            continue
        array = np.ascontiguousarray(values(model, tensor))
        hashes.add(hashlib.sha256(repr((array.shape, array.dtype.str)).encode() + array.tobytes()).hexdigest())
    return hashes


@pytest.mark.parametrize("name", ["gpt", "resnet"])
def test_every_export_holds_the_same_parameters(name: str, tmp_path: Path) -> None:
    model, _ = build(name)
    state = model.state_dict()
    wanted = {
        hashlib.sha256(repr((tuple(v.shape), v.numpy().dtype.str)).encode() + v.numpy().tobytes()).hexdigest()
        for v in state.values()
        if v.numel() > 1
    }
    for kind, path in save_all(name, tmp_path).items():
        opened = open_model(path)
        assert wanted <= content(opened), kind
        assert not [f for f in opened.findings if f.severity == "error"], kind


def test_exported_and_traced_graphs_hold_the_operators(tmp_path: Path) -> None:
    paths = save_all("resnet", tmp_path)
    for kind in ("traced", "exported", "scripted"):
        model = open_model(paths[kind])
        operators = [node.op_type for graph in model.graphs for node in graph.nodes()]
        convolutions = sum(op in ("conv2d", "_convolution") for op in operators)
        assert convolutions == 3, kind
        graph = model.main_graph
        assert graph is not None
        assert len(graph.inputs) == 1
        undefined = [
            v.name for g in model.graphs for v in g.values()
            if v.producer < 0 and v.tensor < 0 and not v.is_input and not v.captured and v.consumers
        ]  # fmt: skip
        assert undefined == [], kind


def test_fx_graph_equals_torch_fx(tmp_path: Path) -> None:
    model, _ = build("resnet")
    traced = torch.fx.symbolic_trace(model)
    torch.save(traced, tmp_path / "fx.pt")
    graph = open_model(tmp_path / "fx.pt").main_graph
    assert graph is not None
    expected = [n.name for n in traced.graph.nodes if n.op.startswith("call_")]
    assert [node.name for node in graph.nodes()] == expected
    scopes = {n.name: n.target for n in traced.graph.nodes if n.op == "call_module"}
    assert {node.name: node.scope for node in graph.nodes() if node.scope} == scopes
