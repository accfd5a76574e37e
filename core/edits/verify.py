"""What an edit would break: compared with what was broken before it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import onnx

from core.edits.apply import apply
from core.edits.kinds import (
    Edit,
    RemoveMetadata,
    RenameGraph,
    RenameNode,
    RenameValue,
    ScaleTensor,
    SetDoc,
    SetElements,
    SetMetadata,
)
from core.edits.onnx_document import GraphLike, OnnxDocument, subgraphs
from core.edits.onnx_library import infer
from core.edits.onnx_names import output_names
from core.edits.onnx_schema import count_problem, opsets_of, schema_of
from core.ir import Finding

_KEEP_TYPES = (
    RenameNode, RenameValue, RenameGraph, SetMetadata, RemoveMetadata, SetDoc, ScaleTensor, SetElements,
)  # fmt: skip
"""Edits after which every value has the type it had."""

MOST = 50
"""Findings of one kind that are told."""


@dataclass(frozen=True)
class Prepared:
    """An edit that was tried on a document.

    Attributes:
        after: the document it would make.
        findings: what it would break or change; one with severity ``error`` must not be committed.
    """

    edit: Edit
    before: OnnxDocument
    after: OnnxDocument
    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether it may be committed."""
        return all(finding.severity != "error" for finding in self.findings)


def prepare(document: OnnxDocument, edit: Edit) -> Prepared:
    """Try an edit: do it on a copy, find what it breaks, infer the types it changes; starts a process.

    Raises: as ``apply``.
    """
    after = apply(document, edit)
    found = _new(problems(document), problems(after))
    if not isinstance(edit, _KEEP_TYPES) and not found:
        found = _types(document, after)
    return Prepared(edit, document, after, tuple(found))


def problems(document: OnnxDocument) -> list[Finding]:
    """What is wrong with the structure: names made twice, taken but not made, misfits with the schema."""
    found: list[Finding] = []
    imports = opsets_of(document.proto.opset_import)
    outer: dict[int, set[str]] = {}
    for index, graph in enumerate(document.graphs()):
        opsets = opsets_of(graph.opset_import) if isinstance(graph, onnx.FunctionProto) else imports
        known = _begun(graph) | outer.get(id(graph), set())
        twice = [name for name, count in Counter(_made(graph)).items() if count > 1]
        found += [_error("edit.duplicate", f"the value {name[:200]!r} is made more than once", index) for name in twice]
        for place, node in enumerate(graph.node):
            missing = [name for name in node.input if name and name not in known]
            at = f"node g{index}.n{place}"
            found += [
                _at("edit.missing", f"{_title(node)} takes {name[:200]!r}, which nothing before it makes", at)
                for name in missing
            ]
            problem = count_problem(schema_of(opsets, node.op_type, node.domain), node)
            if problem:
                found.append(_at("edit.schema", f"{_title(node)}: {problem}", at))
            known.update(name for name in node.output if name)
            for inner in subgraphs(node):
                outer[id(inner)] = set(known)
        lost = [name for name in output_names(graph) if name not in known]
        found += [_error("edit.output", f"the output {name[:200]!r} is made by nothing", index) for name in lost]
    return found


def _types(before: OnnxDocument, after: OnnxDocument) -> list[Finding]:
    """Take over the types that follow now; say where an output became another or none can be inferred."""
    declared = list(after.proto.graph.value_info)
    outputs = {item.name: item.type for item in after.proto.graph.output}
    old = {item.name: item.type.SerializeToString() for item in before.proto.graph.output}
    bare = after.copy()
    del bare.proto.graph.value_info[:]
    for item in bare.proto.graph.output:
        item.ClearField("type")
    inferred = infer(bare)
    if inferred.problem:
        if infer(before).problem:
            return [
                Finding(
                    "edit.types", "info", "types are not inferred for this model, neither before nor after the edit"
                )
            ]
        return [Finding("edit.types", "error", f"types no longer fit together: {inferred.problem}")]
    found: list[Finding] = []
    for item in after.proto.graph.output:
        known = inferred.outputs.get(item.name)
        if known is None or not known.HasField("tensor_type") or not known.tensor_type.elem_type:
            continue
        item.type.CopyFrom(_merged(outputs[item.name], known))
        if item.name in old and old[item.name] != item.type.SerializeToString():
            found.append(
                Finding("edit.output", "warning", f"the output {item.name[:200]!r} becomes {_text(item.type)}")
            )
    for item in declared:
        known = inferred.values.get(item.name)
        if known is not None:
            item.type.CopyFrom(known)
    return found


def _merged(declared: onnx.TypeProto, inferred: onnx.TypeProto) -> onnx.TypeProto:
    """The inferred type; names and sizes that only the file knows stay where they do not contradict it."""
    merged = onnx.TypeProto()
    merged.CopyFrom(inferred)
    dims = merged.tensor_type.shape.dim
    known = declared.tensor_type.shape.dim
    if not merged.tensor_type.HasField("shape"):
        if declared.tensor_type.HasField("shape"):
            merged.tensor_type.shape.CopyFrom(declared.tensor_type.shape)
    elif len(dims) == len(known):
        for dim, other in zip(dims, known, strict=True):
            if not dim.HasField("dim_value") and (other.HasField("dim_value") or other.dim_param):
                dim.CopyFrom(other)
    return merged


def _begun(graph: GraphLike) -> set[str]:
    if isinstance(graph, onnx.FunctionProto):
        return set(graph.input)
    names = {item.name for item in graph.input} | {item.name for item in graph.initializer}
    return names | {item.values.name for item in graph.sparse_initializer}


def _made(graph: GraphLike) -> list[str]:
    begun = list(_begun(graph))
    return begun + [name for node in graph.node for name in node.output if name]


def _new(before: list[Finding], after: list[Finding]) -> list[Finding]:
    """Problems that were not there before; a place may have moved, so messages are compared."""
    known = Counter(finding.message for finding in before)
    found: list[Finding] = []
    for finding in after:
        if known[finding.message] > 0:
            known[finding.message] -= 1
        else:
            found.append(finding)
    return found[:MOST]


def _title(node: onnx.NodeProto) -> str:
    return f"{node.op_type} {node.name[:200]!r}" if node.name else node.op_type


def _text(kind: onnx.TypeProto) -> str:
    dims = [
        dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?")
        for dim in kind.tensor_type.shape.dim
    ]
    name = onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()
    return f"{name} [{', '.join(dims)}]"


def _error(code: str, message: str, graph: int) -> Finding:
    return _at(code, message, f"graph g{graph}")


def _at(code: str, message: str, at: str) -> Finding:
    return Finding(code, "error", message, at)
