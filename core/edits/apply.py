"""Doing one edit to a document: another document, or the reason why not."""

from __future__ import annotations

from typing import assert_never

from core.edits import onnx_boundary, onnx_names, onnx_nodes, onnx_tensors
from core.edits.kinds import (
    AddOutput,
    ConvertFloat,
    DeleteNodes,
    Edit,
    ExtractSubgraph,
    FixDimension,
    FoldPreprocessing,
    InsertNode,
    InsertQuantization,
    MakeBatchDynamic,
    ReconnectInput,
    RemoveAttribute,
    RemoveMetadata,
    RemoveNode,
    RemoveOutput,
    RenameGraph,
    RenameNode,
    RenameValue,
    ReplaceOperator,
    ReplaceTensor,
    ScaleTensor,
    SetAttribute,
    SetDimension,
    SetDoc,
    SetElements,
    SetInputType,
    SetLayout,
    SetMetadata,
)
from core.edits.onnx_document import OnnxDocument
from core.edits.onnx_float import convert_float
from core.errors import NotFound


def apply(document: OnnxDocument, edit: Edit) -> OnnxDocument:  # noqa: PLR0915 - one line a kind
    """The document after one edit; the one given is not changed. May read tensors from disk.

    Raises:
        NotFound: if what is edited is not there.
        UsageError: if the edit makes no sense there, with the reason.
        Unavailable: if this model cannot be edited like that.
    """
    after = document.copy()
    match edit:
        case RenameNode():
            onnx_names.rename_node(after, edit)
        case RenameValue():
            onnx_names.rename_value(after, edit)
        case RenameGraph():
            onnx_names.rename_graph(after, edit)
        case SetAttribute():
            onnx_nodes.set_attribute(after, edit)
        case RemoveAttribute():
            onnx_nodes.remove_attribute(after, edit)
        case ReplaceOperator():
            onnx_nodes.replace_operator(after, edit)
        case InsertNode():
            onnx_nodes.insert_node(after, edit)
        case InsertQuantization():
            onnx_nodes.insert_quantization(after, edit)
        case RemoveNode():
            onnx_nodes.remove_node(after, edit)
        case DeleteNodes():
            onnx_nodes.delete_nodes(after, edit)
        case ReconnectInput():
            onnx_nodes.reconnect_input(after, edit)
        case ExtractSubgraph():
            onnx_boundary.extract_subgraph(after, edit)
        case AddOutput():
            onnx_boundary.add_output(after, edit)
        case RemoveOutput():
            onnx_boundary.remove_output(after, edit)
        case FixDimension():
            onnx_boundary.fix_dimension(after, edit)
        case SetDimension():
            onnx_boundary.set_dimension(after, edit)
        case MakeBatchDynamic():
            onnx_boundary.make_batch_dynamic(after, edit)
        case SetInputType():
            onnx_boundary.set_input_type(after, edit)
        case SetLayout():
            onnx_boundary.set_layout(after, edit)
        case FoldPreprocessing():
            onnx_boundary.fold_preprocessing(after, edit)
        case ScaleTensor():
            onnx_tensors.scale_tensor(after, edit)
        case SetElements():
            onnx_tensors.set_elements(after, edit)
        case ReplaceTensor():
            onnx_tensors.replace_tensor(after, edit)
        case ConvertFloat():
            return convert_float(after, edit)
        case SetMetadata() | RemoveMetadata() | SetDoc():
            _texts(after, edit)
        case _:
            assert_never(edit)
    return after


def _texts(document: OnnxDocument, edit: SetMetadata | RemoveMetadata | SetDoc) -> None:
    if isinstance(edit, SetDoc):
        if not edit.node:
            document.proto.doc_string = edit.text
            return
        graph, place = document.node(edit.node)
        graph.node[place].doc_string = edit.text
        return
    entries = document.proto.metadata_props
    places = [place for place, entry in enumerate(entries) if entry.key == edit.key]
    if isinstance(edit, RemoveMetadata):
        if not places:
            raise NotFound(f"the metadata have no entry {edit.key[:200]!r}")
        for place in reversed(places):
            del entries[place]
    elif places:
        entries[places[-1]].value = edit.value
    else:
        entries.add(key=edit.key, value=edit.value)
