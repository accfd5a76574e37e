"""StableHLO and other MLIR: the text in full, the header of bytecode.

Bytecode header: "MLIR Bytecode Format" (magic ``ML\\xefR``, version, producer, sections).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from core.capabilities import described_graph
from core.errors import BrokenFile
from core.formats._mlir_graph import MlirGraphs
from core.formats._mlir_parse import Operation, Parser
from core.formats._mlir_text import compact, tokens
from core.formats.head import Head
from core.ir import Finding, Model
from core.limits import MIB, check
from core.source import Source

MAGIC: Final = b"ML\xefR"
_STARTS: Final = re.compile(
    rb"\A(?:\s|//[^\n]*\n|#\w+ ?=[^\n]*\n)*(?:module\b|\"builtin\.module\"|func\.func\b|\"func\.func\"|%[\w#]+ ?=)"
)
_DIALECT_BYTES: Final = 64 * MIB


def match(head: Head) -> int:
    """3 for MLIR bytecode or text that begins with a module or a function."""
    if head.source is None:
        return 0
    if head.start.startswith(MAGIC):
        return 3
    if _STARTS.match(head.start):
        return 3 if b"{" in head.start or b"dense" in head.start else 2
    return 1 if head.suffix in (".mlir", ".stablehlo", ".mlirbc") else 0


def read(head: Head) -> Model:
    """Open MLIR: text is read once, long payloads stay in the file; of bytecode only its header.

    Raises:
        BrokenFile: if the text is not MLIR. LimitExceeded: beyond the bounds of text or nesting.
    """
    assert head.source is not None
    return _bytecode(head, head.source) if head.start.startswith(MAGIC) else _text(head, head.source)


def _text(head: Head, source: Source) -> Model:
    compacted = compact(source)
    operations = Parser(tokens(compacted.text, head.path), head.path).operations()
    graphs = MlirGraphs(operations, compacted.payloads)
    dialects = _dialects(operations)
    module = next((o for o in operations if o.name in ("module", "builtin.module")), None)
    problems = [
        Finding("mlir.constant", "error", f"Constant {t.name[:200]!r}: {t.problem}.", f"tensor {t.name[:200]}")
        for t in graphs.tensors
        if t.problem
    ]
    kind = "StableHLO module" if "stablehlo" in dialects else "MLIR module"
    return Model(
        format="stablehlo",
        kind=kind,
        path=head.path,
        sources=(source,),
        metadata={k: v[:10_000] for k, v in module.attributes.items()} if module else {},
        tensors=tuple(graphs.tensors),
        graphs=graphs.graphs,
        capabilities=described_graph(kind, tensors=("available", "")),
        findings=(*graphs.findings, *problems),
        details={"dialects": dialects, "module": module.symbol.removeprefix("@") if module else ""},
    )


def _dialects(operations: list[Operation]) -> dict[str, int]:
    """Operations by dialect, most first."""
    counts: Counter[str] = Counter()
    pending = list(operations)
    while pending:
        operation = pending.pop()
        counts[operation.name.partition(".")[0] if "." in operation.name else "builtin"] += 1
        pending.extend(o for region in operation.regions for o in region.operations)
    return dict(counts.most_common())


# --- bytecode ---------------------------------------------------------------------------


class _Bytes:
    """Reads the variable-length integers of MLIR bytecode."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self.at, self.path = data, 0, path

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise BrokenFile("is cut off", path=self.path, byte=self.at, field="bytecode")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """A prefix varint: trailing zero bits of the first byte count the bytes that follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        extra = (first & -first).bit_length() - 1
        return (first | int.from_bytes(self.take(extra), "little") << 8) >> (extra + 1)

    def take(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise BrokenFile("is cut off", path=self.path, byte=self.at, field="bytecode", expected=f"{length} bytes")
        self.at += length
        return self.data[self.at - length : self.at]


def _bytecode(head: Head, source: Source) -> Model:
    check("the size of the bytecode", source.size, 4096 * MIB, path=head.path)
    cursor = _Bytes(source.read(0, min(source.size, _DIALECT_BYTES)), head.path)
    cursor.take(4)
    version = cursor.number()
    end = cursor.data.find(b"\0", cursor.at, cursor.at + 1000)
    if end < 0:
        raise BrokenFile("has no end", path=head.path, byte=cursor.at, field="producer")
    producer = cursor.take(end - cursor.at).decode("utf-8", "replace")
    cursor.take(1)
    dialects, findings = _bytecode_dialects(cursor)
    reason = "MLIR bytecode is not decoded beyond its header; save the module as text (.mlir) to see its graph."
    unreadable = ("unavailable", reason)
    return Model(
        format="stablehlo",
        kind="MLIR bytecode",
        path=head.path,
        sources=(source,),
        metadata={"bytecode version": str(version), "dialects": ", ".join(dialects)},
        tensors=(),
        graphs=(),
        capabilities=described_graph("MLIR bytecode", graph=unreadable, tensors=unreadable),
        findings=(*findings, Finding("mlir.bytecode", "info", reason)),
        producer=producer,
        details={"dialects": dict.fromkeys(dialects, 0), "bytecode_version": version},
    )


def _bytecode_dialects(cursor: _Bytes) -> tuple[list[str], list[Finding]]:
    """Names from the string (0) and dialect (1) sections; a finding where they are damaged."""
    sections: dict[int, _Bytes] = {}
    try:
        while cursor.at < len(cursor.data) and not {0, 1} <= sections.keys():
            kind, body = _section(cursor)
            sections[kind] = body
        if {0, 1} <= sections.keys():
            return _dialect_names(sections[1], _strings(sections[0])), []
    except BrokenFile as error:
        return [], [Finding("mlir.bytecode_damaged", "error", f"The sections are damaged: {error.message}.")]
    return [], []


def _section(cursor: _Bytes) -> tuple[int, _Bytes]:
    """Identifier and body of the next section; its top bit says that an alignment follows."""
    mark, length = cursor.byte(), cursor.number()
    if mark & 0x80:
        cursor.number()
        while cursor.at < len(cursor.data) and cursor.data[cursor.at] == 0xCB:
            cursor.at += 1
    return mark & 0x7F, _Bytes(cursor.take(length), cursor.path)


def _strings(body: _Bytes) -> list[str]:
    """Lengths in reverse order, then all strings, each with its NUL."""
    count = check("the number of strings", body.number(), len(body.data), path=body.path)
    lengths = [body.number() for _ in range(count)]
    return [body.take(length)[:-1].decode("utf-8", "replace") for length in reversed(lengths)]


def _dialect_names(body: _Bytes, texts: list[str]) -> list[str]:
    count = check("the number of dialects", body.number(), len(body.data), path=body.path)
    names: list[str] = []
    for _ in range(count):
        encoded = body.number()
        index = encoded >> 1
        if encoded & 1:
            _section(body)  # the version, in the dialect's own encoding
        if index < len(texts):
            names.append(texts[index])
    return names
