"""torch.package archives: pickles with tensors, and source code that is listed, never imported.

Layout: torch/package/package_exporter.py; storages lie under ``.data/KEY.storage``.
"""

from __future__ import annotations

from core.capabilities import weights_only
from core.errors import BrokenFile, ModelError
from core.formats import _pickle_safety
from core.formats._pickle import walk
from core.formats._torch_archive import member_bytes
from core.formats._torch_objects import Found, tensors
from core.formats._torch_tensors import findings_of, tie
from core.formats._zip import Archive
from core.formats.head import Head
from core.formats.pytorch import PICKLE_BYTES
from core.ir import Finding, Model


def match(head: Head) -> int:
    """3 for a zip with ``.data/extern_modules``."""
    if head.source is None or b"PK\5\6" not in head.tail:
        return 0
    return 3 if b".data/extern_modules" in head.tail else 0


def read(head: Head) -> Model:
    """Open a package; walks its pickles, reads no tensor and imports no code.

    Raises:
        BrokenFile: if there is no usable central directory.
    """
    assert head.source is not None
    archive = Archive(head.source)
    marker = next((m.name for m in archive.members if m.name.endswith(".data/extern_modules")), None)
    if marker is None:
        raise BrokenFile("is no torch.package archive", path=head.path, field=".data/extern_modules")
    root = marker.removesuffix(".data/extern_modules")
    findings = list(archive.findings)
    found: list[Found] = []
    for member in [m for m in archive.members if m.name.endswith(".pkl") and not m.link][:1000]:
        name = member.name.removeprefix(root)
        try:
            walked = walk(archive.read(member, PICKLE_BYTES))
        except ModelError as error:
            findings.append(
                Finding("torch_package.pickle", "error", f"{name[:200]!r} cannot be read: {error.message}.")
            )
            continue
        findings += _pickle_safety.findings(walked.globals, repr(name[:120]))
        if walked.damage is not None:
            findings.append(Finding("pickle.damaged", "error", f"{name[:200]!r}: {walked.damage[0]}."))
        prefix = name.removesuffix(".pkl").replace("/", ".")
        found += [_under(prefix, item) for item in tensors(walked.value)]
    keys = {item.storage.key for item in found if item.storage is not None}
    tied = tie(found, {key: member_bytes(archive, f"{root}.data/{key}.storage") for key in keys}, {})
    code = [m.name.removeprefix(root) for m in archive.members if m.name.endswith(".py")]
    return Model(
        format="torch_package",
        kind="torch.package archive",
        path=head.path,
        sources=(head.source,),
        metadata=_metadata(archive, root),
        tensors=tuple(tied),
        graphs=(),
        capabilities=weights_only("torch.package archive", graph="Its source code is listed and not executed."),
        findings=(*findings, *findings_of(tied)),
        producer="PyTorch",
        details={"code": code[:10_000]},
    )


def _under(prefix: str, item: Found) -> Found:
    name = f"{prefix}.{item.name}" if item.name else prefix
    return Found(
        name, item.dtype, item.shape, item.strides, item.offset, item.storage, item.array, item.problem, item.parameter
    )


def _metadata(archive: Archive, root: str) -> dict[str, str]:
    rows: dict[str, str] = {}
    for name in ("version", "python_version", "extern_modules"):
        member = archive.by_name.get(f"{root}.data/{name}")
        if member is not None and member.size < 100_000:
            rows[name] = archive.read(member, 100_000).decode("utf-8", "replace").strip()
    return rows
