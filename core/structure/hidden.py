"""Operators that a picture may leave out: constants, and what only computes shapes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.ir import Graph, Ints, Model
from core.structure.memory import remembered
from core.structure.topology import topology

_SHAPE_SOURCES: Final = frozenset({"Shape", "Size"})
_SHAPE_STEPS: Final = (
    "Gather Cast Slice Concat Unsqueeze Squeeze Add Sub Mul Div Floor Ceil Mod Min Max Identity Equal Where"
    " ReduceProd ReduceSum ReduceMax Reshape Neg Sqrt Reciprocal Split Not And Or Less Greater"
)


def codes_of(graph: Graph, names: frozenset[str]) -> Ints:
    """Codes of these operator types in this graph's strings."""
    return np.array([code for code, text in enumerate(graph.columns.strings) if text in names], np.int32)


def constants(graph: Graph) -> NDArray[np.bool_]:
    """Which nodes only hold a stored value, or hand one on unchanged."""
    return remembered(graph, "constants", lambda: _constants(graph))


def _constants(graph: Graph) -> NDArray[np.bool_]:
    c = graph.columns
    found = np.isin(c.op_type, codes_of(graph, frozenset({"Constant"})))
    copies = np.isin(c.op_type, codes_of(graph, frozenset({"Identity"}))) & (np.diff(c.input_offsets) == 1)
    taken = c.inputs[c.input_offsets[:-1][copies]]
    found[copies] = (taken >= 0) & (c.tensor[taken] >= 0)
    return found


def shape_arithmetic(model: Model, graph: Graph) -> NDArray[np.bool_]:
    """Which nodes compute from shapes alone, starting at ``Shape`` and ``Size``."""
    return remembered(graph, "shape arithmetic", lambda: _shape_arithmetic(model, graph))


def _shape_arithmetic(model: Model, graph: Graph) -> NDArray[np.bool_]:
    t, c = topology(model, graph), graph.columns
    found = np.isin(c.op_type, codes_of(graph, _SHAPE_SOURCES))
    if not found.any():
        return found
    takes_input = np.zeros(graph.node_count, np.bool_)
    takes_input[t.free_target] = True
    possible = np.isin(c.op_type, codes_of(graph, frozenset(_SHAPE_STEPS.split()))) & ~takes_input
    constant = constants(graph)
    for node in t.order[possible[t.order]].tolist():
        before = [p for p in t.predecessors(node) if not constant[p]]
        found[node] = bool(before) and all(found[p] for p in before)
    return found
