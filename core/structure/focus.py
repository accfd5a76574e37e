"""Parts of a graph around a node: neighbourhood, cones, shortest and longest ways."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import NotFound, UsageError
from core.ir import Graph, Model
from core.structure.edits import RegionEdit
from core.structure.folding import draw_nodes
from core.structure.modes import MODES, Mode, region_tree
from core.structure.place import Crumb, node_numbers
from core.structure.topology import Topology, topology
from core.structure.view import LIMIT, GraphView

Direction = Literal["up", "down"]
FocusKind = Literal["hops", "up", "down", "path", "longest"]
FOCUS_KINDS: Final[tuple[FocusKind, ...]] = get_args(FocusKind)
_HOPS: Final = 99
_NAMED: Final = 1000


@dataclass(frozen=True, slots=True)
class Focus:
    """A part of one graph.

    Attributes:
        kind: ``hops`` what lies at most ``hops`` edges away, ``up`` all that the nodes depend on,
            ``down`` all that depends on them, ``path`` a shortest way between two, ``longest`` the
            longest way of a graph.
        nodes: ids of operators or regions; for ``longest`` the graph's.
    """

    kind: FocusKind
    nodes: tuple[str, ...] = ()
    hops: int = 1

    @property
    def text(self) -> str:
        """A short text for an address; ``focus_of`` reads it."""
        hops = f"{self.hops}:" if self.kind == "hops" else ""
        return f"{self.kind}:{hops}{','.join(self.nodes)}"


def focus_of(text: str) -> Focus:
    """The focus that ``Focus.text`` wrote.

    Raises:
        UsageError: if the text is none.
    """
    name, _, rest = text.partition(":")
    kind: FocusKind | None = next((known for known in FOCUS_KINDS if known == name), None)
    hops = 1
    if kind == "hops":
        number, colon, after = rest.partition(":")
        if not colon or not number.isdecimal() or not 0 < int(number[:4]) <= _HOPS:
            raise UsageError(f"{text[:60]!r} has no number of hops", hint=f"Write hops:2:g0.n5, at most {_HOPS}.")
        hops, rest = int(number[:4]), after
    nodes = tuple(part for part in rest.split(",") if part)
    if kind is None or not nodes or len(nodes) > _NAMED or (kind == "path" and len(nodes) != 2):
        raise UsageError(
            f"{text[:60]!r} is no part of a graph", hint="Write hops:2:g0.n5, up:g0.n5, path:g0.n1,g0.n9 or longest:g0."
        )
    return Focus(kind, nodes, hops)


def focused(
    model: Model, focus: Focus, mode: Mode = "auto", edits: tuple[RegionEdit, ...] = ()
) -> tuple[Graph, NDArray[np.bool_]]:
    """The graph and which of its operators a focus holds.

    Raises:
        NotFound: if it names what is not there, or nodes of several graphs.
    """
    if focus.kind == "longest":
        graph = _graph_of(model, focus.nodes[0])
        return graph, _mask(graph, longest_path(model, graph))
    found = [_members(model, name, mode, edits) for name in focus.nodes]
    graph = found[0][0]
    if any(other.index != graph.index for other, _ in found):
        raise NotFound("these operators are not in one graph", path=model.path)
    every = [node for _, nodes in found for node in nodes]
    match focus.kind:
        case "hops":
            chosen = neighbourhood(model, graph, every, focus.hops)
        case "up" | "down":
            chosen = cone(model, graph, every, focus.kind)
        case _:
            chosen = shortest_path(model, graph, found[0][1][0], found[1][1][0])
            if not chosen:
                raise NotFound("no value flows from one to the other", path=model.path)
    return graph, _mask(graph, chosen)


def _mask(graph: Graph, nodes: Iterable[int]) -> NDArray[np.bool_]:
    mask = np.zeros(graph.node_count, np.bool_)
    mask[list(nodes)] = True
    return mask


def _graph_of(model: Model, name: str) -> Graph:
    for graph in model.graphs:
        if name == f"g{graph.index}":
            return graph
    return node_at(model, name)[0]


def _members(model: Model, name: str, mode: Mode, edits: tuple[RegionEdit, ...]) -> tuple[Graph, list[int]]:
    """The operators of a node or of a region."""
    if name.startswith("r"):
        number = name[1:].partition(".")[0]
        if number.isdecimal() and len(number) < 10 and int(number) < len(model.graphs):
            graph = model.graphs[int(number)]
            for other in (mode, *MODES):
                tree = region_tree(model, graph, other, edits)
                if name in tree.index:
                    return graph, tree.regions[tree.index[name]].members.tolist()
    graph, node = node_at(model, name)
    return graph, [node]


def neighbourhood(model: Model, graph: Graph, nodes: Iterable[int], hops: int) -> list[int]:
    """Nodes at most ``hops`` edges away, whichever way the edges run; the nearest first."""
    flow = topology(model, graph)
    return _spread(nodes, lambda node: flow.predecessors(node) + flow.successors(node), hops)


def cone(model: Model, graph: Graph, nodes: Iterable[int], direction: Direction) -> list[int]:
    """All that ``nodes`` depend on (``up``) or that depends on them (``down``); the nearest first."""
    flow = topology(model, graph)
    return _spread(nodes, flow.predecessors if direction == "up" else flow.successors, flow.count)


def shortest_path(model: Model, graph: Graph, start: int, stop: int) -> list[int]:
    """Nodes of a way with fewest edges along the data flow, from either end; empty where none is."""
    flow = topology(model, graph)
    return _way(flow, start, stop) or _way(flow, stop, start)[::-1]


def longest_path(model: Model, graph: Graph) -> list[int]:
    """Nodes of the longest way along the data flow; edges that close a cycle do not count."""
    flow = topology(model, graph)
    if not flow.count:
        return []
    length, came = [1] * flow.count, [-1] * flow.count
    position: list[int] = flow.position.tolist()
    for node in flow.order.tolist():
        for other in flow.successors(node):
            if position[other] > position[node] and length[node] + 1 > length[other]:
                length[other], came[other] = length[node] + 1, node
    at = max(range(flow.count), key=lambda node: (length[node], -node))
    way = list[int]()
    while at >= 0:
        way.append(at)
        at = came[at]
    return way[::-1]


def node_at(model: Model, node_id: str) -> tuple[Graph, int]:
    """The graph and the number of a node id.

    Raises:
        NotFound: if there is none.
    """
    numbers = node_numbers(node_id)
    if numbers is None or numbers[0] >= len(model.graphs) or numbers[1] >= model.graphs[numbers[0]].node_count:
        raise NotFound(f"no node is called {node_id[:80]!r}", path=model.path)
    return model.graphs[numbers[0]], numbers[1]


def focus_view(
    model: Model, graph: Graph, nodes: Iterable[int], label: str, *, limit: int = LIMIT, hide_constants: bool = True
) -> GraphView:
    """Draw these nodes, the first of them where there are more than ``limit``."""
    picture = draw_nodes(model, graph, list(nodes), limit=limit, hide_constants=hide_constants)
    crumbs = (Crumb(f"g{graph.index}", model.name), Crumb("", label))
    return GraphView(picture.nodes, picture.edges, crumbs, "operator", "", picture.folded, picture.hidden)


def _spread(nodes: Iterable[int], near: Callable[[int], list[int]], hops: int) -> list[int]:
    seen = dict.fromkeys(nodes, 0)
    queue = deque(seen)
    while queue:
        node = queue.popleft()
        if seen[node] == hops:
            continue
        for other in near(node):
            if other not in seen:
                seen[other] = seen[node] + 1
                queue.append(other)
    return list(seen)


def _way(flow: Topology, start: int, stop: int) -> list[int]:
    came = {start: -1}
    queue = deque([start])
    while queue and stop not in came:
        node = queue.popleft()
        for other in flow.successors(node):
            if other not in came:
                came[other] = node
                queue.append(other)
    if stop not in came:
        return []
    way, at = list[int](), stop
    while at >= 0:
        way.append(at)
        at = came[at]
    return way[::-1]
