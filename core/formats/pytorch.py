"""PyTorch checkpoints: the zip layout, the legacy layout, and plain pickles beside them.

Layouts: torch/serialization.py (``_save`` and ``_legacy_save``) and caffe2's PyTorchStreamWriter.
Nothing is unpickled: every pickle is walked opcode by opcode (``_pickle``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

from core.capabilities import described_graph, weights_only
from core.dtypes import DTYPES
from core.errors import BrokenFile, ModelError
from core.formats import _fx_graph, _pickle_safety
from core.formats._pickle import Pickle, walk
from core.formats._pickle_objects import Call, as_dict
from core.formats._torch_archive import member_bytes
from core.formats._torch_objects import Storage, modules, scalars, tensors
from core.formats._torch_tensors import StorageBytes, findings_of, tie
from core.formats._zip import Archive, Member
from core.formats.head import Head
from core.ir import ByteRange, Finding, Model, Tensor
from core.limits import KIB, MIB
from core.source import Source

PICKLE_BYTES: Final = 256 * MIB
LEGACY_MAGIC: Final = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""Pickle of the number 0x1950a86a20f9469cfc6c, which begins a legacy file."""

_SUFFIXES: Final = (".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".tar", ".t7")
_TEXT_PICKLE: Final = re.compile(rb"\A(?:c[\w.]+\n[\w.]+\n|\((?:[SIVlpdi(c]|dp)|\]|\}|i[\w.]+\n)")


def match(head: Head) -> int:
    """3 for a zip with a ``data.pkl`` or a legacy file, 2 for a pickle by its first opcodes."""
    if head.source is None:
        return 0
    if head.start.startswith(LEGACY_MAGIC):
        return 3
    if b"data.pkl" in head.tail and b"PK\5\6" in head.tail:
        return 3
    if head.start.startswith(b"PK") and (b"data.pkl" in head.start[:4096] or head.suffix in (".pt", ".pth", ".ckpt")):
        return 3 if b"data.pkl" in head.start[:4096] else 1
    if head.start[:1] == b"\x80" and head.start[1:2] in (b"\1", b"\2", b"\3", b"\4", b"\5"):
        return 2
    return 1 if head.suffix in _SUFFIXES and _TEXT_PICKLE.match(head.start) else 0


def read(head: Head) -> Model:
    """Open a checkpoint; walks its pickles, reads no tensor.

    Raises:
        BrokenFile: if neither an archive nor a pickle can be read.
    """
    assert head.source is not None
    if head.start.startswith(LEGACY_MAGIC):
        return _legacy(head, head.source)
    if head.start.startswith(b"PK") or b"PK\5\6" in head.tail:
        return read_archive(head, Archive(head.source))[0]
    return _plain(head, head.source)


# --- zip --------------------------------------------------------------------------------


def read_archive(head: Head, archive: Archive) -> tuple[Model, Any, str]:
    """The checkpoint in an archive, the object its ``data.pkl`` describes, and its root folder.

    Raises:
        BrokenFile: if there is no ``data.pkl``.
    """
    pickles = [m for m in archive.members if m.name.endswith(".pkl") and not m.link]
    main = next((m for m in pickles if m.name.rsplit("/", 1)[-1] == "data.pkl"), None)
    if main is None:
        raise BrokenFile("is a zip archive without a data.pkl", path=head.path)
    findings = list(archive.findings)
    root = main.name.removesuffix("data.pkl")
    value: Any = None
    roots = [m.name for m in pickles if m.name.rsplit("/", 1)[-1] == "data.pkl"]
    if len(set(roots)) > 1:
        text = f"There is more than one data.pkl ({', '.join(r[:80] for r in roots[:3])}); {main.name[:80]!r} is shown."
        findings.append(Finding("pytorch.roots", "error", text))
    for member in pickles[:1000]:
        walked = _member_pickle(archive, member, findings)
        if member is main and walked is not None:
            value = walked.value
    order = _byte_order(archive, root, findings)
    found = list(tensors(value))
    keys = {f.storage.key: f.storage for f in found if f.storage is not None}
    numbers: dict[str, int] = {}
    tied = tie(found, {key: member_bytes(archive, f"{root}data/{key}", order) for key in keys}, numbers)
    model = _model(head, value, tied, findings, "PyTorch checkpoint")
    return (_with_graph(model, value) if _fx_graph.is_graph_module(value) else model), value, root


def _with_graph(model: Model, value: Call) -> Model:
    """An FX GraphModule: the graph of its generated forward, where it can be recovered."""
    kind = "FX GraphModule"
    places = {tensor.name: index for index, tensor in enumerate(model.tensors)}
    try:
        graph, findings = _fx_graph.recover(value, places, model.path)
    except ModelError as error:
        lost = Finding("fx.code", "error", f"The graph cannot be recovered: {error.message}.")
        return replace(model, kind=kind, findings=(*model.findings, lost))
    reason = "The graph is recovered from the generated forward code, which is parsed as text and never run."
    capabilities = described_graph(kind, graph=("partial", reason), tensors=("available", ""))
    return replace(model, kind=kind, graphs=(graph,), capabilities=capabilities, findings=(*model.findings, *findings))


def not_a_module(path: str) -> BrokenFile:
    """The error for a TorchScript archive whose object is no module."""
    return BrokenFile("data.pkl holds no module", path=path)


def _member_pickle(archive: Archive, member: Member, findings: list[Finding]) -> Pickle | None:
    try:
        data = archive.read(member, PICKLE_BYTES)
    except ModelError as error:
        findings.append(Finding("pytorch.pickle", "error", f"{member.name[:200]!r} cannot be read: {error.message}."))
        return None
    walked = walk(data)
    _report(walked, f"{member.name[:120]!r}", findings)
    return walked


def _report(walked: Pickle, where: str, findings: list[Finding]) -> None:
    findings.extend(_pickle_safety.findings(walked.globals, where))
    if walked.damage is not None:
        text, byte = walked.damage
        findings.append(
            Finding("pickle.damaged", "error", f"{where}: {text}; what came before is shown.", f"byte {byte}")
        )


def _byte_order(archive: Archive, root: str, findings: list[Finding]) -> str:
    member = archive.by_name.get(root + "byteorder")
    if member is None:
        return "plain"
    try:
        return "big" if archive.read(member, 64).strip() == b"big" else "plain"
    except ModelError as error:
        findings.append(Finding("pytorch.byteorder", "warning", f"byteorder cannot be read: {error.message}."))
        return "plain"


# --- legacy and plain pickles -----------------------------------------------------------


def _legacy(head: Head, source: Source) -> Model:
    """Magic, protocol, system information, object, storage keys; then size and bytes of each storage."""
    findings: list[Finding] = []
    parts, data = list[Pickle](), b""
    at = 0
    for what in ("magic", "protocol", "system information", "object", "storage keys"):
        walked, data = _walk_growing(source, data, at)
        _report(walked, f"the {what} pickle", findings)
        parts.append(walked)
        if walked.damage is not None:
            break
        at = walked.stop
    value = parts[3].value if len(parts) > 3 else None
    info = as_dict(parts[2].value) or {} if len(parts) > 2 else {}
    found = list(tensors(value))
    known = {f.storage.key: f.storage for f in found if f.storage is not None}
    listed = parts[4].value if len(parts) > 4 else None
    keys = cast(list[Any], listed) if isinstance(listed, list) else []
    encoding = "plain" if info.get("little_endian", True) else "big"
    storages = _legacy_storages(source, at, [str(key) for key in keys], known, encoding, findings)
    tied = tie(found, storages, {})
    return _model(head, value, tied, findings, "PyTorch checkpoint (legacy layout)")


def _walk_growing(source: Source, data: bytes, at: int) -> tuple[Pickle, bytes]:
    """Walk a pickle that begins at byte ``at``, reading more of the file where it is cut off."""
    size = max(len(data), min(64 * KIB, source.size))
    while True:
        if len(data) < size:
            data += b"".join(source.blocks(len(data), size))
        walked = walk(data, at)
        if walked.damage is None or size >= min(source.size, PICKLE_BYTES):
            return walked, data
        size = min(4 * size, source.size, PICKLE_BYTES)


def _legacy_storages(
    source: Source, at: int, keys: Sequence[str], known: dict[str, Storage], encoding: str, findings: list[Finding]
) -> dict[str, StorageBytes]:
    places: dict[str, StorageBytes] = {}
    order = "little" if encoding == "plain" else "big"
    for key in keys:
        if at + 8 > source.size:
            findings.append(
                Finding("pytorch.truncated", "error", f"The file ends before storage {key[:80]!r}.", f"byte {at}")
            )
            break
        elements = int.from_bytes(source.read(at, at + 8), order, signed=True)
        storage = known.get(key)
        width = DTYPES[storage.dtype].bits // 8 if storage else 0
        begin, end = at + 8, at + 8 + elements * width
        if storage is None:
            text = f"Storage {key[:80]!r} belongs to no tensor, so its length is unknown; later storages are not shown."
            findings.append(Finding("pytorch.storage", "warning", text, f"byte {at}"))
            break
        if elements < 0 or end > source.size:
            text = f"says {elements} elements, the file ends before them (byte {at})"
            places[key] = StorageBytes(None, 0, problem=f"its storage {key[:80]!r} {text}")
            break
        places[key] = StorageBytes(ByteRange(0, begin, end), end - begin, encoding)
        at = end
    return places


def _plain(head: Head, source: Source) -> Model:
    """A pickle, or several one after the other, that torch did not write."""
    findings: list[Finding] = []
    values: list[Any] = []
    at, data = 0, b""
    while at < min(source.size, PICKLE_BYTES) and len(values) < 1000:
        walked, data = _walk_growing(source, data, at)
        where = "the pickle" if at == 0 else f"a further pickle at byte {at}"
        _report(walked, where, findings)
        if walked.damage is not None and at > 0 and not walked.globals:
            findings.pop()
            text = f"Bytes {at} to {source.size} after the pickle are not read."
            findings.append(Finding("pickle.trailing", "warning", text, f"byte {at}"))
            break
        values.append(walked.value)
        if walked.damage is not None:
            break
        at = walked.stop
    if not values or (values[0] is None and any(f.code == "pickle.damaged" for f in findings) and len(findings) == 1):
        raise BrokenFile(f"is no readable pickle: {findings[0].message}", path=head.path)
    if len(values) > 1:
        text = f"The file holds {len(values)} pickles one after the other."
        findings.append(Finding("pickle.several", "warning", text))
    found = [f for value in values for f in tensors(value)]
    return _model(head, values[0], tie(found, {}, {}), findings, "Python pickle")


def _model(head: Head, value: Any, tied: Sequence[Tensor], findings: list[Finding], kind: str) -> Model:
    assert head.source is not None
    rows = modules(value)
    whole = bool(rows) and rows[0].path == ""
    if whole:
        kind = kind.replace("checkpoint", "module")
    shared = _shared(tied)
    return Model(
        format="pytorch",
        kind=kind,
        path=head.path,
        sources=(head.source,),
        metadata=scalars(value),
        tensors=tuple(tied),
        graphs=(),
        capabilities=weights_only(kind, graph=_tree_words(whole)),
        findings=(*findings, *findings_of(tied), *shared),
        producer="PyTorch" if "PyTorch" in kind else "",
        details={"modules": [{"path": r.path, "type": r.type_name} for r in rows]} if rows else {},
    )


def _tree_words(whole: bool) -> str:
    if whole:
        return "The module tree of the pickled object is shown; its forward code is not in the file and not executed."
    return "The module tree is built from tensor names."


def _shared(tied: Sequence[Tensor]) -> list[Finding]:
    by_storage: dict[int, list[str]] = {}
    for tensor in tied:
        if tensor.storage >= 0:
            by_storage.setdefault(tensor.storage, []).append(tensor.name)
    groups = [names for names in by_storage.values() if len(names) > 1]
    return [
        Finding(
            "pytorch.shared", "info", f"{len(names)} tensors share one storage: {', '.join(n[:80] for n in names[:4])}."
        )
        for names in groups[:50]
    ]
