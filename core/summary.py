"""What ``modelglass info`` and ``modelglass tensors`` print: a model in plain JSON values; reads nothing from disk."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from core.ir import ByteRange, CapabilityName, Graph, Model, Quantization, Tensor
from core.statistics.types import TensorStats


def summary(model: Model) -> dict[str, Any]:
    """The model at a glance, with the keys of the command ``info``."""
    graph = model.main_graph
    return {
        "format": model.format,
        "kind": model.kind,
        "path": model.path,
        "size_bytes": model.size_bytes,
        "files": [{"name": source.name, "bytes": source.size} for source in model.sources],
        "producer": model.producer,
        "opsets": dict(model.opsets),
        "inputs": [] if graph is None else _ports(model, graph, graph.inputs),
        "outputs": [] if graph is None else _ports(model, graph, graph.outputs),
        "graphs": len(model.graphs),
        "nodes": model.node_count,
        "tensors": len(model.tensors),
        "parameters": model.parameters,
        "dtypes": _dtypes(model),
        "metadata": dict(model.metadata),
        "capabilities": {name: _capability(model, name) for name in get_args(CapabilityName)},
        "findings": [asdict(finding) for finding in model.findings],
    }


def tensor_row(model: Model, index: int, stats: TensorStats | None = None) -> dict[str, Any]:
    """One tensor with the keys of the command ``tensors``; ``stats`` only where given."""
    tensor = model.tensors[index]
    place = tensor.data if isinstance(tensor.data, ByteRange) else None
    row: dict[str, Any] = {
        "index": index,
        "name": tensor.name,
        "dtype": tensor.dtype,
        "encoding": tensor.encoding,
        "shape": list(tensor.shape),
        "elements": tensor.elements,
        "bytes": tensor.nbytes,
        "source": None if place is None else model.sources[place.source].name,
        "start": None if place is None else place.start,
        "stop": None if place is None else place.stop,
        "role": tensor.role,
        "quantization": _quantization(tensor.quantization),
        "problem": tensor.problem,
    }
    return row if stats is None else {**row, "stats": stats.to_json()}


def _ports(model: Model, graph: Graph, values: tuple[int, ...]) -> list[dict[str, Any]]:
    """Inputs or outputs; an input that has a stored value needs not be given and is left out."""
    ports: list[dict[str, Any]] = []
    for index in values:
        value = graph.value(index)
        if value.is_input and value.tensor >= 0 and values is graph.inputs:
            continue
        tensor: Tensor | None = model.tensors[value.tensor] if value.tensor >= 0 else None
        ports.append(
            {
                "name": value.name,
                "dtype": value.dtype,
                "shape": None if value.shape is None else list(value.shape),
                "type": value.type_text or None,
                "quantization": None if tensor is None else _quantization(tensor.quantization),
            }
        )
    return ports


def _quantization(quantization: Quantization | None) -> dict[str, Any] | None:
    return None if quantization is None else asdict(quantization)


def _dtypes(model: Model) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for tensor in model.tensors:
        entry = found.setdefault(tensor.dtype, {"tensors": 0, "bytes": 0})
        entry["tensors"] += 1
        entry["bytes"] += tensor.nbytes
    return dict(sorted(found.items(), key=lambda item: -item[1]["bytes"]))


def _capability(model: Model, name: CapabilityName) -> dict[str, str]:
    capability = model.capability(name)
    return {"available": capability.availability, "reason": capability.reason}
