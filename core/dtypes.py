"""Element types of tensors: names, widths, and how their bits become numbers.

Sub-byte elements are packed little end first: element 0 sits in the low bits of byte 0
(ONNX IR specification, ``TensorProto.raw_data``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from core.errors import NotFound

Kind = Literal["float", "int", "uint", "bool", "complex", "string", "opaque"]


@dataclass(frozen=True, slots=True)
class MiniFloat:
    """Layout of a float of at most 8 bits.

    Attributes:
        exponent: exponent bits.
        mantissa: mantissa bits.
        bias: exponent bias.
        signed: whether the top bit is a sign.
        infinities: whether an all-ones exponent with zero mantissa is infinite.
        nan: ``"ieee"`` all-ones exponent with non-zero mantissa, ``"ones"`` only all ones,
            ``"negative_zero"`` only the pattern of -0, ``"none"`` no NaN.
    """

    exponent: int
    mantissa: int
    bias: int
    signed: bool = True
    infinities: bool = False
    nan: Literal["ieee", "ones", "negative_zero", "none"] = "none"


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    Attributes:
        name: the name used everywhere, e.g. ``float32``, ``bfloat16``, ``int4``.
        bits: bits of one element; 0 where elements have no fixed width.
        kind: what its numbers are.
        storage: numpy type string of one stored element (``u1`` for packed sub-byte types,
            empty where there is none).
        mini: layout where the type is a float of at most 8 bits.
    """

    name: str
    bits: int
    kind: Kind
    storage: str = ""
    mini: MiniFloat | None = None

    def nbytes(self, elements: int) -> int:
        """Bytes of ``elements`` contiguous elements, the last byte filled up."""
        return (elements * self.bits + 7) // 8

    @property
    def packed(self) -> bool:
        """Whether several elements share one byte."""
        return 0 < self.bits < 8

    def __str__(self) -> str:
        return self.name


_TABLE: Final[tuple[DType, ...]] = (
    DType("float64", 64, "float", "<f8"),
    DType("float32", 32, "float", "<f4"),
    DType("float16", 16, "float", "<f2"),
    DType("bfloat16", 16, "float", "<u2"),
    DType("float8e4m3fn", 8, "float", "u1", MiniFloat(4, 3, 7, nan="ones")),
    DType("float8e4m3fnuz", 8, "float", "u1", MiniFloat(4, 3, 8, nan="negative_zero")),
    DType("float8e5m2", 8, "float", "u1", MiniFloat(5, 2, 15, infinities=True, nan="ieee")),
    DType("float8e5m2fnuz", 8, "float", "u1", MiniFloat(5, 2, 16, nan="negative_zero")),
    DType("float8e8m0", 8, "float", "u1", MiniFloat(8, 0, 127, signed=False, nan="ones")),
    DType("float6e2m3", 6, "float", "u1", MiniFloat(2, 3, 1)),
    DType("float6e3m2", 6, "float", "u1", MiniFloat(3, 2, 3)),
    DType("float4e2m1", 4, "float", "u1", MiniFloat(2, 1, 1)),
    DType("int64", 64, "int", "<i8"),
    DType("int32", 32, "int", "<i4"),
    DType("int16", 16, "int", "<i2"),
    DType("int8", 8, "int", "i1"),
    DType("int4", 4, "int", "u1"),
    DType("int2", 2, "int", "u1"),
    DType("uint64", 64, "uint", "<u8"),
    DType("uint32", 32, "uint", "<u4"),
    DType("uint16", 16, "uint", "<u2"),
    DType("uint8", 8, "uint", "u1"),
    DType("uint4", 4, "uint", "u1"),
    DType("uint2", 2, "uint", "u1"),
    DType("uint1", 1, "uint", "u1"),
    DType("bool", 8, "bool", "u1"),
    DType("complex128", 128, "complex", "<c16"),
    DType("complex64", 64, "complex", "<c8"),
    DType("string", 0, "string"),
    DType("opaque", 0, "opaque"),
)

DTYPES: Final[dict[str, DType]] = {d.name: d for d in _TABLE}
CODES: Final[dict[str, int]] = {d.name: i for i, d in enumerate(_TABLE)}
"""Dense codes, stable within one process: columns hold these, never files."""

UNKNOWN_CODE: Final = -1


def dtype_of(name: str) -> DType:
    """The element type of that name.

    Raises:
        NotFound: if there is none.
    """
    try:
        return DTYPES[name]
    except KeyError:
        raise NotFound(f"no element type is called {name!r}") from None


def dtype_at(code: int) -> DType:
    """The element type with that code (see ``CODES``)."""
    return _TABLE[code]


@cache
def mini_float_table(name: str) -> NDArray[np.float32]:
    """Values of all bit patterns of a float of at most 8 bits, as float32 of shape [2**bits].

    Formula: OCP Microscaling specification 1.0 section 5.3 and OCP FP8 specification 1.0;
    for the ``fnuz`` kinds the ONNX float8 technical note.
    """
    dtype = dtype_of(name)
    mini = dtype.mini
    assert mini is not None, name
    patterns = np.arange(1 << dtype.bits, dtype=np.int64)
    mantissa = patterns & ((1 << mini.mantissa) - 1)
    exponent = (patterns >> mini.mantissa) & ((1 << mini.exponent) - 1)
    sign = np.where((patterns >> (mini.mantissa + mini.exponent)) & 1 if mini.signed else patterns < 0, -1.0, 1.0)
    fraction = mantissa / float(1 << mini.mantissa)
    if mini.mantissa == 0:  # e8m0 has no subnormals: the value is 2**(e - bias)
        magnitude = np.exp2(exponent - float(mini.bias))
    else:
        normal = np.exp2(exponent - float(mini.bias)) * (1 + fraction)
        subnormal = np.exp2(1.0 - mini.bias) * fraction
        magnitude = np.where(exponent == 0, subnormal, normal)
    values = sign * magnitude
    top = (1 << mini.exponent) - 1
    if mini.infinities:
        values = np.where((exponent == top) & (mantissa == 0), sign * np.inf, values)
    if mini.nan == "ieee":
        values = np.where((exponent == top) & (mantissa != 0), np.nan, values)
    elif mini.nan == "ones":
        values = np.where((exponent == top) & (mantissa == (1 << mini.mantissa) - 1), np.nan, values)
    elif mini.nan == "negative_zero":
        values = np.where(patterns == 1 << (dtype.bits - 1), np.nan, values)
    table = values.astype(np.float32)
    table.setflags(write=False)
    return table


def unpack(data: NDArray[np.uint8], bits: int, count: int) -> NDArray[np.uint8]:
    """Spread ``count`` elements of 1, 2, 4 or 6 bits, low bits first, to one byte each."""
    if bits == 6:
        return _unpack_six(data, count)
    per_byte = 8 // bits
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    wide = (data[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    return wide.reshape(-1)[:count]


def _unpack_six(data: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    padded = np.zeros(-(-count // 4) * 3, np.uint8)
    padded[: data.size] = data[: padded.size]
    a, b, c = padded.reshape(-1, 3).astype(np.uint32).T
    word = a | (b << np.uint32(8)) | (c << np.uint32(16))
    shifts = np.arange(4, dtype=np.uint32) * np.uint32(6)
    return ((word[:, None] >> shifts) & np.uint32(63)).astype(np.uint8).reshape(-1)[:count]


def pack(elements: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """The inverse of ``unpack`` for 1, 2 and 4 bits: the last byte is filled with zero bits."""
    per_byte = 8 // bits
    padded = np.zeros(-(-elements.size // per_byte) * per_byte, np.uint8)
    padded[: elements.size] = elements & np.uint8((1 << bits) - 1)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    return np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1).astype(np.uint8)


def to_numbers(data: bytes | NDArray[np.uint8], dtype: DType, count: int) -> NDArray[np.generic]:
    """Turn ``count`` stored little-endian elements into a flat numpy array.

    Types that numpy has come back as themselves without a copy where possible; bfloat16 and
    smaller floats as float32; int4 and int2 as int8; uint4, uint2 and uint1 as uint8; bool as
    bool (any non-zero byte is true).

    Raises:
        NotFound: for a type whose elements have no fixed width.
    """
    raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray | memoryview) else data
    if dtype.bits == 0:
        raise NotFound(f"elements of type {dtype.name} have no fixed width")
    raw = raw[: dtype.nbytes(count)]
    if dtype.name == "bfloat16":
        return (raw.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype.mini is not None:
        codes = unpack(raw, dtype.bits, count) if dtype.packed else raw
        return mini_float_table(dtype.name)[codes]
    if dtype.packed:
        codes = unpack(raw, dtype.bits, count)
        if dtype.kind == "uint":
            return codes
        shift = np.int8(8 - dtype.bits)
        return (codes.view(np.int8) << shift) >> shift
    if dtype.kind == "bool":
        return raw != 0
    return raw.view(dtype.storage)
