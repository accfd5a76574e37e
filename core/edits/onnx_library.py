"""Asking the onnx library: what types values have, and whether a file is valid; never in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import onnx

from core.edits.onnx_document import OnnxDocument

_SECONDS: Final = 180


@dataclass(frozen=True, slots=True)
class Inferred:
    """Types as the library infers them.

    Attributes:
        problem: why it could not, empty where it could.
    """

    outputs: Mapping[str, onnx.TypeProto]
    values: Mapping[str, onnx.TypeProto]
    problem: str = ""


def infer(document: OnnxDocument) -> Inferred:
    """Infer the types of all values of the main graph; starts a process."""
    proto = onnx.ModelProto()
    proto.CopyFrom(document.proto)
    handle, path = tempfile.mkstemp(suffix=".onnx")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(proto.SerializeToString())
        found = _ask("infer", path)
    finally:
        Path(path).unlink()
    outputs, values = (
        {name: onnx.TypeProto.FromString(bytes.fromhex(text)) for name, text in found.get(part, {}).items()}
        for part in ("outputs", "values")
    )
    return Inferred(outputs, values, found.get("problem", ""))


def check(path: str) -> str:
    """What the library's checker finds wrong with a written file, empty where nothing; starts a process."""
    return str(_ask("check", path).get("problem", ""))


def _ask(task: str, path: str) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "core.edits.child", task, path]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"problem": f"the onnx library did not answer within {_SECONDS} s"}
    if done.returncode != 0:
        return {"problem": f"the onnx library ended with {done.returncode} while it looked at the model"}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
