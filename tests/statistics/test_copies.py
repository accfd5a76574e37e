from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from core.errors import Cancelled
from core.ir import ByteRange, Model, Tensor
from core.opening import open_model
from core.source import Source
from core.statistics.copies import near_copies

RANDOM = np.random.default_rng(3)


def test_pairs_that_nearly_agree(tmp_path: Path) -> None:
    a = RANDOM.standard_normal((40, 90)).astype(np.float32)
    near = (a + 0.01 * RANDOM.standard_normal(a.shape)).astype(np.float32)
    other = RANDOM.standard_normal((40, 90)).astype(np.float32)
    save_file(
        {"a": a, "b_near": near, "c_other": other, "d_same": a, "e_zero": np.zeros_like(a), "f_half": a.astype(np.float16),
         "g_short": a.reshape(-1)[:90], "h_minus": -a},
        tmp_path / "m.safetensors",
    )  # fmt: skip
    model = open_model(tmp_path / "m.safetensors")
    names = [t.name for t in model.tensors]
    found = {(names[p.first], names[p.second]): p for p in near_copies(model)}
    assert {frozenset(pair) for pair in found} == {
        frozenset(pair) for pair in (("a", "b_near"), ("a", "d_same"), ("a", "f_half"), ("b_near", "d_same"),
                                     ("b_near", "f_half"), ("d_same", "f_half"))
    }  # fmt: skip
    x, y = a.astype(np.float64).ravel(), near.astype(np.float64).ravel()
    pair = next(p for key, p in found.items() if set(key) == {"a", "b_near"})
    assert pair.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-12)
    assert pair.distance == pytest.approx(np.linalg.norm(x - y) / max(np.linalg.norm(x), np.linalg.norm(y)), rel=1e-9)
    assert next(p for key, p in found.items() if set(key) == {"a", "d_same"}).distance == 0
    distances = [p.distance for p in near_copies(model)]
    assert distances == sorted(distances)
    assert near_copies(model, [names.index("a"), names.index("c_other")]) == []


def test_samples_that_agree_by_chance_are_measured(tmp_path: Path) -> None:
    a = RANDOM.standard_normal(100_000).astype(np.float32)
    b = a.copy()
    b[2_000:10_000] += 1  # between two runs of the sample
    save_file({"a": a, "b": b}, tmp_path / "m.safetensors")
    assert near_copies(open_model(tmp_path / "m.safetensors")) == []


def test_strided_shared_and_stopped(tmp_path: Path) -> None:
    array = RANDOM.standard_normal((30, 40)).astype(np.float32)
    (tmp_path / "w").write_bytes(array.tobytes() + array.T.tobytes())
    where = ByteRange(0, 0, 4800), ByteRange(0, 4800, 9600)
    tensors = (
        Tensor("a", "float32", (30, 40), where[0], storage=0),
        Tensor("shared", "float32", (30, 40), where[0], storage=0),
        Tensor("turned", "float32", (30, 40), where[1], strides=(1, 30)),
    )
    model = Model("t", "t", str(tmp_path / "w"), (Source(tmp_path / "w"),), {}, tensors, (), {})
    assert [(p.first, p.second, p.distance) for p in near_copies(model)] == [(0, 2, 0.0), (1, 2, 0.0)]
    with pytest.raises(Cancelled):
        near_copies(model, cancelled=lambda: True)
