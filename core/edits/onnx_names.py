"""Names of values: where they are made and used, and giving them others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSequence

import onnx

from core.edits.kinds import RenameGraph, RenameNode, RenameValue
from core.edits.onnx_document import GraphLike, OnnxDocument, subgraphs
from core.errors import NotFound, UsageError
from core.limits import NAME_BYTES


def rename_node(document: OnnxDocument, edit: RenameNode) -> None:
    """Give a node another name."""
    graph, place = document.node(edit.node)
    _plausible(edit.to, "node")
    if edit.to and any(node.name == edit.to for i, node in enumerate(graph.node) if i != place):
        raise UsageError(f"another node of this graph is named {edit.to!r}")
    graph.node[place].name = edit.to


def rename_graph(document: OnnxDocument, edit: RenameGraph) -> None:
    """Give a graph another name; the name of a function is what calls it, and stays."""
    graph = document.main_graph(edit.graph, "renaming")
    _plausible(edit.to, "graph")
    graph.name = edit.to


def rename_value(document: OnnxDocument, edit: RenameValue) -> None:
    """Give a value another name in its graph and in all subgraphs that take it."""
    graph = document.graph(edit.graph)
    need_value(graph, edit.value)
    _plausible(edit.to, "value")
    if not edit.to:
        raise UsageError("a value needs a name")
    if edit.to == edit.value:
        return
    if edit.to in all_names(root_of(document, edit.graph)):
        raise UsageError(f"the name {edit.to!r} is in use", hint="Choose a name that no value has.")
    replace_name(graph, lambda name: edit.to if name == edit.value else name, {edit.value})
    if edit.graph == 0:
        for training in document.proto.training_info:
            for entry in (*training.initialization_binding, *training.update_binding):
                entry.key = edit.to if entry.key == edit.value else entry.key


def replace_name(graph: GraphLike, renamed: Callable[[str], str], names: set[str]) -> None:
    """Rename values in a graph and where its subgraphs take them.

    Args:
        names: those that ``renamed`` changes; a subgraph that makes one itself keeps its own.
    """
    for node in graph.node:
        _in_list(node.input, renamed)
        _in_list(node.output, renamed)
        for inner in subgraphs(node):
            own = names & made_in(inner)
            if own != names:
                left = names - own
                replace_name(inner, _only(renamed, left), left)
    if isinstance(graph, onnx.FunctionProto):
        _in_list(graph.input, renamed)
        _in_list(graph.output, renamed)
        for item in graph.value_info:
            item.name = renamed(item.name)
        return
    for items in (graph.input, graph.output, graph.value_info, graph.initializer):
        for item in items:
            item.name = renamed(item.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = renamed(sparse.values.name)
    for note in graph.quantization_annotation:
        note.tensor_name = renamed(note.tensor_name)
        for entry in note.quant_parameter_tensor_names:
            entry.value = renamed(entry.value)


def rewire(graph: GraphLike, renamed: Callable[[str], str], names: set[str], *, keep: set[int]) -> None:
    """Let what takes some values take others, in subgraphs too; who makes them is not changed.

    Args:
        keep: places of nodes whose own inputs stay.
    """
    for place, node in enumerate(graph.node):
        if place not in keep:
            _in_list(node.input, renamed)
        for inner in subgraphs(node):
            left = names - made_in(inner)
            if left:
                rewire(inner, _only(renamed, left), left, keep=set())
                if isinstance(graph, onnx.GraphProto):
                    for item in inner.output:
                        item.name = _only(renamed, left)(item.name)


def made_in(graph: GraphLike) -> set[str]:
    """Names that a graph itself makes: inputs, initializers and outputs of its nodes."""
    if isinstance(graph, onnx.FunctionProto):
        made = set(graph.input)
    else:
        made = {item.name for item in graph.input} | {item.name for item in graph.initializer}
        made |= {item.values.name for item in graph.sparse_initializer}
    made.update(name for node in graph.node for name in node.output if name)
    return made


def used_in(graph: GraphLike) -> Iterator[str]:
    """Names that a graph's nodes and outputs take, those of subgraphs that come from around them too."""
    for node in graph.node:
        yield from (name for name in node.input if name)
        for inner in subgraphs(node):
            own = made_in(inner)
            yield from (name for name in used_in(inner) if name not in own)
    yield from output_names(graph)


def output_names(graph: GraphLike) -> list[str]:
    """Names of a graph's outputs in order."""
    return list(graph.output) if isinstance(graph, onnx.FunctionProto) else [item.name for item in graph.output]


def all_names(graph: GraphLike) -> set[str]:
    """Every name that a graph and its subgraphs make or take."""
    names = made_in(graph) | set(output_names(graph))
    for node in graph.node:
        names.update(node.input)
        for inner in subgraphs(node):
            names |= all_names(inner)
    return names


def root_of(document: OnnxDocument, index: int) -> GraphLike:
    """The main graph or the function whose subgraph is numbered ``index``."""
    first = 0
    for root in (document.proto.graph, *document.proto.functions):
        first += _count(root)
        if index < first:
            return root
    raise NotFound(f"there is no graph {index}", path=document.source.path)


def new_name(taken: set[str], wanted: str) -> str:
    """A name that is not taken yet, which is then taken."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def need_value(graph: GraphLike, name: str) -> None:
    """Refuse a value that a graph does not make.

    Raises:
        NotFound: with its name.
    """
    if not name or name not in made_in(graph):
        raise NotFound(f"there is no value {name[:200]!r} in graph {graph.name[:200]!r}")


def _count(graph: GraphLike) -> int:
    return 1 + sum(_count(inner) for node in graph.node for inner in subgraphs(node))


def _only(renamed: Callable[[str], str], names: set[str]) -> Callable[[str], str]:
    return lambda name: renamed(name) if name in names else name


def _in_list(names: MutableSequence[str], renamed: Callable[[str], str]) -> None:
    for place, name in enumerate(names):
        other = renamed(name)
        if other != name:
            names[place] = other


def _plausible(name: str, what: str) -> None:
    if "\0" in name or len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES:
        raise UsageError(f"a {what} cannot be named like this: NUL characters and more than 1 MiB are refused")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"a {what} cannot be named like this: it is no valid text") from None
