import numpy as np
import pytest

from core.errors import UsageError
from core.statistics import groups

NAMES = ["embed.weight", *(f"model.layers.{i}.{part}.weight" for i in (0, 1, 10) for part in ("a", "b", "c")), "bias"]


def test_names_are_cut_at_dots_and_slashes() -> None:
    assert groups.module_of("model.layers.3.mlp.weight", 2) == "model.layers"
    assert groups.module_of("/model/layers.3/mlp/MatMul", 3) == "model.layers.3"
    assert groups.module_of("bias", 2) == groups.module_of("", 2) == ""
    assert groups.layer_of("blk.12.attn_q.weight") == 12
    assert groups.layer_of("conv2d.weight") is None  # a digit within a word is no layer


def test_boxes_are_numpys_quartiles() -> None:
    values = np.array([5.0, *range(9), np.nan])
    found = groups.by_module(NAMES, values, depth=3)
    assert [(b.module, b.count) for b in found] == [
        ("embed", 1), ("model.layers.0", 3), ("model.layers.1", 3), ("model.layers.10", 3),
    ]  # fmt: skip
    assert found[1] == groups.Box("model.layers.0", 3, 0.0, 0.5, 1.0, 1.5, 2.0)
    assert [b.module for b in groups.by_module(NAMES, values, depth=3, most=2)] == ["model.layers.0", "model.layers.1"]


def test_bands_along_depth() -> None:
    values = np.array([5.0, *np.random.default_rng(0).standard_normal(9), 1.0])
    values[2] = np.inf
    found = groups.along_depth(NAMES, values)
    assert found is not None
    assert found.layers.tolist() == [0, 1, 10]
    assert found.count.tolist() == [2, 3, 3]
    np.testing.assert_array_equal(found.q90, [np.quantile(v, 0.9) for v in (values[[1, 3]], values[4:7], values[7:10])])
    np.testing.assert_array_equal(found.low, [min(values[1], values[3]), values[4:7].min(), values[7:10].min()])
    assert groups.along_depth(["a", "b.w"], np.array([1.0, 2.0])) is None
    with pytest.raises(UsageError, match="2 names come with 1 values"):
        groups.along_depth(["a", "b"], np.zeros(1))
