"""NumPy ``.npy``: one array after a Python-literal header that is parsed, never evaluated.

Specification: NEP 1; versions 1.0 (2-byte length, latin-1), 2.0 and 3.0 (4-byte length, UTF-8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from core.capabilities import weights_only
from core.dtypes import DTYPES
from core.errors import BrokenFile
from core.formats.head import Head
from core.ir import ByteRange, Finding, Model, Tensor
from core.limits import ELEMENTS, MIB, RANK
from core.source import Source

MAGIC: Final = b"\x93NUMPY"
HEADER_BOUND: Final = 1 * MIB

_HEADER: Final = re.compile(
    r"""\{\s*'descr':\s*(?P<descr>'[^']{0,64}'|\[.{0,65536}\])\s*,
        \s*'fortran_order':\s*(?P<fortran>True|False)\s*,
        \s*'shape':\s*\((?P<shape>[0-9,\s]{0,2048})\)\s*,?\s*\}\s*\Z""",
    re.VERBOSE | re.DOTALL,
)
PLAIN: Final[dict[str, str]] = {
    "b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
    "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64",
    "c16": "complex128",
}  # fmt: skip
"""Our element types by numpy's type strings without their byte order."""


@dataclass(frozen=True, slots=True)
class Header:
    """A checked header.

    Attributes:
        dtype: element type name, ``opaque`` where it is none of ours.
        descr: as written in the file.
        length: bytes before the first element.
    """

    dtype: str
    descr: str
    big_endian: bool
    fortran: bool
    shape: tuple[int, ...]
    length: int


def match(head: Head) -> int:
    """3 where the file begins with the magic bytes."""
    return 3 if head.source is not None and head.start.startswith(MAGIC) else 0


def read(head: Head) -> Model:
    """Open one ``.npy`` file; reads its header.

    Raises:
        BrokenFile: if the header is not what NEP 1 describes.
    """
    assert head.source is not None
    name = head.source.name.removesuffix(".npy")
    tensor = tensor_of(name, parse(head.source, 0, head.size), 0, 0, head.size)
    return array_model(head, "npy", "NumPy array", (tensor,))


def array_model(
    head: Head, short: str, kind: str, tensors: tuple[Tensor, ...], extra: tuple[Finding, ...] = ()
) -> Model:
    """A model of plain arrays; every undecodable one becomes a finding."""
    assert head.source is not None
    findings = [
        Finding(_code(t), "error", f"Array {t.name[:200]!r}: {t.problem}.", f"tensor {t.name[:200]}")
        for t in tensors
        if t.problem
    ]
    return Model(
        format=short,
        kind=kind,
        path=head.path,
        sources=(head.source,),
        metadata={},
        tensors=tensors,
        graphs=(),
        capabilities=weights_only(f"{kind} file", graph="The array names are shown as a tree."),
        findings=(*extra, *findings),
        producer="NumPy",
    )


def parse(source: Source, start: int, stop: int) -> Header:
    """Read and check the header of the array in bytes ``start`` to ``stop``.

    Raises:
        BrokenFile: with the field that is wrong.
    """
    fixed = source.read(start, min(start + 12, stop))
    length = min(_declared(fixed) + 12, HEADER_BOUND + 12, stop - start) if len(fixed) >= 10 else len(fixed)
    return parse_bytes(source.read(start, start + length), stop - start, source, start)


def parse_bytes(data: bytes, size: int, source: Source, byte: int = 0) -> Header:
    """Check the header at the beginning of ``data``, of an array that has ``size`` bytes in all.

    Raises:
        BrokenFile: with the field that is wrong; ``source`` and ``byte`` are for the message.
    """
    path = source.path
    if len(data) < 10 or not data.startswith(MAGIC):
        raise BrokenFile("is no NumPy array", path=path, byte=byte, field="magic", found=data[:6].hex(" "))
    wide = data[6] >= 2
    if data[6] not in (1, 2, 3) or (wide and len(data) < 12):
        found = f"{data[6]}.{data[7]}"
        raise BrokenFile("is unknown", path=path, byte=byte + 6, field="version", expected="1 to 3", found=found)
    begin, length = (12 if wide else 10), _declared(data)
    bound = min(HEADER_BOUND, size - begin)
    if length > bound:
        expected = f"at most {bound}"
        raise BrokenFile(
            "is impossible", path=path, byte=byte + 8, field="header length", expected=expected, found=length
        )
    text = data[begin : begin + length].decode("utf-8" if data[6] == 3 else "latin-1", "replace")
    return _header(text, begin + length, source, byte + begin)


def _declared(data: bytes) -> int:
    return int.from_bytes(data[8:12], "little") if data[6] >= 2 else int.from_bytes(data[8:10], "little")


def _header(text: str, length: int, source: Source, byte: int) -> Header:
    found = _HEADER.match(text.strip())
    if found is None:
        expected = "{'descr': ..., 'fortran_order': ..., 'shape': (...), }"
        problem = "is not the plain literal it must be"
        raise BrokenFile(problem, path=source.path, byte=byte, field="header", expected=expected, found=repr(text[:60]))
    sizes = [part.strip() for part in found["shape"].split(",") if part.strip()]
    if len(sizes) > RANK or any(not size.isdigit() or len(size) > 18 for size in sizes):
        raise BrokenFile("is unusable", path=source.path, byte=byte, field="shape", found=found["shape"][:80])
    descr = found["descr"].strip("'")
    order, code = (descr[:1], descr[1:]) if descr[:1] in "<>|=" else ("|", descr)
    return Header(
        dtype=PLAIN.get(code, "opaque"),
        descr=descr,
        big_endian=order == ">",
        fortran=found["fortran"] == "True",
        shape=tuple(map(int, sizes)),
        length=length,
    )


def tensor_of(name: str, header: Header, source: int, start: int, stop: int) -> Tensor:
    """The array as a tensor over bytes of ``model.sources[source]``; damaged ones say why."""
    plain = Tensor(name, header.dtype, header.shape, None)
    begin = start + header.length
    if header.dtype == "opaque":
        return _refused(plain, header)
    if plain.elements > ELEMENTS:
        return Tensor(name, header.dtype, (), None, problem=f"shape {header.shape} has too many elements")
    needs = DTYPES[header.dtype].nbytes(plain.elements)
    if begin + needs > stop:
        problem = f"shape {header.shape} of {header.descr} needs {needs} bytes, the file has {max(0, stop - begin)}"
        return Tensor(name, header.dtype, header.shape, None, problem=problem)
    return Tensor(
        name,
        header.dtype,
        header.shape,
        ByteRange(source, begin, begin + needs),
        encoding="big" if header.big_endian and DTYPES[header.dtype].bits > 8 else "plain",
        strides=column_major(header.shape) if header.fortran and len(header.shape) > 1 else None,
    )


def _refused(tensor: Tensor, header: Header) -> Tensor:
    if "O" in header.descr:
        problem = "holds Python objects, a pickle that numpy would execute on loading; its bytes are not decoded"
    elif header.descr[:2] in ("<U", ">U", "|S"):
        problem = f"holds text of type {header.descr}, which is not decoded"
    else:
        problem = f"element type {header.descr[:60]} is not a plain number"
    return Tensor(tensor.name, "opaque", tensor.shape, None, problem=problem)


def _code(tensor: Tensor) -> str:
    return "pickle.object_array" if "pickle" in tensor.problem else "npy.array"


def column_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Steps in elements of an array stored first axis fastest (Fortran order)."""
    strides, step = list[int](), 1
    for size in shape:
        strides.append(step)
        step *= size
    return tuple(strides)
