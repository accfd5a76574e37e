"""Regions, views, layout and search on large graphs, in CPU seconds beside the design's targets."""

from __future__ import annotations

import time
from collections.abc import Callable

from core.graph_builder import GraphBuilder
from core.ir import Model
from core.structure.layout import layout
from core.structure.search import find
from core.structure.view import graph_view
from tests.structure import nets


def main() -> None:
    """Print one line a task; the first has a target in section 6 of the design."""
    blocks, chain = nets.bert(210, width=8), _chain(50_000)
    edges = [(i, i + 1) for i in range(9999)] + [(i, i + 7) for i in range(0, 9990, 5)]
    _line(
        f"regions and first level of {blocks.node_count:,} operators",
        lambda: graph_view(blocks, level="architecture"),
        2.0,
    )
    _line("first view of 50,000 operators by scopes", lambda: graph_view(chain, mode="scopes"))
    _line("layout of 10,000 boxes", lambda: layout([(90.0, 32.0)] * 10_000, edges))
    _line("regex over the names of 50,000 operators", lambda: find(chain, "name~/layer\\.999.*op_49999$/"))


def _line(title: str, work: Callable[[], object], target: float | None = None) -> None:
    start = time.process_time()
    work()
    taken = time.process_time() - start
    aim = "" if target is None else f"  (target {target:.1f} s, {'met' if taken <= target else 'MISSED'})"
    print(f"{title:<52}{taken:8.2f} s{aim}")


def _chain(count: int) -> Model:
    b = GraphBuilder(0, "main", "net")
    for i in range(count):
        b.node("Relu", f"/encoder/layer.{i // 50}/attn/op_{i}", [b.value(f"v{i}")], [b.value(f"v{i + 1}")])
    return Model("onnx", "ONNX model", "m.onnx", (), {}, (), (b.finish(),), {})


if __name__ == "__main__":
    main()
