"""The onnx library at work on a model someone else made: a program of its own, under limits.

It infers types or checks a file, prints one JSON line and ends. What goes wrong in native code ends
this process and no other. ``python -P -m core.edits.child infer|check PATH``
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import onnx

MEMORY = 4 << 30
SECONDS = 120


def main(task: str, path: str) -> None:
    """Do one task and print what came of it."""
    _limit()
    found: dict[str, Any]
    try:
        found = _infer(path) if task == "infer" else _check(path)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        found = {"problem": str(error).strip()[:2000]}
    sys.stdout.write(json.dumps(found) + "\n")


def _infer(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        model = onnx.ModelProto.FromString(file.read())
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True).graph
    outputs = {item.name: item.type.SerializeToString().hex() for item in inferred.output}
    values = {item.name: item.type.SerializeToString().hex() for item in inferred.value_info}
    return {"outputs": outputs, "values": values}


def _check(path: str) -> dict[str, Any]:
    checker: Any = onnx.checker
    checker.check_model(path, full_check=True)
    return {}


def _limit() -> None:
    try:
        resource: Any = importlib.import_module("resource")
    except ModuleNotFoundError:  # Windows
        return
    memory = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    for kind, bound in ((memory, MEMORY), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        most = bound if hard < 0 else min(bound, hard)
        resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
