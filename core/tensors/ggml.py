"""GGML blocks to numbers: the plain and the K-quant types.

Layouts: the block structures of ggml-common.h; formulas: the ``dequantize_row_*`` functions of
ggml-quants.c. Each decoder takes the blocks as a structured array of n rows and returns
float32 of shape [n, elements of a block].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Blocks = NDArray[Any]
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Decode = Callable[[Blocks], Floats]

_KVALUES: Final = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
"""The 16 levels of iq4_nl and iq4_xs (``kvalues_iq4nl``)."""

_E2M1: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
"""The 16 values of a 4-bit float with 2 exponent bits (OCP Microscaling 1.0)."""


def half(blocks: Blocks, name: str) -> Floats:
    """A float16 field as a float32 column of shape [n, 1]."""
    return blocks[name].astype(np.float32).reshape(-1, 1)


def nibbles(packed: Bytes) -> Bytes:
    """Low nibbles of a row, then its high nibbles: [n, k] to [n, 2k]."""
    return np.concatenate([packed & np.uint8(15), packed >> np.uint8(4)], axis=1)


def fields(packed: Bytes, bits: int) -> Bytes:
    """Split each byte into 8 / bits fields, lowest first, byte order kept inside a field: [n, k] to [n, 8/bits, k]."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[None, :, None]
    return (packed[:, None, :] >> shifts) & np.uint8((1 << bits) - 1)


def scaled(values: NDArray[Any], scales: NDArray[Any]) -> Floats:
    """Multiply runs of elements by their scales: [n, e] and [n, s] with e / s elements a scale."""
    n, count = scales.shape
    runs = values.astype(np.float32).reshape(n, count, -1) * scales.astype(np.float32)[:, :, None]
    return runs.reshape(n, -1)


def q1_0(b: Blocks) -> Floats:
    """One bit: +d where set, -d where not."""
    bits = np.unpackbits(b["qs"], axis=1, bitorder="little").astype(np.float32)
    return (bits * 2 - 1) * half(b, "d")


def q4_0(b: Blocks) -> Floats:
    """d * (q - 8)."""
    return (nibbles(b["qs"]).astype(np.float32) - 8) * half(b, "d")


def q4_1(b: Blocks) -> Floats:
    """d * q + m."""
    return nibbles(b["qs"]).astype(np.float32) * half(b, "d") + half(b, "m")


def _fifth_bit(b: Blocks) -> Bytes:
    return np.unpackbits(b["qh"], axis=1, bitorder="little") << np.uint8(4)


def q5_0(b: Blocks) -> Floats:
    """d * (q - 16), the fifth bit of all 32 in ``qh``."""
    return ((nibbles(b["qs"]) | _fifth_bit(b)).astype(np.float32) - 16) * half(b, "d")


def q5_1(b: Blocks) -> Floats:
    """d * q + m."""
    return (nibbles(b["qs"]) | _fifth_bit(b)).astype(np.float32) * half(b, "d") + half(b, "m")


def q8(b: Blocks) -> Floats:
    """d * q, for q8_0, q8_1 (whose sum is not needed) and q8_k (whose d is float32)."""
    return b["qs"].astype(np.float32) * half(b, "d")


def q2_k(b: Blocks) -> Floats:
    """d * (scale & 15) * q - dmin * (scale >> 4), 16 elements a scale."""
    quants = fields(b["qs"].reshape(-1, 32), 2).reshape(len(b), 256)
    low = half(b, "d") * (b["scales"] & np.uint8(15)).astype(np.float32)
    minimum: Floats = half(b, "dmin") * (b["scales"] >> np.uint8(4)).astype(np.float32)
    return np.subtract(scaled(quants, low), np.repeat(minimum, 16, axis=1), dtype=np.float32)


def q3_k(b: Blocks) -> Floats:
    """d * (scale - 32) * (q - 4), the third bit of q in ``hmask``, scales of 6 bits."""
    quants = fields(b["qs"].reshape(-1, 32), 2).reshape(len(b), 256).astype(np.int8)
    high = fields(b["hmask"], 1).reshape(len(b), 256).astype(np.int8)
    raw = b["scales"]
    low = np.concatenate([raw[:, :8] & np.uint8(15), raw[:, :8] >> np.uint8(4)], axis=1)
    top = fields(raw[:, 8:], 2).reshape(len(b), 16)
    scales = (low | (top << np.uint8(4))).astype(np.float32) - 32
    return scaled(quants - 4 + 4 * high, half(b, "d") * scales)


def _scales_and_minimums(raw: Bytes) -> tuple[Floats, Floats]:
    """Eight 6-bit scales and eight 6-bit minimums from 12 bytes (``get_scale_min_k4``)."""
    first, second, third = raw[:, :4], raw[:, 4:8], raw[:, 8:]
    scales = np.concatenate([first & 63, (third & 15) | ((first >> 6) << 4)], axis=1)
    minimums = np.concatenate([second & 63, (third >> 4) | ((second >> 6) << 4)], axis=1)
    return scales.astype(np.float32), minimums.astype(np.float32)


def _with_minimums(b: Blocks, quants: Bytes) -> Floats:
    scales, minimums = _scales_and_minimums(b["scales"])
    lowest = np.repeat(half(b, "dmin") * minimums, 32, axis=1)
    return np.subtract(scaled(quants, half(b, "d") * scales), lowest, dtype=np.float32)


def q4_k(b: Blocks) -> Floats:
    """d * scale * q - dmin * minimum, 32 elements a scale."""
    return _with_minimums(b, fields(b["qs"].reshape(-1, 32), 4).reshape(len(b), 256))


def q5_k(b: Blocks) -> Floats:
    """As q4_k with a fifth bit in ``qh``."""
    low = fields(b["qs"].reshape(-1, 32), 4).reshape(len(b), 256)
    high = fields(b["qh"], 1).reshape(len(b), 256)
    return _with_minimums(b, low | (high << np.uint8(4)))


def q6_k(b: Blocks) -> Floats:
    """d * scale * (q - 32), 16 elements a scale, two high bits in ``qh``."""
    low = fields(b["ql"].reshape(-1, 64), 4).reshape(len(b), 256)
    high = fields(b["qh"].reshape(-1, 32), 2).reshape(len(b), 256)
    quants = (low | (high << np.uint8(4))).astype(np.float32) - 32
    return scaled(quants, half(b, "d") * b["scales"].astype(np.float32))


def tq1_0(b: Blocks) -> Floats:
    """d * (t - 1), five ternary digits t a byte, as fractions of 256."""
    powers = np.array([1, 3, 9, 27, 81], np.uint8)[None, :, None]
    parts = [
        (b["qs"][:, None, :32] * powers),
        (b["qs"][:, None, 32:] * powers),
        (b["qh"][:, None, :] * powers[:, :4]),
    ]
    digits = np.concatenate([part.reshape(len(b), -1) for part in parts], axis=1).astype(np.uint16)
    return (((digits * 3) >> 8).astype(np.float32) - 1) * half(b, "d")


def tq2_0(b: Blocks) -> Floats:
    """d * (q - 1), two bits an element."""
    return (fields(b["qs"].reshape(-1, 32), 2).reshape(len(b), 256).astype(np.float32) - 1) * half(b, "d")


def iq4_nl(b: Blocks) -> Floats:
    """d * level[q]."""
    return _KVALUES[nibbles(b["qs"])] * half(b, "d")


def iq4_xs(b: Blocks) -> Floats:
    """d * (scale - 32) * level[q], 32 elements a scale of 6 bits."""
    low = fields(b["scales_l"], 4).transpose(0, 2, 1).reshape(len(b), 8)
    high = (b["scales_h"].reshape(-1, 1) >> np.arange(0, 16, 2, dtype=np.uint16)) & np.uint16(3)
    scales = (low | (high << 4)).astype(np.float32) - 32
    levels = _KVALUES[fields(b["qs"].reshape(-1, 16), 4).reshape(len(b), 256)]
    return scaled(levels, half(b, "d") * scales)


def mxfp4(b: Blocks) -> Floats:
    """2**(e - 127) * element (OCP Microscaling 1.0)."""
    power = np.exp2(b["e"].astype(np.float64) - 127).reshape(-1, 1)
    with np.errstate(over="ignore"):
        return (_E2M1[nibbles(b["qs"])] * power).astype(np.float32)


def nvfp4(b: Blocks) -> Floats:
    """scale * element, 16 elements an unsigned e4m3 scale; the codes 0 and 127 are zero."""
    code = b["d"]
    exponent, mantissa = ((code >> 3) & 15).astype(np.float32), (code & 7).astype(np.float32)
    scale = np.where(exponent == 0, mantissa * np.float32(2**-9), (1 + mantissa / 8) * np.exp2(exponent - 7))
    scale = np.where((code == 0) | (code == 127), np.float32(0), scale)
    elements = _E2M1[nibbles(b["qs"].reshape(-1, 8)).reshape(len(b), 64)]
    return scaled(elements, scale)


def _layout(*parts: tuple[str, str] | tuple[str, str, int]) -> np.dtype[Any]:
    return np.dtype([(p[0], p[1], (p[2],)) if len(p) == 3 else p for p in parts])


_D: Final = ("d", "<f2")
_DMIN: Final = ("dmin", "<f2")

PLAIN: Final[dict[str, tuple[np.dtype[Any], Decode]]] = {
    "q1_0": (_layout(_D, ("qs", "u1", 16)), q1_0),
    "q4_0": (_layout(_D, ("qs", "u1", 16)), q4_0),
    "q4_1": (_layout(_D, ("m", "<f2"), ("qs", "u1", 16)), q4_1),
    "q5_0": (_layout(_D, ("qh", "u1", 4), ("qs", "u1", 16)), q5_0),
    "q5_1": (_layout(_D, ("m", "<f2"), ("qh", "u1", 4), ("qs", "u1", 16)), q5_1),
    "q8_0": (_layout(_D, ("qs", "i1", 32)), q8),
    "q8_1": (_layout(_D, ("s", "<f2"), ("qs", "i1", 32)), q8),
    "q2_k": (_layout(("scales", "u1", 16), ("qs", "u1", 64), _D, _DMIN), q2_k),
    "q3_k": (_layout(("hmask", "u1", 32), ("qs", "u1", 64), ("scales", "u1", 12), _D), q3_k),
    "q4_k": (_layout(_D, _DMIN, ("scales", "u1", 12), ("qs", "u1", 128)), q4_k),
    "q5_k": (_layout(_D, _DMIN, ("scales", "u1", 12), ("qh", "u1", 32), ("qs", "u1", 128)), q5_k),
    "q6_k": (_layout(("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), _D), q6_k),
    "q8_k": (_layout(("d", "<f4"), ("qs", "i1", 256), ("bsums", "<i2", 16)), q8),
    "tq1_0": (_layout(("qs", "u1", 48), ("qh", "u1", 4), _D), tq1_0),
    "tq2_0": (_layout(("qs", "u1", 64), _D), tq2_0),
    "iq4_nl": (_layout(_D, ("qs", "u1", 16)), iq4_nl),
    "iq4_xs": (_layout(_D, ("scales_h", "<u2"), ("scales_l", "u1", 4), ("qs", "u1", 128)), iq4_xs),
    "mxfp4": (_layout(("e", "u1"), ("qs", "u1", 16)), mxfp4),
    "nvfp4": (_layout(("d", "u1", 4), ("qs", "u1", 32)), nvfp4),
}
"""Block layout and decoder by type name."""
