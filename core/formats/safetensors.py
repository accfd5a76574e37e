"""safetensors: an 8-byte length, a JSON header, then the bytes of all tensors.

Specification: the format section of the safetensors README; header length little-endian,
at most 100 MB, offsets relative to the end of the header, no holes, no overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeGuard

from core.capabilities import weights_only
from core.dtypes import DTYPES
from core.errors import BrokenFile
from core.formats import _json
from core.formats._json import Json
from core.formats.head import Head
from core.ir import ByteRange, Finding, Model, Tensor
from core.limits import ELEMENTS, HEADER_BYTES, RANK, TENSORS, check
from core.source import Source

DTYPE_NAMES: Final[dict[str, str]] = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8e4m3fn",
    "F8_E5M2": "float8e5m2",
    "F8_E4M3FNUZ": "float8e4m3fnuz",
    "F8_E5M2FNUZ": "float8e5m2fnuz",
    "F8_E8M0": "float8e8m0",
    "F6_E2M3": "float6e2m3",
    "F6_E3M2": "float6e3m2",
    "F4": "float4e2m1",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}
"""Element types by their names in the header (safetensors 0.8)."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The header of one file, checked entry by entry.

    Attributes:
        tensors: in the order of their bytes; those that cannot be read carry ``problem``.
    """

    tensors: tuple[Tensor, ...]
    metadata: dict[str, str]
    findings: tuple[Finding, ...]


def match(head: Head) -> int:
    """3 where a header length and an opening brace fit the file, 1 by suffix alone."""
    if head.source is None:
        return 0
    if (
        len(head.start) >= 9
        and head.start[8:9] == b"{"
        and 2 <= int.from_bytes(head.start[:8], "little") <= head.size - 8
    ):
        return 3
    return 1 if head.suffix == ".safetensors" else 0


def read(head: Head) -> Model:
    """Open one safetensors file; reads its header.

    Raises:
        BrokenFile: if the header cannot be read at all.
    """
    assert head.source is not None
    shard = read_shard(head.source, 0)
    return Model(
        format="safetensors",
        kind="safetensors file",
        path=head.path,
        sources=(head.source,),
        metadata=shard.metadata,
        tensors=shard.tensors,
        graphs=(),
        capabilities=weights_only("safetensors file"),
        findings=shard.findings,
        producer=shard.metadata.get("format", ""),
    )


def read_shard(source: Source, place: int) -> Shard:
    """Read and check the header of one file that becomes ``model.sources[place]``.

    Raises:
        BrokenFile: if the length or the JSON is unusable.
    """
    header, begin = _header(source)
    raw_metadata = header.pop("__metadata__", None)
    metadata, findings = _metadata(raw_metadata)
    check("the number of tensors", len(header), TENSORS, path=source.path)
    size = source.size - begin
    tensors = [_tensor(name, entry, begin, size, place) for name, entry in header.items()]
    tensors.sort(key=_start)
    findings += [
        Finding("safetensors.tensor", "error", f"Tensor {t.name[:200]!r}: {t.problem}.", f"tensor {t.name[:200]}")
        for t in tensors
        if t.problem
    ]
    findings += _coverage(tensors, begin, source)
    return Shard(tuple(tensors), metadata, tuple(findings))


def _header(source: Source) -> tuple[dict[str, Json], int]:
    if source.size < 8:
        raise BrokenFile("is too short", path=source.path, field="file", expected="at least 8 bytes", found=source.size)
    length = int.from_bytes(source.read(0, 8), "little")
    room = source.size - 8
    if length > min(room, HEADER_BYTES):
        bound = f"at most {min(room, HEADER_BYTES)}"
        raise BrokenFile("is impossible", path=source.path, byte=0, field="header length", expected=bound, found=length)
    data = b"".join(source.blocks(8, 8 + length))
    return _json.parse_object(data, path=source.path, what="header", byte=8), 8 + length


def _metadata(raw: Json) -> tuple[dict[str, str], list[Finding]]:
    if raw is None:
        return {}, []
    if not isinstance(raw, dict):
        text = f"__metadata__ is {_json.kind(raw)}, expected an object of strings."
        return {}, [Finding("safetensors.metadata", "error", text)]
    findings = [
        Finding("safetensors.metadata", "error", f"__metadata__ entry {_json.text(key)[:100]!r} is no string.")
        for key, value in raw.items()
        if not isinstance(value, str)
    ]
    return {_json.text(k): _json.text(v) for k, v in raw.items() if isinstance(v, str)}, findings


def _tensor(name: str, entry: Json, begin: int, size: int, place: int) -> Tensor:
    shown = name if name.isascii() else _json.text(name)
    if isinstance(entry, dict):
        dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
        known = DTYPE_NAMES.get(dtype) if type(dtype) is str else None
        if known and _sizes(shape, RANK) and _sizes(offsets, 2) and len(offsets) == 2:
            start, stop = offsets
            tensor = Tensor(shown, known, tuple(shape), ByteRange(place, begin + start, begin + stop))
            elements = tensor.elements
            if start <= stop <= size and elements <= ELEMENTS and _fits(known, elements, stop - start):
                return tensor
    return _damaged(shown, entry, begin, size)


def _sizes(value: Json, bound: int) -> TypeGuard[list[int]]:
    return type(value) is list and len(value) <= bound and all(type(v) is int and v >= 0 for v in value)


def _fits(dtype: str, elements: int, nbytes: int) -> bool:
    return elements * DTYPES[dtype].bits == nbytes * 8


def _damaged(name: str, entry: Json, begin: int, size: int) -> Tensor:
    """The tensor without data, with the first thing that is wrong in words."""
    if not isinstance(entry, dict):
        return Tensor(name, "opaque", (), None, problem=f"its entry is {_json.kind(entry)}, expected an object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    known = DTYPE_NAMES.get(dtype) if isinstance(dtype, str) else None
    if known is None:
        problem = f"dtype {str(dtype)[:40]!r} is unknown"
        return Tensor(name, "opaque", _known_shape(shape), None, problem=problem)
    if not _sizes(shape, RANK):
        problem = f"shape {str(shape)[:80]} is not a list of at most {RANK} sizes of 0 or more"
        return Tensor(name, known, (), None, problem=problem)
    plain = Tensor(name, known, tuple(shape), None)
    if not _sizes(offsets, 2) or len(offsets) != 2:
        return _with(plain, f"data_offsets {str(offsets)[:80]} are not two whole numbers of 0 or more")
    start, stop = offsets
    if stop < start:
        return _with(plain, f"data_offsets end before they begin ({start} to {stop})")
    if stop > size:
        return _with(plain, f"data_offsets end at {stop}, the file has {size} bytes of data (byte {begin + size})")
    if plain.elements > ELEMENTS:
        return _with(Tensor(name, known, (), None), f"shape {str(shape)[:80]} has too many elements")
    bits = plain.elements * DTYPES[known].bits
    needs = f"{bits // 8} bytes" if bits % 8 == 0 else f"{bits} bits, which is no whole number of bytes"
    return _with(plain, f"shape {str(shape)[:80]} of {dtype} needs {needs}, data_offsets give {stop - start}")


def _known_shape(shape: Json) -> tuple[int, ...]:
    return tuple(shape) if _sizes(shape, RANK) else ()


def _with(tensor: Tensor, problem: str) -> Tensor:
    return Tensor(tensor.name, tensor.dtype, tensor.shape, None, problem=problem)


def _start(tensor: Tensor) -> int:
    return tensor.data.start if isinstance(tensor.data, ByteRange) else -1


def _coverage(tensors: list[Tensor], begin: int, source: Source) -> list[Finding]:
    """Overlaps, holes and bytes that belong to no tensor (``tensors`` ordered by start)."""
    findings: list[Finding] = []
    at, before = begin, ""
    for tensor in tensors:
        data = tensor.data
        if not isinstance(data, ByteRange):
            continue
        if data.start < at and data.nbytes:
            name = f"Tensor {tensor.name[:200]!r}"
            text = f"{name} begins at byte {data.start}, inside {before[:200]!r}, which ends at {at}."
            findings.append(Finding("safetensors.overlap", "error", text, f"byte {data.start}"))
        elif data.start > at:
            text = f"Bytes {at} to {data.start} belong to no tensor."
            findings.append(Finding("safetensors.hole", "error", text, f"byte {at}"))
        if data.stop > at:
            at, before = data.stop, tensor.name
    if at < source.size:
        text = f"Bytes {at} to {source.size} at the end of the file belong to no tensor."
        findings.append(Finding("safetensors.trailing", "error", text, f"byte {at}"))
    return findings[:100]
