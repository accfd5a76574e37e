"""Running the worker's engine inside the test process, and the independent run it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import helper

from core.inputs.generic import default_dims, default_recipe, generate
from core.inputs.recipe import with_dims
from core.ir import Model
from core.opening import open_model
from core.run import prepare
from core.run.result import collect
from core.trace.types import RunLimits, TracedValue, TraceResult
from core.trace.values import load_value
from worker.report import Report
from worker.run import run

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Traced:
    """A finished run with its values by name."""

    result: TraceResult
    values: Mapping[str, TracedValue]

    def array(self, name: str) -> NDArray[Any]:
        return load_value(self.result, self.values[name])

    def raw(self, name: str) -> bytes:
        value = self.values[name]
        return Path(self.result.spool, "values.bin").read_bytes()[value.start : value.stop]


def trace(
    path: str | Path, inputs: Mapping[str, NDArray[Any]], folder: Path, limits: RunLimits | None = None, **more: Any
) -> Traced:
    """Run a model with the worker's own code, without the process around it."""
    model = open_model(path)
    try:
        more.setdefault("latency", False)
        request, spool = prepare.request(model, inputs, {}, limits, "digest", folder=folder, **more)
        with Report(spool) as report:
            outcome = run(spool, report, {})
            report.result(
                status=outcome.status, reason=outcome.reason, latency_optimisation=outcome.latency_optimisation,
                engine=outcome.engine,
            )  # fmt: skip
        result = collect(spool, request, None, 0, 0.0, 0)
        return Traced(result, {value.name: value for value in result.values if value.id.startswith("g0.")})
    finally:
        model.close()


def default_inputs(model: Model, **dims: int) -> Arrays:
    """What the Inputs page proposes, with some sizes of dimensions given."""
    slots = [slot for slot in prepare.input_slots(model) if not slot.optional]
    sizes = {key: proposal.size for key, proposal in default_dims(slots).items()} | dims
    return {slot.name: generate(slot, with_dims(default_recipe(slot, model).recipe, sizes)) for slot in slots}


def plain_options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def all_outputs(path: str | Path, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
    """Every value of the main graph by onnxruntime itself: all outputs exposed in one session."""
    model = onnx.load(path)
    exposed = {output.name for output in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in exposed and node.op_type != "Constant":
                model.graph.output.add(name=name)
                exposed.add(name)
    session = ort.InferenceSession(model.SerializeToString(), plain_options())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def same(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Equal in type, shape and every bit; text by its characters."""
    expected = np.asarray(expected)
    if expected.dtype.kind in "OU":
        return found.shape == expected.shape and found.tolist() == expected.tolist()
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


def save(path: Path, nodes: list[onnx.NodeProto], inputs: Any, outputs: Any, stored: Any = (), **more: Any) -> Path:
    """Write a model. ``inputs`` and ``outputs`` are (name, element type, shape) or ValueInfoProto."""
    opsets = [helper.make_opsetid("", more.pop("opset", 17)), *more.pop("opsets", [])]
    graph = helper.make_graph(nodes, "graph", [_info(i) for i in inputs], [_info(o) for o in outputs], list(stored))
    functions = more.pop("functions", [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=functions)
    path.write_bytes(model.SerializeToString())
    return path


def _info(item: Any) -> onnx.ValueInfoProto:
    return item if isinstance(item, onnx.ValueInfoProto) else helper.make_tensor_value_info(*item)
