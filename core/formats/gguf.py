"""GGUF: typed metadata, tensor infos, then aligned tensor data; versions 1 to 3, both byte orders.

Specification: gguf.md of the ggml project. Arrays of the metadata stay byte ranges.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from core.architecture import Architecture
from core.capabilities import weights_only
from core.errors import BrokenFile, ModelError
from core.formats._gguf_graph import reconstruct
from core.formats._gguf_header import ArrayValue, Header, Info, Scalar, read_header
from core.formats.head import Head
from core.ggml import FILE_TYPES, TYPES
from core.ir import ByteRange, Finding, Model, Tensor
from core.limits import ELEMENTS, FILES, check
from core.source import Source, contained

_SPLIT: Final = re.compile(r"^(?P<stem>.*)-(?P<at>\d{5})-of-(?P<of>\d{5})\.gguf$", re.IGNORECASE)
_MIX_IN_NAME: Final = re.compile(
    r"(?<![A-Z0-9])(I?Q\d_[A-Z0-9]+(?:_[SMLX]+)*|BF16|F16|F32|MXFP4|TQ[12]_0)(?![A-Z0-9])", re.I
)


def match(head: Head) -> int:
    """3 where the file begins with ``GGUF``, 1 by suffix alone."""
    if head.source is None:
        return 0
    if head.start[:4] == b"GGUF":
        return 3
    return 1 if head.suffix == ".gguf" else 0


def read(head: Head) -> Model:
    """Open a GGUF file, with its other splits where the name says there are some.

    Raises:
        BrokenFile: if the header of the opened file cannot be read at all.
    """
    assert head.source is not None
    first = read_header(head.source)
    sources, headers, findings = [head.source], [first], list(first.findings)
    _open_splits(head, sources, headers, findings)
    tensors = [
        _tensor(info, place, header, sources[place]) for place, header in enumerate(headers) for info in header.tensors
    ]
    findings += [
        Finding("gguf.tensor", "error", f"Tensor {t.name[:200]!r}: {t.problem}.", f"tensor {t.name[:200]}")
        for t in tensors
        if t.problem
    ][:200]
    findings += _overlaps(tensors, sources) + _repeated(tensors) + _mix_findings(head, first, tensors)
    architecture = _architecture(first)
    graph = reconstruct(tensors, architecture)
    words = "The graph is reconstructed from the architecture name and the tensor names." if graph else ""
    return Model(
        format="gguf",
        kind="GGUF model",
        path=head.path,
        sources=tuple(sources),
        metadata=_metadata(first),
        tensors=tuple(tensors),
        graphs=(graph,) if graph else (),
        capabilities=weights_only("GGUF file", graph=words),
        findings=tuple(findings),
        producer=str(first.values.get("general.quantized_by", "")),
        details=_details(first, tensors, architecture),
    )


def _tensor(info: Info, place: int, header: Header, source: Source) -> Tensor:
    """The tensor with its byte range checked against the file."""
    kind = TYPES.get(info.type_id)
    shape = tuple(reversed(info.dims))
    elements = 1
    for size in shape:
        elements *= size
    if elements > ELEMENTS:
        return Tensor(info.name, "opaque", (), None, problem=f"shape {list(shape)} has too many elements")
    start = header.data_start + info.offset
    if kind is None:
        problem = f"GGML type {info.type_id} is unknown; its bytes are kept but not decoded"
        stop = min(source.size, header.data_start + header.next_offset(info))
        data = ByteRange(place, start, stop) if start <= stop else None
        return Tensor(info.name, "opaque", shape, data, encoding=f"ggml.{info.type_id}", problem=problem)
    dtype = kind.plain or "float32"
    plain = Tensor(info.name, dtype, shape, None, encoding=kind.encoding)
    if shape and shape[-1] % kind.block:
        return replace(plain, problem=f"a row has {shape[-1]} elements, {kind.name} needs a multiple of {kind.block}")
    if info.offset % header.alignment:
        return replace(plain, problem=f"its offset {info.offset} is no multiple of the alignment {header.alignment}")
    stop = start + elements // kind.block * kind.nbytes
    if stop > source.size:
        return replace(plain, problem=f"its bytes {start} to {stop} leave the file, which has {source.size}")
    encoding = "big" if header.big_endian and kind.plain and kind.nbytes > 1 else kind.encoding
    problem = ""
    if header.big_endian and not kind.plain:
        problem = f"{kind.name} blocks of a big-endian file are not decoded"
    return replace(plain, data=ByteRange(place, start, stop), encoding=encoding, problem=problem)


def _open_splits(head: Head, sources: list[Source], headers: list[Header], findings: list[Finding]) -> None:
    found = _SPLIT.match(Path(head.path).name)
    said = headers[0].values.get("split.count")
    if found is None:
        if isinstance(said, int) and said > 1:
            text = f"split.count says {said} files, the name has no -00001-of-{said:05d} part; only this one is shown."
            findings.append(Finding("gguf.split", "warning", text))
        return
    count = check("the number of splits", int(found["of"]), FILES, path=head.path)
    if isinstance(said, int) and said != count:
        findings.append(Finding("gguf.split", "warning", f"split.count says {said} files, the name says {count}."))
    for at in range(1, count + 1):
        name = f"{found['stem']}-{at:05d}-of-{found['of']}.gguf"
        if at == int(found["at"]):
            continue
        try:
            source = Source(contained(head.folder, name), name)
            header = read_header(source)
        except ModelError as error:
            findings.append(
                Finding("gguf.split", "error", f"Split {at} of {count} is not shown: {error}.", f"file {name}")
            )
            continue
        sources.append(source)
        headers.append(header)
        findings.extend(header.findings)
    total, expected = sum(len(h.tensors) for h in headers), headers[0].values.get("split.tensors.count")
    if isinstance(expected, int) and expected != total:
        findings.append(
            Finding("gguf.split", "error", f"split.tensors.count says {expected} tensors, {total} were found.")
        )


def _overlaps(tensors: list[Tensor], sources: list[Source]) -> list[Finding]:
    findings: list[Finding] = []
    placed = [(t.data.source, t.data.start, t.data.stop, t.name) for t in tensors if isinstance(t.data, ByteRange)]
    placed.sort()
    for before, after in pairwise(placed):
        if before[0] == after[0] and after[1] < before[2] and after[2] > after[1]:
            text = f"Tensors {before[3][:200]!r} and {after[3][:200]!r} overlap in {sources[after[0]].name}."
            findings.append(Finding("gguf.overlap", "error", text, f"byte {after[1]}"))
    return findings[:100]


def _repeated(tensors: list[Tensor]) -> list[Finding]:
    counts = Counter(t.name for t in tensors)
    return [
        Finding("gguf.duplicate", "error", f"{count} tensors are called {name[:200]!r}.", f"tensor {name[:200]}")
        for name, count in counts.items()
        if count > 1
    ][:100]


def _mix(tensors: list[Tensor]) -> dict[str, dict[str, float]]:
    """Tensors, elements and bytes by stored type, most bytes first."""
    mix: dict[str, dict[str, float]] = {}
    for tensor in tensors:
        if tensor.data is None:
            continue
        name = tensor.encoding.removeprefix("ggml.") if tensor.encoding.startswith("ggml.") else tensor.dtype
        row = mix.setdefault(name, {"tensors": 0, "elements": 0, "bytes": 0})
        row["tensors"] += 1
        row["elements"] += tensor.elements
        row["bytes"] += tensor.nbytes
    for row in mix.values():
        row["bits_per_weight"] = 8 * row["bytes"] / row["elements"] if row["elements"] else 0.0
    return dict(sorted(mix.items(), key=lambda item: -item[1]["bytes"]))


def _mix_findings(head: Head, header: Header, tensors: list[Tensor]) -> list[Finding]:
    """Whether the name of the file promises a quantization that its tensors do not have."""
    mix = _mix([t for t in tensors if len(t.shape) > 1])
    promises = [(name.upper(), "name of the file") for name in _MIX_IN_NAME.findall(Path(head.path).name)]
    declared = header.values.get("general.file_type")
    if isinstance(declared, int) and declared in FILE_TYPES:
        promises.append((FILE_TYPES[declared], "metadata"))
    shares = ", ".join(f"{kind} {100 * row['bytes'] / _total(mix):.0f} %" for kind, row in list(mix.items())[:3])
    return [
        Finding("gguf.mix", "warning", f"{promise} in the {where}, the matrices say {shares} of the bytes.")
        for promise, where in promises
        if mix and not _kept(promise, mix)
    ]


def _kept(promise: str, mix: Mapping[str, object]) -> bool:
    """Whether any matrix has the promised type (``Q4_K_M`` promises some q4_k)."""
    base = re.sub(r"_(XS|[SML]|XL|MOE)$", "", promise).lower()
    base = {"f16": "float16", "f32": "float32", "bf16": "bfloat16"}.get(base, base)
    return any(kind.startswith(base) or base.startswith(kind) for kind in mix)


def _total(mix: Mapping[str, Mapping[str, float]]) -> float:
    return sum(row["bytes"] for row in mix.values()) or 1.0


def _metadata(header: Header) -> dict[str, str]:
    return {key: _shown(value) for key, value in header.values.items()}


def _shown(value: Scalar | ArrayValue) -> str:
    if isinstance(value, ArrayValue):
        return f"[{value.count} x {value.type_name}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _details(header: Header, tensors: list[Tensor], architecture: Architecture | None) -> dict[str, object]:
    details: dict[str, object] = {
        "version": header.version,
        "byte_order": "big" if header.big_endian else "little",
        "alignment": header.alignment,
        "mix": _mix(tensors),
        "arrays": {
            k: {"type": v.type_name, "count": v.count} for k, v in header.values.items() if isinstance(v, ArrayValue)
        },
    }
    if architecture is not None:
        details["architecture"] = architecture.to_json()
    return details


def _architecture(header: Header) -> Architecture | None:
    """Sizes from ``general.architecture`` and the keys that begin with its name."""
    name = header.values.get("general.architecture")
    if not isinstance(name, str) or not name:
        return None

    def size(key: str) -> int | None:
        value = header.values.get(f"{name}.{key}")
        return value if type(value) is int and 0 < value < 1 << 48 else None

    heads, hidden = size("attention.head_count"), size("embedding_length")
    tokens = header.values.get("tokenizer.ggml.tokens")
    vocabulary = size("vocab_size") or (tokens.count if isinstance(tokens, ArrayValue) else None)
    title = header.values.get("general.name")
    return Architecture(
        name=title if isinstance(title, str) else name,
        model_type=name,
        source="GGUF metadata",
        layers=size("block_count"),
        heads=heads,
        kv_heads=size("attention.head_count_kv") or heads,
        head_dim=size("attention.key_length") or (hidden // heads if hidden and heads else None),
        hidden=hidden,
        feed_forward=size("feed_forward_length"),
        vocabulary=vocabulary,
        context=size("context_length"),
        experts=size("expert_count"),
    )


@dataclass(frozen=True, slots=True)
class ArrayPage:
    """A page of one metadata array."""

    key: str
    start: int
    count: int
    items: tuple[Scalar, ...]


def array_page(model: Model, key: str, start: int = 0, limit: int = 100) -> ArrayPage:
    """Items ``start`` to ``start + limit`` of a metadata array; reads the header and their bytes.

    Raises:
        BrokenFile: if there is no such array.
    """
    array = read_header(model.sources[0]).values.get(key)
    if not isinstance(array, ArrayValue):
        raise BrokenFile(f"has no metadata array {key[:200]!r}", path=model.path)
    items = array.items(model.sources[0], start, min(limit, max(0, array.count - start)))
    return ArrayPage(key, start, array.count, items)
