"""Node data: a JSON file with a number or text for each node of a graph, as Model Explorer takes it.

It is no model; it colours one. The form is either ``{"results": {NODE: {"value": ...}}, "thresholds":
[...], "gradient": [...]}`` or an object of such objects by graph name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from core.capabilities import NAMES
from core.errors import BrokenFile
from core.formats import _json
from core.formats._json import Json
from core.formats.head import Head
from core.ir import Availability, Capability, CapabilityName, Finding, Model
from core.limits import MIB

MOST: Final = 4 * MIB
"""Bytes that are parsed; a larger file is recognised and not looked into."""

_REASON: Final = "Node data holds a value for each node of a graph and no model; open the model that it belongs to."


@dataclass(frozen=True, slots=True)
class GraphData:
    """What a file says about one graph.

    Attributes:
        graph: its name, empty where the file names none.
        values: number or text by node.
    """

    graph: str
    values: dict[str, float | str]
    thresholds: int
    gradient: int


def match(head: Head) -> int:
    """2 for a JSON object that has ``results`` near its beginning."""
    if head.source is None or head.start.lstrip()[:1] != b"{":
        return 0
    return 2 if b'"results"' in head.start else 0


def read(head: Head) -> Model:
    """Open node data; reads the file where it is not too large.

    Raises:
        BrokenFile: if it is no JSON object in one of the two forms.
    """
    source = head.source
    assert source is not None
    graphs = graph_data(source.read(0, source.size), source.path) if source.size <= MOST else []
    metadata = {
        (f"graph {_json.text(data.graph)[:200]}" if data.graph else "graph"): (
            f"{len(data.values)} values, {data.thresholds} thresholds, {data.gradient} gradient stops"
        )
        for data in graphs[:1000]
    }
    large = Finding(
        "nodedata.large", "info", f"The file has {source.size} bytes; beyond {MOST} they are not looked into."
    )
    return Model(
        format="nodedata",
        kind="node data for a graph",
        path=head.path,
        sources=(source,),
        metadata=metadata,
        tensors=(),
        graphs=(),
        capabilities={name: _capability(name) for name in NAMES},
        findings=() if source.size <= MOST else (large,),
    )


def graph_data(data: bytes, path: str) -> list[GraphData]:
    """The values of every graph in the file.

    Raises:
        BrokenFile: if it is no JSON object in one of the two forms.
    """
    document = _json.parse_object(data, path=path, what="node data")
    if isinstance(document.get("results"), dict):
        return [_one("", document, path)]
    found = [
        _one(name, cast("dict[str, Json]", part), path)
        for name, part in document.items()
        if isinstance(part, dict) and isinstance(part.get("results"), dict)
    ]
    if not found:
        raise BrokenFile(
            "is a JSON file and no model", path=path, field="results", expected="an object with a value for each node",
            found=_json.kind(document.get("results")), hint="Open the model file, or its folder.",
        )  # fmt: skip
    return found


def _one(name: str, part: dict[str, Json], path: str) -> GraphData:
    values = dict[str, float | str]()
    for node, entry in cast("dict[str, Json]", part["results"]).items():
        value = entry.get("value") if isinstance(entry, dict) else entry
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise BrokenFile(
                "has no value", path=path, field=f"results of {_json.text(node)[:100]!r}",
                expected="a number or a text", found=_json.kind(value),
            )  # fmt: skip
        values[node] = _json.text(value) if isinstance(value, str) else _finite(value)
    return GraphData(name, values, _length(part.get("thresholds")), _length(part.get("gradient")))


def _finite(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _length(value: Json) -> int:
    return len(value) if isinstance(value, list) else 0


def _capability(name: CapabilityName) -> Capability:
    known: tuple[Availability, str] = ("available", "") if name == "inspect" else ("unavailable", _REASON)
    return Capability(name, *known)
