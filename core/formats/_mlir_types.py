"""MLIR types as our element types and dimensions."""

from __future__ import annotations

import re
from typing import Final

from core.ir import Dim, Quantization

ELEMENTS: Final[dict[str, str]] = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i1": "bool", "index": "int64",
    "f8E4M3FN": "float8e4m3fn", "f8E5M2": "float8e5m2", "f8E4M3FNUZ": "float8e4m3fnuz",
    "f8E5M2FNUZ": "float8e5m2fnuz", "f8E8M0FNU": "float8e8m0", "f6E2M3FN": "float6e2m3", "f6E3M2FN": "float6e3m2",
    "f4E2M1FN": "float4e2m1", "i2": "int2", "i4": "int4", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "si8": "int8", "si16": "int16", "si32": "int32", "si64": "int64", "ui2": "uint2", "ui4": "uint4",
    "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}  # fmt: skip
_TENSOR: Final = re.compile(r"^(?:tensor|vector|memref)<(?P<dims>(?:(?:\d+|\?|\*|\[\d+\])x)*)(?P<rest>.*)>$", re.DOTALL)
_QUANT: Final = re.compile(
    r"^!quant\.uniform<(?P<stored>\w+)(?:<[^>]*>)?:(?P<real>\w+)(?::(?P<axis>\d+))?,(?P<values>.*)>$"
)
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def parse_type(text: str) -> tuple[str | None, tuple[Dim, ...] | None, Quantization | None]:
    """Element type, dimensions and quantization of a type; ``None`` for what it does not say.

    Scalars such as ``i32`` are tensors without dimensions.
    """
    compactly = text.replace(" ", "")
    if compactly in ELEMENTS:
        return ELEMENTS[compactly], (), None
    found = _TENSOR.match(compactly)
    if found is None:
        return None, None, None
    element, quantization = _element(_before_encoding(found["rest"]))
    if "*" in found["dims"]:
        return element, None, quantization
    dims = [part for part in found["dims"].split("x") if part]
    return element, tuple(int(d) if d.isdigit() and len(d) < 19 else None for d in dims), quantization


def _before_encoding(rest: str) -> str:
    """The element type without a layout such as ``, #sparse``."""
    depth = 0
    for at, letter in enumerate(rest):
        depth += letter in "<{("
        depth -= letter in ">})"
        if letter == "," and depth == 0:
            return rest[:at]
    return rest


def _element(text: str) -> tuple[str | None, Quantization | None]:
    if text in ELEMENTS:
        return ELEMENTS[text], None
    found = _QUANT.match(text)
    if found is None:
        return None, None
    scales: list[float] = []
    zeros: list[int] = []
    for pair in found["values"].strip("{}").split(","):
        scale, _, zero = pair.partition(":")
        if not _NUMBER.fullmatch(scale) or (zero and not _NUMBER.fullmatch(zero)):
            return ELEMENTS.get(found["stored"]), None
        scales.append(float(scale))
        zeros.append(int(float(zero)) if zero else 0)
    axis = int(found["axis"]) if found["axis"] else None
    return ELEMENTS.get(found["stored"]), Quantization(tuple(scales), tuple(zeros), axis)
