"""Module scopes: the nesting that a model's author wrote, from metadata or from names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import numpy as np

from core.ir import Graph, Ints, Model
from core.limits import NESTING
from core.structure.memory import remembered
from core.structure.regions import Draft, RegionTree, grow
from core.structure.topology import rows_of, topology

_PLACEHOLDERS: Final = frozenset({"_empty_nn_module_stack_from_metadata_hook"})
"""What torch writes where an operator has no module."""
SEPARATOR: Final = "\0"
_CONFIDENCE: Final = {"metadata": 1.0, "node names": 0.9, "value names": 0.7, "weight names": 0.7}
_COVERED: Final = 0.4
"""Share of the operators that a source of names must place to be used."""

_SHARED: Final = 64
"""Modules that may share a constant before it is left outside all of them."""

Path = tuple[str, ...]


def scope_tree(model: Model, graph: Graph) -> RegionTree:
    """Regions by module scope; empty where the file has no useful names."""
    return remembered(graph, "scopes", lambda: _tree(model, graph))


def _tree(model: Model, graph: Graph) -> RegionTree:
    source, paths = _best(model, graph)
    evidence = f"Operators whose {source} share this path."
    places: dict[Path, int] = {}
    drafts: list[Draft] = []
    home = np.full(graph.node_count, -1, np.int32)
    for node, path in enumerate(paths):
        if path:
            home[node] = _place(path, places, drafts, source, evidence)
    _fill_gaps(model, graph, home, drafts)
    _adopt_constants(graph, home, drafts)
    _set_levels(drafts)
    return grow(graph.index, drafts, home)


def _place(path: Path, places: dict[Path, int], drafts: list[Draft], source: str, evidence: str) -> int:
    found = places.get(path)
    if found is not None:
        return found
    *outer, label = path
    parent = _place(tuple(outer), places, drafts, source, evidence) if outer else -1
    places[path] = len(drafts)
    sure, key = _CONFIDENCE[source], SEPARATOR.join(path)
    drafts.append(Draft(label, "module scopes", "layer", parent, sure, evidence, key, "/".join(path)))
    return places[path]


def _set_levels(drafts: list[Draft]) -> None:
    """Leaves are layers, the outermost scopes that hold others architecture, the rest blocks."""
    for draft in drafts:
        if draft.parent >= 0:
            above = drafts[draft.parent]
            above.level = "architecture" if above.parent < 0 else "block"


def _best(model: Model, graph: Graph) -> tuple[str, list[Path]]:
    """The first source of names that places enough operators."""
    count = max(graph.node_count, 1)
    best: tuple[str, list[Path]] = ("node names", [()] * graph.node_count)
    most = 0
    for source, read in (("metadata", _from_metadata), ("node names", _from_names),
                         ("value names", _from_values), ("weight names", _from_weights)):  # fmt: skip
        paths = list(read(model, graph))
        placed = sum(1 for path in paths if path)
        if placed > _COVERED * count:
            return source, paths
        if placed > most:
            best, most = (source, paths), placed
    return best


def _from_metadata(_model: Model, graph: Graph) -> Iterable[Path]:
    c = graph.columns
    codes: list[int] = c.scope.tolist()
    parsed = {code: _metadata_path(c.strings[code]) for code in set(codes)}
    return [parsed[code] for code in codes]


def _metadata_path(text: str) -> Path:
    """``/blocks.0/blocks.0.ln1`` is ``blocks.0``, ``ln1``: inner parts repeat the outer ones."""
    if "/" not in text:
        return () if text in _PLACEHOLDERS else _dotted(text)
    path, before = list[str](), ""
    for part in text.split("/")[:NESTING]:
        if not part:
            continue
        path.append(part[len(before) + 1 :] if before and part.startswith(before + ".") else part)
        before = part
    return tuple(path)


def _dotted(text: str) -> Path:
    """``blocks.0.ln1`` is ``blocks.0``, ``ln1``: a number goes with the name before it."""
    path: list[str] = []
    for part in text.split(".")[:NESTING]:
        if part.isdecimal() and path:
            path[-1] = f"{path[-1]}.{part}"
        elif part:
            path.append(part)
    return tuple(path)


def _from_names(_model: Model, graph: Graph) -> Iterable[Path]:
    return _split(graph.columns.node_names, graph)


def _from_values(_model: Model, graph: Graph) -> Iterable[Path]:
    c = graph.columns
    starts: list[int] = c.output_offsets.tolist()
    outputs: list[int] = c.outputs.tolist()
    firsts = [outputs[a] if a < b else -1 for a, b in pairwise(starts)]
    names = [c.value_names[value] if value >= 0 else "" for value in firsts]
    return _split(names, graph)


def _from_weights(_model: Model, graph: Graph) -> Iterable[Path]:
    """The module of the first weight an operator takes: ``l1.c1.weight`` is ``l1``, ``c1``."""
    c = graph.columns
    users, used = rows_of(c.input_offsets), c.inputs >= 0
    users, values = users[used], c.inputs[used]
    stored = c.tensor[values] >= 0
    known: dict[str, Path] = {}
    paths: list[Path] = [()] * graph.node_count
    nodes: list[int] = users[stored].tolist()
    weights: list[int] = values[stored].tolist()
    for node, value in zip(nodes, weights, strict=True):
        name = c.value_names[value].replace("/", ".")
        outer = name.rpartition(".")[0]
        if outer and not paths[node] and ":" not in name:
            if outer not in known:
                known[outer] = _dotted(outer)
            paths[node] = known[outer]
    return paths


def _split(names: Iterable[str], graph: Graph) -> Iterable[Path]:
    """Paths by the outer part of each name; a part that is the operator type ends the path."""
    c = graph.columns
    known: dict[tuple[str, int], Path] = {}
    codes: list[int] = c.op_type.tolist()
    for name, code in zip(names, codes, strict=True):
        separator = "/" if "/" in name else "."
        outer = name.rpartition(separator)[0]
        if not outer:
            yield ()
            continue
        path = known.get((outer, code))
        if path is None:
            path = known[outer, code] = _cut(outer.split(separator), c.strings[code])
        yield path


def _cut(parts: list[str], op_type: str) -> Path:
    path: list[str] = []
    for part in parts[:NESTING]:
        if part.lower() == op_type.lower():
            break
        if part:
            path.append(part)
    return tuple(path)


def _fill_gaps(model: Model, graph: Graph, home: Ints, drafts: list[Draft]) -> None:
    """An operator that an exporter put in without a name belongs to the module that is all around it."""
    flow = topology(model, graph)
    for node in flow.order[home[flow.order] < 0].tolist():
        before = {int(home[other]) for other in flow.predecessors(node)}
        after = {int(home[other]) for other in flow.successors(node)}
        around = before | after
        if before and after and -1 not in around and len(around) <= _SHARED:
            home[node] = _common(around, drafts)


def _adopt_constants(graph: Graph, home: Ints, drafts: list[Draft]) -> None:
    """A ``Constant`` belongs where it is used."""
    c = graph.columns
    codes = [code for code, text in enumerate(c.strings) if text == "Constant"]
    for node in np.flatnonzero(np.isin(c.op_type, codes)).tolist():
        values = c.outputs[c.output_offsets[node] : c.output_offsets[node + 1]]
        homes = {
            int(home[user])
            for value in values.tolist()
            if value >= 0
            for user in c.consumers[c.consumer_offsets[value] : c.consumer_offsets[value + 1]].tolist()
        }
        home[node] = homes.pop() if len(homes) == 1 else _common(homes, drafts) if len(homes) <= _SHARED else -1


def _common(homes: set[int], drafts: list[Draft]) -> int:
    """The innermost draft that holds all of these, -1 where none does."""
    chains: list[list[int]] = []
    for home in homes:
        chain, place = list[int](), home
        while place >= 0:
            chain.append(place)
            place = drafts[place].parent
        chains.append(chain[::-1])
    common = -1
    for level in zip(*chains, strict=False):
        if len(set(level)) > 1:
            break
        common = level[0]
    return common
