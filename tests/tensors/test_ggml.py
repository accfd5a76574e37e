"""GGML block decoders against the ``gguf`` package, and by hand where it has none."""

import struct

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from core.ggml import TYPES
from core.tensors.ggml import PLAIN
from core.tensors.ggml_grid import GRIDS

LAYOUTS = {**PLAIN, **GRIDS}
BLOCKED = {number: kind for number, kind in TYPES.items() if not kind.plain}
WITHOUT_ORACLE = {"q8_1", "q8_k", "q1_0"}


def decode(name: str, raw: np.ndarray) -> np.ndarray:
    layout, decoder = LAYOUTS[name]
    return decoder(np.ascontiguousarray(raw).view(layout).reshape(-1))


def test_every_block_type_has_a_decoder() -> None:
    assert {kind.name for kind in BLOCKED.values()} == set(LAYOUTS)


@pytest.mark.parametrize("number", BLOCKED)
def test_block_sizes_are_upstreams(number: int) -> None:
    kind = BLOCKED[number]
    block, nbytes = GGML_QUANT_SIZES[GGMLQuantizationType(number)]
    assert LAYOUTS[kind.name][0].itemsize == kind.nbytes
    assert kind.block == block
    # gguf-py still lists q8_1 with two float32 fields; ggml-common.h has two halves.
    assert kind.nbytes == (36 if kind.name == "q8_1" else nbytes)


@pytest.mark.parametrize("number", [n for n, kind in BLOCKED.items() if kind.name not in WITHOUT_ORACLE])
def test_random_blocks_equal_the_gguf_package(number: int) -> None:
    kind = BLOCKED[number]
    raw = np.random.default_rng(number).integers(0, 256, (500, kind.nbytes), dtype=np.uint8)
    with np.errstate(all="ignore"):
        expected = gguf.dequantize(raw, GGMLQuantizationType(number))
        found = decode(kind.name, raw)
    np.testing.assert_array_equal(found, expected)


def test_q8_1_by_hand() -> None:
    # d = 0.5, s (unused) = 7, elements 0, 1, ..., 31 minus 16: value = 0.5 * (i - 16).
    block = struct.pack("<ee32b", 0.5, 7.0, *range(-16, 16))
    found = decode("q8_1", np.frombuffer(block, np.uint8)[None])
    np.testing.assert_array_equal(found[0], np.arange(-16, 16) * 0.5)


def test_q8_k_by_hand() -> None:
    # d is a float32 here; sums of 16 follow the elements and are not needed.
    block = struct.pack("<f256b16h", 0.25, *[(i % 255) - 127 for i in range(256)], *range(16))
    found = decode("q8_k", np.frombuffer(block, np.uint8)[None])
    np.testing.assert_array_equal(found[0], [0.25 * ((i % 255) - 127) for i in range(256)])


def test_q1_0_by_hand() -> None:
    # Bit 0 of byte 0 is element 0: set is +d, clear is -d.
    block = struct.pack("<e16B", 2.0, 0b00000101, *[0] * 15)
    found = decode("q1_0", np.frombuffer(block, np.uint8)[None])
    assert found[0, :4].tolist() == [2.0, -2.0, 2.0, -2.0]
    assert found[0, 4:].tolist() == [-2.0] * 124
