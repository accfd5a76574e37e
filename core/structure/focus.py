"""Parts of a graph around a node: neighbourhood, cones, shortest and longest ways."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal

from core.errors import NotFound
from core.ir import Graph, Model
from core.structure.folding import draw_nodes
from core.structure.place import Crumb, node_numbers
from core.structure.topology import Topology, topology
from core.structure.view import LIMIT, GraphView

Direction = Literal["up", "down"]


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
