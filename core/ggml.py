"""Tensor types of GGML: how many elements share a block, and how many bytes a block has.

Source: ``ggml_type`` in ggml.h and the block structures of ggml-common.h; ids 4, 5, 31 to 33 and
36 to 38 were removed upstream and are unknown here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GgmlType:
    """One tensor type.

    Attributes:
        name: upstream's name in lower case, e.g. ``q4_k``.
        block: elements of one block; ``nbytes`` its bytes.
        plain: our element type where the elements lie there unpacked, else empty.
    """

    name: str
    block: int
    nbytes: int
    plain: str = ""

    @property
    def bits_per_weight(self) -> float:
        """Stored bits an element, scales included."""
        return 8 * self.nbytes / self.block

    @property
    def encoding(self) -> str:
        """The ``Tensor.encoding`` of tensors of this type."""
        return "plain" if self.plain else f"ggml.{self.name}"


TYPES: Final[dict[int, GgmlType]] = {
    0: GgmlType("f32", 1, 4, "float32"),
    1: GgmlType("f16", 1, 2, "float16"),
    2: GgmlType("q4_0", 32, 18),
    3: GgmlType("q4_1", 32, 20),
    6: GgmlType("q5_0", 32, 22),
    7: GgmlType("q5_1", 32, 24),
    8: GgmlType("q8_0", 32, 34),
    9: GgmlType("q8_1", 32, 36),
    10: GgmlType("q2_k", 256, 84),
    11: GgmlType("q3_k", 256, 110),
    12: GgmlType("q4_k", 256, 144),
    13: GgmlType("q5_k", 256, 176),
    14: GgmlType("q6_k", 256, 210),
    15: GgmlType("q8_k", 256, 292),
    16: GgmlType("iq2_xxs", 256, 66),
    17: GgmlType("iq2_xs", 256, 74),
    18: GgmlType("iq3_xxs", 256, 98),
    19: GgmlType("iq1_s", 256, 50),
    20: GgmlType("iq4_nl", 32, 18),
    21: GgmlType("iq3_s", 256, 110),
    22: GgmlType("iq2_s", 256, 82),
    23: GgmlType("iq4_xs", 256, 136),
    24: GgmlType("i8", 1, 1, "int8"),
    25: GgmlType("i16", 1, 2, "int16"),
    26: GgmlType("i32", 1, 4, "int32"),
    27: GgmlType("i64", 1, 8, "int64"),
    28: GgmlType("f64", 1, 8, "float64"),
    29: GgmlType("iq1_m", 256, 56),
    30: GgmlType("bf16", 1, 2, "bfloat16"),
    34: GgmlType("tq1_0", 256, 54),
    35: GgmlType("tq2_0", 256, 66),
    39: GgmlType("mxfp4", 32, 17),
    40: GgmlType("nvfp4", 64, 36),
    41: GgmlType("q1_0", 128, 18),
}

FILE_TYPES: Final[dict[int, str]] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K",
    19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL",
    26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0",
    37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4", 40: "Q1_0",
}  # fmt: skip
"""``general.file_type``: the mix that a quantizer aimed at (``llama_ftype`` in llama.h)."""
