"""What a person should know about an ONNX file, and what can be done with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.formats._protobuf import Damage
from core.formats.onnx_graph import GraphReader
from core.ir import Availability, Capability, CapabilityName, Finding, Graph

_NOT_BUILT: Final[dict[CapabilityName, str]] = {
    "audit": "This version of Modelglass has no audit rules for ONNX models yet: it needs the audit engine.",
    "compare": "This version of Modelglass has no comparison of ONNX models yet: it needs graph alignment.",
    "quantize": "This version of Modelglass cannot quantize ONNX models yet: it needs a quantizer.",
    "prune": "This version of Modelglass cannot prune ONNX models yet: it needs shape-proven pruning.",
    "intervene": "This version of Modelglass cannot intervene in ONNX models yet: it needs masked sites in the worker.",
    "gradients": "ONNX models carry no gradients; computing them needs an engine that this version does not have.",
}
SHOWN: Final = 20
"""Findings of one code before the rest is summed up."""


def capabilities(
    graphs: tuple[Graph, ...], tensors: bool, damage: Damage, custom: Mapping[str, int]
) -> dict[CapabilityName, Capability]:
    """All thirteen capabilities with their reasons."""
    nodes = any(g.node_count for g in graphs)
    found: dict[CapabilityName, Capability] = {
        name: Capability(name, "unavailable", reason) for name, reason in _NOT_BUILT.items()
    }
    part = "The ONNX file is damaged: only what could be recovered is there." if damage.count else ""
    state: Availability = "partial" if part else "available"
    found["inspect"] = Capability("inspect", state, part)
    found["graph"] = (
        Capability("graph", state, part)
        if nodes
        else Capability("graph", "unavailable", "This ONNX file holds no operators: a graph needs at least one.")
    )
    weights: tuple[CapabilityName, ...] = ("tensors", "statistics")
    for name in weights:
        found[name] = (
            Capability(name, state, part)
            if tensors
            else Capability(name, "unavailable", "This ONNX file stores no tensors: weights need initializers.")
        )
    writing: tuple[CapabilityName, ...] = ("edit", "export")
    for name in writing:
        broken = "The ONNX file is damaged: what is written again must be what was there."
        found[name] = Capability(name, "unavailable", broken) if damage.count else Capability(name, "available")
    found["trace"] = _trace(graphs, damage, custom)
    return found


def _trace(graphs: tuple[Graph, ...], damage: Damage, custom: Mapping[str, int]) -> Capability:
    if damage.count:
        return Capability("trace", "unavailable", "The ONNX file is damaged: a run needs the whole model.")
    if not any(g.kind == "main" and g.node_count for g in graphs):
        return Capability("trace", "unavailable", "This ONNX file has no main graph with operators to run.")
    if custom:
        names = ", ".join(sorted(custom)[:5])
        reason = f"The model has operators of custom domains ({names}); ONNX Runtime runs them only with their library."
        return Capability("trace", "partial", reason)
    return Capability("trace", "available")


def findings(
    reader: GraphReader,
    graphs: tuple[Graph, ...],
    opsets: Mapping[str, int],
    custom: Mapping[str, int],
    training: int,
) -> tuple[Finding, ...]:
    """Everything noticed while reading; looks at columns only."""
    found = [
        Finding(_damage_code(e.message), "error", _sentence(e.message), f"byte {e.byte}") for e in reader.damage.errors
    ]
    hidden = reader.damage.count - len(reader.damage.errors)
    if hidden:
        found.append(Finding("onnx.damaged", "error", f"The file is damaged in {hidden} more places."))
    found += reader.external.findings
    found += _tensor_findings(reader)
    for builder, graph in zip(reader.builders, graphs, strict=True):
        found += builder.findings
        found += _graph_findings(graph)
    found += _opset_findings(graphs, opsets)
    found += [
        Finding("onnx.custom_domain", "warning", f"{count} operators are of the custom domain {domain[:200]!r}.")
        for domain, count in sorted(custom.items())
    ]
    if training:
        found.append(Finding("onnx.training", "info", "The file holds training graphs; they are not shown."))
    return _bounded(found)


def _damage_code(message: str) -> str:
    if "leaves its message" in message or "ends within" in message:
        return "onnx.truncated"
    return "onnx.nesting" if "nested" in message else "onnx.damaged"


def _sentence(message: str) -> str:
    return message if message.endswith(".") else message + "."


def _tensor_findings(reader: GraphReader) -> Iterable[Finding]:
    for tensor in reader.tensors:
        if tensor.problem and not reader.external.reported(tensor.problem):
            message = f"Tensor {tensor.name[:200]!r} cannot be read: {tensor.problem}."
            yield Finding("onnx.tensor", "error", message, f"tensor {tensor.name[:200]}")


def _graph_findings(graph: Graph) -> Iterable[Finding]:
    c, at = graph.columns, f"graph g{graph.index}"
    inputs = np.zeros(graph.value_count, bool)
    inputs[list(graph.inputs)] = True
    made = (c.producer >= 0) | (c.tensor >= 0) | (c.captured_graph >= 0) | inputs
    used = np.diff(c.consumer_offsets) > 0
    used[list(graph.outputs)] = True
    missing = np.flatnonzero(used & ~made)
    if missing.size:
        yield Finding(
            "onnx.dangling", "error", f"{missing.size} values are used but never made: {_names(graph, missing)}.", at
        )
    if graph.kind == "main":
        both = np.flatnonzero(inputs & (c.tensor >= 0))
        if both.size:
            message = f"{both.size} inputs are initializers as well, which makes them optional: {_names(graph, both)}."
            yield Finding("onnx.input_initializer", "info", message, at)
        if not graph.node_count:
            yield Finding("onnx.empty_graph", "warning", "The main graph has no operators.", at)
    nodes = np.repeat(np.arange(graph.node_count), np.diff(c.input_offsets))
    present = c.inputs >= 0
    late = c.producer[c.inputs[present]] >= nodes[present]
    if late.any():
        first = int(nodes[present][late][0])
        if _cyclic(graph):
            yield Finding(
                "onnx.cycle", "error", "Operators depend on each other in a circle.", f"node g{graph.index}.n{first}"
            )
        else:
            message = f"{int(late.sum())} operators stand before what they use; ONNX asks for topological order."
            yield Finding("onnx.unsorted", "warning", message, f"node g{graph.index}.n{first}")


def _names(graph: Graph, values: NDArray[np.int64]) -> str:
    names = ", ".join(repr(graph.columns.value_names[int(v)][:80]) for v in values[:5])
    return names + (", ..." if values.size > 5 else "")


def _cyclic(graph: Graph) -> bool:
    """Whether no order of the operators exists (Kahn's algorithm over the columns)."""
    c = graph.columns
    waiting = [0] * graph.node_count
    takers: dict[int, list[int]] = {}
    inputs, offsets, producer = c.inputs.tolist(), c.input_offsets.tolist(), c.producer.tolist()
    for node in range(graph.node_count):
        for value in inputs[offsets[node] : offsets[node + 1]]:
            if value >= 0 and producer[value] >= 0:
                waiting[node] += 1
                takers.setdefault(producer[value], []).append(node)
    ready = [node for node, count in enumerate(waiting) if count == 0]
    done = 0
    while ready:
        done += 1
        for taker in takers.get(ready.pop(), ()):
            waiting[taker] -= 1
            if waiting[taker] == 0:
                ready.append(taker)
    return done < graph.node_count


def _opset_findings(graphs: tuple[Graph, ...], opsets: Mapping[str, int]) -> Iterable[Finding]:
    if not opsets:
        yield Finding("onnx.opset", "warning", "The file does not say which operator set it uses.")
        return
    used = {
        g.columns.strings[int(d)] or "ai.onnx"
        for g in graphs
        if g.kind != "function"
        for d in np.unique(g.columns.domain)
    }
    for domain in sorted(used - set(opsets)):
        yield Finding(
            "onnx.opset", "warning", f"Operators of domain {domain[:200]!r} are used, but no version of it is imported."
        )


def _bounded(found: list[Finding]) -> tuple[Finding, ...]:
    counts, kept = Counter[str](), list[Finding]()
    for finding in found:
        counts[finding.code] += 1
        if counts[finding.code] <= SHOWN:
            kept.append(finding)
    more = [
        Finding(c, "info", f"{n - SHOWN} more findings of this kind are left out.")
        for c, n in counts.items()
        if n > SHOWN
    ]
    return (*kept, *more)
