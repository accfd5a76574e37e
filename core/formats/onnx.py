"""ONNX models: ``ModelProto`` read in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from core.errors import BrokenFile, UnreadableFile
from core.formats._protobuf import BYTES, VARINT, Damage, Window, fields, signed, varint
from core.formats.head import Head
from core.formats.onnx_attributes import decode_attribute
from core.formats.onnx_findings import capabilities, findings
from core.formats.onnx_graph import GraphReader, opset
from core.formats.onnx_tensor import string_pair
from core.formats.onnx_types import Span
from core.ir import Graph, Model
from core.limits import METADATA_BYTES, NAME_BYTES
from core.source import Source

_WIRES: Final = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
"""Wire type of every field of ModelProto."""


def match(head: Head) -> int:
    """How sure the first bytes are a ModelProto, 0 to 3."""
    if head.source is None:
        return 0
    seen, broken = _top_fields(head.start)
    if not broken and 1 in seen and (7 in seen or 8 in seen or 25 in seen):
        return 3
    if head.suffix != ".onnx":
        return 0
    if seen:
        return 2
    return 0 if _is_text(head.start) else 1


def _is_text(data: bytes) -> bool:
    """Whether no byte is a control character other than white space."""
    return not data.translate(None, bytes(range(32, 256)) + b"\t\n\r\f")


def _top_fields(data: bytes) -> tuple[set[int], bool]:
    """Top-level fields in the first bytes, and whether something is no ModelProto field."""
    seen, p = set[int](), 0
    try:
        while p < len(data):
            tag, p = varint(data, p, 5)
            number, wire = tag >> 3, tag & 7
            if _WIRES.get(number) != wire:
                return seen, True
            value, p = varint(data, p, 10)
            if number == 1 and not 0 < value < 1000:
                return seen, True
            seen.add(number)
            if wire == BYTES:
                p += value
    except IndexError:
        return seen, False
    except ValueError:
        return seen, True
    return seen, False


@dataclass(slots=True)
class _Top:
    """The fields of a ModelProto as met."""

    ir_version: int = 0
    model_version: int = 0
    texts: dict[int, str] = field(default_factory=dict[int, str])
    graph: list[Span] = field(default_factory=list[Span])
    functions: list[Span] = field(default_factory=list[Span])
    opsets: dict[str, int] = field(default_factory=dict[str, int])
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    training: int = 0
    devices: int = 0


def read(head: Head) -> Model:
    """Open an ONNX model; reads its metadata from disk, no tensor values.

    Raises:
        BrokenFile: if no node, tensor or input can be recovered.
        LimitExceeded: if it has more graphs, nodes or tensors than ``core.limits`` allows.
    """
    source = head.source
    if source is None:
        raise UnreadableFile("is a folder", path=head.path)
    damage = Damage(source.path)
    reader = GraphReader(source, damage)
    top = _read_top(reader.window, damage)
    if top.graph:
        reader.read("main", top.graph)
    for span in top.functions:
        reader.read("function", [span])
    graphs = tuple(builder.finish() for builder in reader.builders)
    _refuse_nothing(top, graphs, reader, damage, source)
    custom = _custom_domains(graphs)
    return Model(
        format="onnx",
        kind="ONNX model",
        path=head.path,
        sources=tuple(reader.external.sources),
        metadata=top.metadata,
        tensors=tuple(reader.tensors),
        graphs=graphs,
        capabilities=capabilities(graphs, bool(reader.tensors), damage, custom),
        findings=findings(reader, graphs, top.opsets, custom, top.training),
        producer=" ".join(t for t in (top.texts.get(2, ""), top.texts.get(3, "")) if t),
        opsets=top.opsets,
        details=_details(top, graphs, reader),
        decode_attribute=decode_attribute,
    )


def _read_top(window: Window, damage: Damage) -> _Top:
    top, held = _Top(), 0
    for number, wire, a, b in fields(window, 0, window.size, "ModelProto", damage):
        if wire == VARINT and number == 1:
            top.ir_version = signed(a)
        elif wire == VARINT and number == 5:
            top.model_version = signed(a)
        elif wire != BYTES:
            continue
        elif number == 7:
            top.graph.append((a, b))
        elif number == 25:
            top.functions.append((a, b))
        elif number in (2, 3, 4, 6):
            top.texts[number] = window.text(a, min(b, a + NAME_BYTES))
        elif number == 8:
            domain, version = opset(window, a, b, damage)
            top.opsets[domain] = version
        elif number == 14:
            held += min(b - a, 2 * NAME_BYTES)
            if held <= METADATA_BYTES:
                key, value = string_pair(window, a, b, damage)
                top.metadata[key] = value
        elif number == 20:
            top.training += 1
        elif number == 26:
            top.devices += 1
    return top


def _refuse_nothing(top: _Top, graphs: tuple[Graph, ...], reader: GraphReader, damage: Damage, source: Source) -> None:
    """Raise where the file gives nothing to show."""
    something = bool(reader.tensors) or any(g.node_count or g.inputs for g in graphs)
    if something or (top.graph and not damage.errors):
        return
    if damage.errors:
        raise damage.errors[0]
    raise BrokenFile(
        "holds no graph", path=source.path, field="ModelProto", expected="a graph", found="none",
        hint="Export the model again.",
    )  # fmt: skip


def _custom_domains(graphs: tuple[Graph, ...]) -> dict[str, int]:
    """Operators by domain that is neither ONNX's own, ONNX Runtime's, nor defined in the file."""
    defined = {(g.domain, g.name) for g in graphs if g.kind == "function"}
    counts = dict[str, int]()
    for graph in graphs:
        c = graph.columns
        ops = [(int(d), int(o)) for d, o in zip(c.domain, c.op_type, strict=True) if d]
        for domain, op_type in ops:
            name = c.strings[domain]
            if name not in KNOWN_DOMAINS and (name, c.strings[op_type]) not in defined:
                counts[name] = counts.get(name, 0) + 1
    return counts


KNOWN_DOMAINS: Final = frozenset(
    {
        "", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training",
        "com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc", "com.microsoft.experimental",
    }
)  # fmt: skip
"""Domains whose operators ONNX or ONNX Runtime implements."""


def _details(top: _Top, graphs: tuple[Graph, ...], reader: GraphReader) -> dict[str, object]:
    facts = reader.facts[0] if reader.facts else None
    external = [{"name": s.name, "size": s.size} for s in reader.external.sources[1:]]
    return {
        "ir_version": top.ir_version,
        "model_version": top.model_version,
        "domain": top.texts.get(4, ""),
        "doc": top.texts.get(6, ""),
        "graph": graphs[0].name if graphs else "",
        "graph_doc": graphs[0].doc if graphs else "",
        "graph_metadata": facts.metadata if facts else {},
        "functions": [f"{g.domain}::{g.name}" if g.domain else g.name for g in graphs if g.kind == "function"],
        "external_files": external,
        "quantization_annotations": facts.quantized if facts else [],
        "training_infos": top.training,
        "device_configurations": top.devices,
    }
