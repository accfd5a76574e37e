import gguf
import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType

from core.ggml import TYPES
from core.ir import ByteRange, Model, Tensor
from core.source import Source
from core.statistics import blocks
from core.statistics.arrays import of_array
from core.statistics.tensors import of_tensor
from tests.statistics import oracle

BLOCKED = [number for number, kind in TYPES.items() if not kind.plain and kind.name not in ("q8_1", "q8_k", "q1_0")]


def model_of(folder, number: int, count: int) -> tuple[Model, np.ndarray]:
    """Random blocks as one tensor, scales and minimums included, and what gguf makes of them."""
    kind = TYPES[number]
    raw = np.random.default_rng(number).integers(0, 256, (count, kind.nbytes), dtype=np.uint8)
    (folder / "w").write_bytes(raw.tobytes())
    tensor = Tensor("w", "float32", (count, kind.block), ByteRange(0, 0, raw.size), encoding=kind.encoding)
    model = Model("gguf", "GGUF", str(folder / "w"), (Source(folder / "w"),), {}, (tensor,), (), {})
    with np.errstate(all="ignore"):
        return model, gguf.dequantize(raw, GGMLQuantizationType(number)).reshape(count, kind.block)


@pytest.mark.parametrize("number", BLOCKED)
def test_every_block_type_as_gguf_dequantizes_it(number: int, tmp_path) -> None:
    model, numbers = model_of(tmp_path, number, 700)
    oracle.check(of_tensor(model, 0), numbers, 2.0**-126)
    found = blocks.of_tensor(model, 0, most=300)
    assert (found.size, found.blocks, found.step) == (TYPES[number].block, 700, 3)
    shown = numbers[::3].astype(np.float64)
    whole = np.isfinite(shown).all(axis=1)
    assert (np.isnan(found.mean) == ~whole).all()
    np.testing.assert_array_equal(found.min[whole], shown[whole].min(1))
    np.testing.assert_array_equal(found.max[whole], shown[whole].max(1))
    np.testing.assert_allclose(found.mean[whole], shown[whole].mean(1), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(found.std[whole], shown[whole].std(1), rtol=1e-12, atol=1e-300)


def test_scales_are_those_that_are_stored(tmp_path) -> None:
    numbers = np.random.default_rng(0).standard_normal((50, 64)).astype(np.float32)
    raw = gguf.quantize(numbers, GGMLQuantizationType.Q8_0)
    (tmp_path / "w").write_bytes(raw.tobytes())
    tensor = Tensor("w", "float32", (50, 64), ByteRange(0, 0, raw.size), encoding="ggml.q8_0")
    model = Model("gguf", "GGUF", str(tmp_path / "w"), (Source(tmp_path / "w"),), {}, (tensor,), (), {})
    found = blocks.of_tensor(model, 0)
    # q8_0 stores the largest absolute value of 32 elements over 127 as float16
    largest = np.abs(numbers.reshape(100, 32)).max(1) / np.float32(127)
    np.testing.assert_array_equal(found.scale, largest.astype(np.float16).astype(np.float64))
    assert of_tensor(model, 0) == of_array(gguf.dequantize(raw, GGMLQuantizationType.Q8_0))
