"""A model in its normal form: functions inlined, converted to one opset, shapes inferred."""

from __future__ import annotations

from typing import Final

import onnx
from onnx import checker, external_data_helper, inliner, shape_inference, version_converter

from core.errors import Unavailable
from worker.runtime_model import RuntimeModel

OPSET: Final = 21
"""Opset of the normal form; a model of a newer one keeps its own."""

_ERRORS: Final = (
    RuntimeError, ValueError, TypeError, OSError, checker.ValidationError, shape_inference.InferenceError,
)  # fmt: skip


def normalize(model: RuntimeModel) -> int:
    """Bring a model into its normal form; reads its payloads.

    Nodes that are still there keep their ids, new ones have none; values keep their names.

    Returns:
        The opset it has now.

    Raises:
        Unavailable: if it cannot be brought into that form.
    """
    try:
        external_data_helper.load_external_data_for_model(model.proto, model.folder)
        proto = inliner.inline_local_functions(model.proto)
        version = next((item.version for item in proto.opset_import if item.domain in ("", "ai.onnx")), OPSET)
        if version < OPSET:
            proto = version_converter.convert_version(proto, OPSET)
        proto = shape_inference.infer_shapes(proto)
    except _ERRORS as error:
        words = " ".join(str(error).split())[:300]
        raise Unavailable(
            f"cannot be converted to opset {OPSET}: {words}", hint="Use the engine reference or onnxruntime."
        ) from None
    _name_again(model, proto.graph)
    model.become(proto)
    return max(version, OPSET)


def _name_again(model: RuntimeModel, graph: onnx.GraphProto) -> None:
    """Ids for the nodes of the main graph by what they make, since the conversion renames and adds some."""
    makers = {name: node.name for node in model.graph.node for name in node.output if name}
    used: set[str] = set()
    for place, node in enumerate(graph.node):
        known = next((makers[name] for name in node.output if name in makers), "")
        node.name = known if known and known not in used else f"new.{place}"
        used.add(node.name)
