"""TorchScript archives: module tree and tensors from the pickles, the graph from the code.

Layout: torch/csrc/jit/docs/serialization.md. Code is parsed as text; nothing is run.
"""

from __future__ import annotations

from dataclasses import replace

from core.capabilities import described_graph
from core.errors import ModelError
from core.formats import pytorch
from core.formats._pickle import walk
from core.formats._pickle_objects import Call
from core.formats._script_code import ScriptCode
from core.formats._script_graph import ScriptGraphs
from core.formats._torch_archive import member_bytes
from core.formats._torch_objects import tensors
from core.formats._torch_tensors import findings_of, tie
from core.formats._zip import Archive
from core.formats.head import Head
from core.ir import Finding, Graph, Model, Tensor


def match(head: Head) -> int:
    """3 for a zip with ``constants.pkl`` and a ``code/`` folder."""
    if head.source is None or b"PK\5\6" not in head.tail:
        return 0
    return 3 if b"constants.pkl" in head.tail and b"code/__torch__" in head.tail else 0


def read(head: Head) -> Model:
    """Open a TorchScript archive; walks its pickles and parses its code, reads no tensor.

    Raises:
        BrokenFile: if neither an archive nor its data.pkl can be read.
    """
    assert head.source is not None
    archive = Archive(head.source)
    base, value, root = pytorch.read_archive(head, archive)
    constants, findings = _constants(archive, root)
    stored = (*base.tensors, *constants)
    by_name = {tensor.name: index for index, tensor in enumerate(base.tensors)}
    by_constant = {t.name.removeprefix("constant "): len(base.tensors) + i for i, t in enumerate(constants)}
    graphs: tuple[Graph, ...] = ()
    reason = ("available", "")
    try:
        if not isinstance(value, Call):
            raise pytorch.not_a_module(head.path)
        built = ScriptGraphs(ScriptCode(archive, root), value, by_name, by_constant, head.path)
        graphs = built.graphs
        findings += built.findings
        if built.findings:
            reason = ("partial", "Some statements of the archived code were not understood; see the findings.")
    except ModelError as error:
        findings.append(Finding("torchscript.code", "error", f"The graph cannot be shown: {error.message}."))
        reason = ("unavailable", f"The archived code could not be read: {error.message}.")
    return replace(
        base,
        format="torchscript",
        kind="TorchScript module",
        tensors=stored,
        graphs=graphs,
        capabilities=described_graph("TorchScript module", graph=reason, tensors=("available", "")),
        findings=(*base.findings, *findings),
        producer="PyTorch",
    )


def _constants(archive: Archive, root: str) -> tuple[list[Tensor], list[Finding]]:
    """Tensors of ``constants.pkl``, called ``constant c0``, ``constant c1``, ..."""
    findings: list[Finding] = []
    member = archive.by_name.get(f"{root}constants.pkl")
    if member is None:
        return [], findings
    try:
        value = walk(archive.read(member, pytorch.PICKLE_BYTES)).value
    except ModelError as error:
        return [], [Finding("torchscript.constants", "error", f"constants.pkl cannot be read: {error.message}.")]
    found = [replace(item, name=f"constant c{item.name}") for item in tensors(value)]
    keys = {item.storage.key for item in found if item.storage is not None}
    tied = tie(found, {key: member_bytes(archive, f"{root}constants/{key}") for key in keys}, {})
    # Storage numbers of constants and of weights count separately; constants share nothing with weights.
    return [replace(tensor, storage=-1) for tensor in tied], [*findings, *findings_of(tied)]
