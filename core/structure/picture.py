"""What a view draws: nodes and the lines between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.structure.categories import Category

NodeKind = Literal["operator", "region", "input", "output"]


@dataclass(frozen=True, slots=True)
class ViewNode:
    """One box.

    Attributes:
        id: ``g0.n12`` for operators, a region's id (what ``inside`` takes), ``in.g0.v3`` and
            ``out.g0.v3`` for values that cross the border, ``in.g0.rest`` for many of them.
        label: operator type, region name or value name; text of the file, never markup.
        name: the operator's own name, or a region's full path.
        members: operators inside (the operator itself), tensors for files without a graph.
        confidence: 0 to 1 how sure the grouping is; ``evidence`` why, ``detector`` what found it.
        enterable: whether ``inside=id`` shows something.
    """

    id: str
    kind: NodeKind
    label: str
    op_type: str
    members: tuple[str, ...]
    category: Category
    name: str = ""
    confidence: float = 1.0
    evidence: str = ""
    detector: str = ""
    enterable: bool = False

    @property
    def count(self) -> int:
        """Operators (or tensors) inside."""
        return len(self.members)

    def to_json(self) -> dict[str, object]:
        """Plain values; keys of the ``graph`` verb."""
        return {
            "id": self.id, "kind": self.kind, "label": self.label, "op_type": self.op_type,
            "members": list(self.members), "confidence": self.confidence, "evidence": self.evidence,
            "detector": self.detector, "name": self.name, "category": self.category, "enterable": self.enterable,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ViewEdge:
    """All values that go from one box to another.

    Attributes:
        values: value ids, ``g0.v12``, ascending.
    """

    source: str
    target: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and lines of one place; ``folded`` and ``hidden`` as in ``GraphView``."""

    nodes: tuple[ViewNode, ...]
    edges: tuple[ViewEdge, ...]
    folded: bool
    hidden: int
