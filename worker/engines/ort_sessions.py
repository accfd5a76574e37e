"""Sessions of onnxruntime as this worker opens them, and what their complaints mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import onnx
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

ERRORS: Final = (
    state.EPFail, state.EngineError, state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf,
    state.ModelLoaded, state.NoModel, state.NoSuchFile, state.NotImplemented, state.RuntimeException,
    RuntimeError, ValueError,
)  # fmt: skip
"""What the runtime raises; ``MemoryError`` comes besides."""

_PREFIX: Final = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
_SOURCE: Final = re.compile(
    r"/onnxruntime_src/\S+:\d+ [^()]*\((?:[^()]|\([^()]*\))*\)(?: const)?(?: \[with [^\]]*\])? "
)
_RUNNING: Final = re.compile(r"^Non-zero status code returned while running .*? Status Message: ")
_MEMORY: Final = ("bad_alloc", "Failed to allocate", "failed to allocate", "Cannot allocate memory", "mmap")
_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the runtime could not do something.

    Attributes:
        text: in the runtime's own words, without its source files and our names for nodes.
        memory: whether memory ran out.
        node: id of the node it complains about, empty where it names none.
    """

    text: str
    memory: bool = False
    node: str = ""

    @classmethod
    def of(cls, error: Exception) -> Problem:
        """Read the runtime's own message."""
        text = str(error)
        named = re.search(r"\bg\d+\.n\d+\b", text)
        memory = isinstance(error, MemoryError) or any(word in text for word in _MEMORY)
        text = _RUNNING.sub("", _SOURCE.sub("", _PREFIX.sub("", re.sub(r"\s+", " ", text)))).strip().rstrip(".")
        text = text.replace(f" with name '{named[0]}'", "") if named else text
        return cls(text if len(text) <= _WORDS else text[:_WORDS] + "...", memory, named[0] if named else "")


def options(folder: str, threads: int) -> ort.SessionOptions:
    """Options under which values are made: no optimisation, no arena, no memory pattern.

    The arena takes memory in growing pieces, far more than the values need, and would let a
    ceiling on memory fail runs that fit.
    """
    chosen = ort.SessionOptions()
    chosen.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    chosen.enable_cpu_mem_arena = False
    chosen.enable_mem_pattern = False
    chosen.intra_op_num_threads = threads
    chosen.inter_op_num_threads = 1
    chosen.log_severity_level = 4
    chosen.add_session_config_entry("session.intra_op.allow_spinning", "0")
    chosen.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return chosen


def session(model: onnx.ModelProto, chosen: ort.SessionOptions) -> ort.InferenceSession:
    """Load a model on the CPU.

    Raises:
        any of ``ERRORS``, MemoryError.
    """
    return ort.InferenceSession(model.SerializeToString(), chosen, providers=["CPUExecutionProvider"])


def prepare() -> None:
    """Settle what holds for all sessions of this process: nothing is sent, randomness repeats."""
    ort.disable_telemetry_events()
    ort.set_seed(0)


def known_operators() -> frozenset[tuple[str, str]]:
    """Domain and name of every operator that this build of the runtime has a schema for."""
    return frozenset((schema.domain, schema.name) for schema in state.get_all_operator_schema())


def cannot_load_any(model: onnx.ModelProto, chosen: ort.SessionOptions) -> str:
    """Why not even a model of the same versions with one trivial operator loads; empty if it does."""
    probe = onnx.ModelProto(ir_version=model.ir_version)
    probe.opset_import.extend(model.opset_import)
    probe.graph.name = "probe"
    probe.graph.input.add(name="x").type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    probe.graph.output.add(name="y").type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    probe.graph.node.add(op_type="Identity", input=["x"], output=["y"])
    try:
        session(probe, chosen)
    except ERRORS as error:
        return Problem.of(error).text
    return ""
