"""A finished run as the answers read it: its values in order, what each was made from, and their elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from numpy.typing import NDArray

from core.dtypes import DTYPES
from core.errors import ModelError
from core.ir import Finding, Model, Node, Severity
from core.limits import MIB
from core.statistics.arrays import of_array
from core.statistics.types import TensorStats
from core.tensors import read
from core.trace.types import TracedValue

ELEMENTS: Final = 16 * MIB
"""Elements of one value that an answer looks through; beyond that its statistics must do."""

_STORED: Final = MIB
"""Elements of a stored operand whose range is read."""

Fetch = Callable[[TracedValue], NDArray[Any]]
"""Gives the elements of a value that is stored, in its shape."""


@dataclass(frozen=True)
class Reading:
    """Everything a question about a run needs.

    Attributes:
        values: in the order in which they were made.
    """

    model: Model
    values: tuple[TracedValue, ...]
    fetch: Fetch

    @cached_property
    def numbers(self) -> tuple[TracedValue, ...]:
        """Values with at least one element that is a number, bool and text left out."""
        return tuple(v for v in self.values if v.stats is not None and v.stats.count and _kind(v) in _NUMBERS)

    @cached_property
    def floats(self) -> tuple[TracedValue, ...]:
        """Those of ``numbers`` that are floating point."""
        return tuple(v for v in self.numbers if _kind(v) == "float")

    @cached_property
    def _by_place(self) -> dict[tuple[str, int], TracedValue]:
        return {(v.id, v.step): v for v in self.values}

    def at(self, value: str, step: int = 0) -> TracedValue | None:
        """The value of that id in one execution of its graph, ``None`` where it was not captured."""
        return self._by_place.get((value, step))

    def node(self, value: TracedValue) -> Node | None:
        """The operator that made a value, ``None`` for an input or one that the file does not have."""
        graph, row = split(value.node)
        if row < 0 or graph >= len(self.model.graphs) or row >= self.model.graphs[graph].node_count:
            return None
        return self.model.graphs[graph].node(row)

    def op(self, value: TracedValue) -> str:
        """Type of the operator that made a value, empty for an input."""
        node = self.node(value)
        return "" if node is None else node.op_type

    def operands(self, value: TracedValue) -> list[TracedValue]:
        """Traced values that its operator took, in the order of the operator's inputs."""
        node = self.node(value)
        if node is None:
            return []
        found = [self.traced(node.graph, index, value.step) for index in node.inputs if index >= 0]
        return [item for item in found if item is not None]

    def ranges(self, value: TracedValue) -> Iterator[tuple[str, TensorStats | None]]:
        """Name and statistics of everything its operator took; small stored operands are read for it."""
        node = self.node(value)
        for index in () if node is None else node.inputs:
            if node is None or index < 0:
                continue
            traced = self.traced(node.graph, index, value.step)
            taken = self.model.graphs[node.graph].value(index)
            yield taken.name, traced.stats if traced is not None else self._stored(taken.tensor)

    def elements(self, value: TracedValue) -> NDArray[Any] | None:
        """The elements where they are stored and not too many; reads them."""
        if not value.stored or value.stats is None or value.stats.count > ELEMENTS:
            return None
        try:
            return self.fetch(value)
        except ModelError:
            return None

    def traced(self, graph: int, index: int, step: int = 0) -> TracedValue | None:
        """The value of a graph as traced in that step, or in the graph that it was taken from."""
        for _ in range(len(self.model.graphs)):  # out of a subgraph to where the value was taken from
            found = self._by_place.get((f"g{graph}.v{index}", step)) or self._by_place.get((f"g{graph}.v{index}", 0))
            if found is not None:
                return found
            captured = self.model.graphs[graph].value(index).captured
            if captured is None:
                return None
            graph, index = captured
        return None

    def _stored(self, tensor: int) -> TensorStats | None:
        if tensor < 0 or not 0 < self.model.tensors[tensor].elements <= _STORED:
            return None
        try:
            return of_array(read.values(self.model, tensor))
        except ModelError:
            return None


def split(place: str) -> tuple[int, int]:
    """Graph and row of an id such as ``g0.v12`` or ``g0.n3``; row -1 where it is none."""
    graph, _, row = place[1:].partition(".")
    if place[:1] != "g" or not graph.isdecimal() or not row[1:].isdecimal():
        return 0, -1
    return int(graph), int(row[1:])


def finding(code: str, severity: Severity, message: str, value: TracedValue) -> Finding:
    """What was found, with the value that it is about."""
    step = f" step {value.step}" if value.step else ""
    return Finding(code, severity, message, f"value {value.id}{step}")


def place(found: Finding) -> tuple[str, int]:
    """Value id and step that a finding of a run is about, empty where it is about none."""
    words = (found.at or "").split()
    if len(words) < 2 or words[0] != "value":
        return "", 0
    return words[1], int(words[3]) if len(words) > 3 and words[3].isdecimal() else 0


def listed(names: Sequence[str], most: int = 4) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def percent(share: float) -> str:
    """A share as people read it: ``0.3 %``, never 0 for some and never 100 for not all."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    return "over 99.9 %" if 0.999 < share < 1 else f"{100 * share:.3g} %"


_NUMBERS: Final = ("float", "int", "uint")


def _kind(value: TracedValue) -> str:
    dtype = DTYPES.get(value.dtype)
    return "" if dtype is None else dtype.kind
