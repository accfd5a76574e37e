"""GGML blocks to numbers: the types that look elements up in a codebook (IQ1, IQ2, IQ3).

Layouts and formulas as in ``core.tensors.ggml``; the codebooks lie in ``ggml_grids.npz``
(see tools/make_ggml_grids.py). Formulas: ``dequantize_row_iq*`` of ggml-quants.c.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.tensors.ggml import Blocks, Decode, Floats, fields, half, scaled

_DELTA: Final = np.float32(0.125)
"""Shift of all eight elements of an iq1 group (``IQ1S_DELTA``)."""


@cache
def _grid(name: str) -> Floats:
    with np.load(Path(__file__).with_name("ggml_grids.npz"), allow_pickle=False) as grids:
        return grids[name].astype(np.float32)


@cache
def _parity_signs() -> Floats:
    """Signs of 8 elements by 7-bit code: the eighth makes the number of minus signs even; [128, 8]."""
    codes = np.arange(128, dtype=np.uint8)
    seven = np.unpackbits(codes[:, None], axis=1, bitorder="little")[:, :7]
    eighth = seven.sum(axis=1, keepdims=True).astype(np.uint8) & 1
    return 1 - 2 * np.concatenate([seven, eighth], axis=1).astype(np.float32)


def _sign_bits(packed: NDArray[np.uint8]) -> Floats:
    """+1 or -1 by bit, lowest first: [n, k] to [n, 8k]."""
    return 1 - 2 * np.unpackbits(packed, axis=1, bitorder="little").astype(np.float32)


def _groups_of_four(words: NDArray[np.uint32]) -> Floats:
    """Four 7-bit sign codes of each 32-bit word: [n, 8] to [n, 256]."""
    codes = (words[:, :, None] >> np.array([0, 7, 14, 21], np.uint32)) & np.uint32(127)
    return _parity_signs()[codes].reshape(len(words), 256)


def iq2_xxs(b: Blocks) -> Floats:
    """d * (0.5 + scale) / 4 * sign * grid, 32 elements a scale."""
    words = b["qs"].view("<u4").reshape(-1, 8, 2)
    index = words[:, :, 0].copy().view(np.uint8).reshape(-1, 32)
    scales = half(b, "d") * (0.5 + (words[:, :, 1] >> 28).astype(np.float32)) * np.float32(0.25)
    values = _grid("iq2_xxs")[index].reshape(len(b), 256) * _groups_of_four(words[:, :, 1])
    return scaled(values, scales)


def _half_scales(b: Blocks) -> Floats:
    """d * (0.5 + nibble) / 4: two scales a byte, 16 elements each."""
    pairs = fields(b["scales"], 4).transpose(0, 2, 1).reshape(len(b), 16).astype(np.float32)
    return np.multiply(half(b, "d") * (0.5 + pairs), np.float32(0.25), dtype=np.float32)


def iq2_xs(b: Blocks) -> Floats:
    """9-bit grid index and 7-bit sign code in one 16-bit word of 8 elements."""
    signs = _parity_signs()[b["qs"] >> 9].reshape(len(b), 256)
    return scaled(_grid("iq2_xs")[b["qs"] & 511].reshape(len(b), 256) * signs, _half_scales(b))


def _high_bits(qh: NDArray[np.uint8], bits: int, groups: int) -> NDArray[np.uint16]:
    """``groups`` fields of ``bits`` bits a byte, lowest first: [n, k] to [n, k * groups]."""
    shifts = np.arange(groups, dtype=np.uint8) * np.uint8(bits)
    return ((qh[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(len(qh), -1).astype(np.uint16)


def iq2_s(b: Blocks) -> Floats:
    """10-bit grid index (two bits in ``qh``), plain sign bits."""
    index = b["qs"].astype(np.uint16) | (_high_bits(b["qh"], 2, 4) << 8)
    return scaled(_grid("iq2_s")[index].reshape(len(b), 256) * _sign_bits(b["signs"]), _half_scales(b))


def iq3_xxs(b: Blocks) -> Floats:
    """d * (0.5 + scale) / 2 * sign * grid of 4 elements."""
    words = b["words"].reshape(-1, 8)
    scales = half(b, "d") * (0.5 + (words >> 28).astype(np.float32)) * np.float32(0.5)
    return scaled(_grid("iq3_xxs")[b["qs"]].reshape(len(b), 256) * _groups_of_four(words), scales)


def iq3_s(b: Blocks) -> Floats:
    """d * (1 + 2 * scale) * sign * grid, the ninth index bit in ``qh``."""
    index = b["qs"].astype(np.uint16) | (_high_bits(b["qh"], 1, 8) << 8)
    pairs = fields(b["scales"], 4).transpose(0, 2, 1).reshape(len(b), 8).astype(np.float32)
    values = _grid("iq3_s")[index].reshape(len(b), 256) * _sign_bits(b["signs"])
    return scaled(values, half(b, "d") * (1 + 2 * pairs))


def iq1_s(b: Blocks) -> Floats:
    """d * (2 * scale + 1) * (grid + delta), 32 elements a scale and a delta sign."""
    qh = b["qh"]
    index = b["qs"].astype(np.uint16) | _three_bits(qh)
    delta = np.where(qh & 0x8000, -_DELTA, _DELTA).astype(np.float32)
    values = _grid("iq1_s")[index].reshape(len(b), 256) + np.repeat(delta, 32, axis=1)
    return scaled(values, half(b, "d") * (2 * ((qh >> 12) & 7).astype(np.float32) + 1))


def _three_bits(qh: NDArray[np.uint16]) -> NDArray[np.uint16]:
    shifts = np.array([0, 3, 6, 9], np.uint16)
    return (((qh[:, :, None] >> shifts) & np.uint16(7)) << np.uint16(8)).reshape(len(qh), 32)


def iq1_m(b: Blocks) -> Floats:
    """As iq1_s with a delta sign for 8 and a scale for 16 elements; d is spread over the scales."""
    words = b["scales"]
    spread = (words[:, 0] >> 12) | ((words[:, 1] >> 8) & 0xF0) | ((words[:, 2] >> 4) & 0xF00) | (words[:, 3] & 0xF000)
    d = spread.astype("<u2").view("<f2").astype(np.float32).reshape(-1, 1)
    scales = ((words[:, :, None] >> np.array([0, 3, 6, 9], np.uint16)) & np.uint16(7)).reshape(len(b), 16)
    high = _high_bits(b["qh"], 4, 2)
    index = b["qs"].astype(np.uint16) | ((high & 7) << 8)
    delta = np.where(high & 8, -_DELTA, _DELTA).astype(np.float32)
    values = _grid("iq1_s")[index].reshape(len(b), 256) + np.repeat(delta, 8, axis=1)
    return scaled(values, d * (2 * scales.astype(np.float32) + 1))


def _layout(*parts: tuple[str, str, int]) -> np.dtype[Any]:
    return np.dtype([(name, kind, (count,)) if count > 1 else (name, kind) for name, kind, count in parts])


_D: Final = ("d", "<f2", 1)

GRIDS: Final[dict[str, tuple[np.dtype[Any], Decode]]] = {
    "iq2_xxs": (_layout(_D, ("qs", "u1", 64)), iq2_xxs),
    "iq2_xs": (_layout(_D, ("qs", "<u2", 32), ("scales", "u1", 8)), iq2_xs),
    "iq2_s": (_layout(_D, ("qs", "u1", 32), ("signs", "u1", 32), ("qh", "u1", 8), ("scales", "u1", 8)), iq2_s),
    "iq3_xxs": (_layout(_D, ("qs", "u1", 64), ("words", "<u4", 8)), iq3_xxs),
    "iq3_s": (_layout(_D, ("qs", "u1", 64), ("qh", "u1", 8), ("signs", "u1", 32), ("scales", "u1", 4)), iq3_s),
    "iq1_s": (_layout(_D, ("qs", "u1", 32), ("qh", "<u2", 8)), iq1_s),
    "iq1_m": (_layout(("qs", "u1", 32), ("qh", "u1", 16), ("scales", "<u2", 4)), iq1_m),
}
"""Block layout and decoder by type name."""
