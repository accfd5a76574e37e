"""What a model is at one glance: its signature, and where its bytes and operators are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from core.ir import Dim, Graph, Model, Tensor, Value
from core.structure.categories import Category, category
from core.structure.scopes import scope_tree

By = Literal["module", "operator"]
Path = tuple[str, ...]

_NEARLY_ALL: Final = 0.95
_DEPTH: Final = 12
"""Levels of a name that the map of parts follows; deeper ones join the last."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One input or output of the signature.

    Attributes:
        id: value id, e.g. ``g0.v0``.
        dtype: element type, or the written-out type where it is no tensor, ``unknown`` where none is given.
        shape: dimensions; names are dynamic axes, ``None`` an unknown size.
        optional: whether the file holds a default for it (an initializer of the same name).
    """

    id: str
    name: str
    dtype: str
    shape: tuple[Dim, ...] | None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One rectangle of the map of parts.

    Attributes:
        id: unique within the map; ``parent`` the id of what holds it, empty for the root.
        label: short, within its parent; ``name`` in full.
        nbytes, elements: of everything in it.
        tensors: how many tensors it holds.
        dtype: the element type of nearly all of its bytes, empty where they are mixed.
        tensor: index into ``model.tensors`` where it is exactly one, else -1.
    """

    id: str
    parent: str
    label: str
    name: str
    nbytes: int
    elements: int
    tensors: int
    dtype: str
    tensor: int = -1


@dataclass(frozen=True, slots=True)
class TypeShare:
    """Tensors of one element type."""

    dtype: str
    tensors: int
    nbytes: int
    elements: int


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """How often one operator occurs, all graphs together; ``first`` is the id of one of them."""

    op_type: str
    domain: str
    category: Category
    count: int
    first: str


def signature(model: Model) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    """Inputs and outputs of the main graph; inputs that have an initializer are left out.

    Files of IR version 3 list every initializer as an input too; those are weights, not arguments.
    """
    graph = model.main_graph
    if graph is None:
        return (), ()
    inputs = tuple(_slot(graph.value(i)) for i in graph.inputs)
    outputs = tuple(_slot(graph.value(i)) for i in graph.outputs)
    return tuple(slot for slot in inputs if not slot.optional), outputs


def _slot(value: Value) -> Slot:
    return Slot(
        id=value.id,
        name=value.name,
        dtype=value.dtype or value.type_text or "unknown",
        shape=value.shape,
        optional=value.is_input and value.tensor >= 0,
    )


def weight_bytes(model: Model) -> int:
    """Stored bytes of all tensors; a storage that several of them share counts once."""
    return sum(tensor.nbytes for _, tensor in _stored(model))


def dtype_mix(model: Model) -> tuple[TypeShare, ...]:
    """Tensors by element type, most bytes first."""
    rows: dict[str, list[int]] = {}
    for _, tensor in _stored(model):
        row = rows.setdefault(tensor.dtype, [0, 0, 0])
        row[0] += 1
        row[1] += tensor.nbytes
        row[2] += tensor.elements
    ranked = sorted(rows.items(), key=lambda item: -item[1][1])
    return tuple(TypeShare(dtype, *row) for dtype, row in ranked)


def operators(model: Model) -> tuple[OperatorCount, ...]:
    """Operators by how often they occur, most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for graph in model.graphs:
        c = graph.columns
        codes: NDArray[np.int64] = c.op_type.astype(np.int64) * len(c.strings) + c.domain
        kinds, places, amounts = np.unique(codes, return_index=True, return_counts=True)
        for kind, place, amount in zip(kinds, places, amounts, strict=True):
            op_type, domain = divmod(int(kind), len(c.strings))
            key = c.strings[op_type], c.strings[domain]
            counts[key] += int(amount)
            first.setdefault(key, f"g{graph.index}.n{place}")
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        OperatorCount(name, domain, category(name), amount, first[name, domain]) for (name, domain), amount in ranked
    )


def parts(model: Model, by: By = "module", limit: int = 250) -> tuple[Part, ...]:
    """The map of parts: the root first, parents before what they hold.

    Args:
        by: ``module`` nests by module scope where the graph has one and by tensor name elsewhere;
            ``operator`` groups by the operator that takes the tensor.
        limit: the largest tensors drawn one by one; smaller ones are summed up in their module.
    """
    place = _by_operator(model) if by == "operator" else _by_module(model)
    stored = sorted(_stored(model), key=lambda item: -max(item[1].nbytes, 1))
    nodes: dict[Path, _Sum] = {(): _Sum()}
    leaves: list[tuple[Path, int, Tensor]] = []
    rest: dict[Path, _Sum] = {}
    for rank, (index, tensor) in enumerate(stored):
        path = place(index, tensor)[:_DEPTH]
        if rank >= limit:
            while path not in nodes:
                path = path[:-1]
            rest.setdefault(path, _Sum()).add(tensor)
        else:
            leaves.append((path, index, tensor))
        for depth in range(len(path) + 1):
            nodes.setdefault(path[:depth], _Sum()).add(tensor)
    return tuple(_rows(model, nodes, leaves, rest))


@dataclass(slots=True)
class _Sum:
    nbytes: int = 0
    elements: int = 0
    tensors: int = 0
    by_type: Counter[str] = field(default_factory=Counter[str])

    def add(self, tensor: Tensor) -> None:
        self.nbytes += tensor.nbytes
        self.elements += tensor.elements
        self.tensors += 1
        self.by_type[tensor.dtype] += max(tensor.nbytes, 1)

    @property
    def dtype(self) -> str:
        most = self.by_type.most_common(1)
        return most[0][0] if most and most[0][1] >= _NEARLY_ALL * self.by_type.total() else ""


def _rows(
    model: Model, nodes: Mapping[Path, _Sum], leaves: Iterable[tuple[Path, int, Tensor]], rest: Mapping[Path, _Sum]
) -> Iterable[Part]:
    ids = {path: f"m{place}" for place, path in enumerate(sorted(nodes, key=len))}
    for path, key in ids.items():
        parent = ids[path[:-1]] if path else ""
        yield _part(key, parent, path[-1] if path else model.name, "/".join(path) or model.name, nodes[path])
    for path, index, tensor in leaves:
        total = _Sum()
        total.add(tensor)
        yield _part(f"t{index}", ids[path], _last(tensor.name), tensor.name, total, index)
    for path, total in rest.items():
        label = f"{total.tensors} smaller tensors"
        yield _part(f"{ids[path]}.rest", ids[path], label, label, total)


def _part(key: str, parent: str, label: str, name: str, total: _Sum, tensor: int = -1) -> Part:
    return Part(key, parent, label, name, total.nbytes, total.elements, total.tensors, total.dtype, tensor)


def _last(name: str) -> str:
    """The end of a tensor name that tells it from its neighbours: ``weight`` of ``encoder.0.weight``."""
    tail = name.rsplit("/", 1)[-1]
    return tail.rsplit(".", 1)[-1] or tail or "unnamed"


def _stored(model: Model) -> Iterable[tuple[int, Tensor]]:
    """Tensors by index, the first of each shared storage only."""
    seen: set[int] = set()
    for index, tensor in enumerate(model.tensors):
        if tensor.storage >= 0:
            if tensor.storage in seen:
                continue
            seen.add(tensor.storage)
        yield index, tensor


def _takers(model: Model) -> dict[int, tuple[Graph, int]]:
    """The graph and first operator that takes each tensor."""
    found: dict[int, tuple[Graph, int]] = {}
    for graph in model.graphs:
        c = graph.columns
        for value in np.flatnonzero(c.tensor >= 0).tolist():
            first, stop = int(c.consumer_offsets[value]), int(c.consumer_offsets[value + 1])
            if stop > first:
                found.setdefault(int(c.tensor[value]), (graph, int(c.consumers[first])))
    return found


def _by_operator(model: Model) -> Callable[[int, Tensor], Path]:
    takers = _takers(model)

    def place(index: int, _: Tensor) -> Path:
        if index not in takers:
            return ("taken by no operator",)
        graph, node = takers[index]
        return (graph.columns.strings[int(graph.columns.op_type[node])],)

    return place


def _by_module(model: Model) -> Callable[[int, Tensor], Path]:
    takers = _takers(model)

    def place(index: int, tensor: Tensor) -> Path:
        if index in takers:
            graph, node = takers[index]
            scope = _scope(model, graph, node)
            if scope:
                return scope
        return _name_path(tensor.name)

    return place


def _scope(model: Model, graph: Graph, node: int) -> Path:
    tree = scope_tree(model, graph)
    path: list[str] = []
    region = int(tree.home[node])
    while region >= 0:
        path.append(tree.regions[region].label)
        region = tree.regions[region].parent
    return tuple(reversed(path))


def _name_path(name: str) -> Path:
    """Modules of a tensor name: ``encoder.0.weight`` lies in ``encoder``, ``0``."""
    separator = "/" if "/" in name else "."
    return tuple(part for part in name.split(separator)[:-1] if part)
