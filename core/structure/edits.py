"""What a person changed about the regions: names, groups, splits, merges, locks and rejections.

Edits are kept apart from what detectors find and are applied on top of it, in order. One whose
regions or operators are no longer there does nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

import numpy as np

from core.errors import UsageError
from core.structure.regions import LABEL_LENGTH, LEVELS, Region, RegionTree

EditKind = Literal["rename", "group", "split", "merge", "lock", "reject"]
EDIT_KINDS: Final[tuple[EditKind, ...]] = get_args(EditKind)
DETECTOR: Final = "person"
_MOST: Final = 100_000
"""Operators that one edit may name."""


@dataclass(frozen=True, slots=True)
class RegionEdit:
    """One deed.

    Attributes:
        kind: ``rename`` a region to ``label``; ``group`` regions and nodes under a new one;
            ``split`` nodes off a region, or with no nodes let its parts stand alone; ``merge``
            regions into one; ``lock`` a region so that no level opens it; ``reject`` a region, so
            that it is not drawn.
        regions: region ids.
        nodes: node ids.
    """

    kind: EditKind
    regions: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    label: str = ""

    def to_json(self) -> dict[str, object]:
        """Plain values, as the store keeps them."""
        return {"kind": self.kind, "regions": list(self.regions), "nodes": list(self.nodes), "label": self.label}


def edit_from_json(data: object) -> RegionEdit:
    """An edit from its plain values.

    Raises:
        UsageError: if it is none.
    """
    if not isinstance(data, dict):
        raise UsageError("a region edit is a JSON object")
    given: dict[str, object] = {str(key): value for key, value in data.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    kind: EditKind | None = next((known for known in EDIT_KINDS if known == given.get("kind")), None)
    label = given.get("label", "")
    if kind is None or not isinstance(label, str):
        raise UsageError("a region edit has a kind and a label", hint=f"Kinds are {', '.join(EDIT_KINDS)}.")
    return RegionEdit(kind, _texts(given.get("regions")), _texts(given.get("nodes")), label)


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > _MOST:  # pyright: ignore[reportUnknownArgumentType]
        raise UsageError(f"regions and nodes are lists of at most {_MOST:,} ids")
    entries: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    return tuple(str(entry) for entry in entries)


def edited(tree: RegionTree, edits: Iterable[RegionEdit]) -> RegionTree:
    """The tree with all edits that fit applied; the same object where none does."""
    work, done = _Work(tree), False
    for edit in edits:
        try:
            work.apply(edit)
            done = True
        except UsageError:
            continue
    return work.tree() if done else tree


def check_edit(tree: RegionTree, edits: Iterable[RegionEdit], edit: RegionEdit) -> None:
    """Try one more edit on the tree with ``edits`` applied.

    Raises:
        UsageError: if it does not fit, with the reason and what would.
    """
    _Work(edited(tree, edits)).apply(edit)


class _Work:
    """A tree while it is changed: regions by number, ``None`` where one is gone."""

    def __init__(self, tree: RegionTree) -> None:
        self._graph = tree.graph
        self._regions: list[Region | None] = list(tree.regions)
        self._sets = [set[int](region.members.tolist()) for region in tree.regions]
        self._home: list[int] = tree.home.tolist()
        self._index = dict(tree.index)

    def apply(self, edit: RegionEdit) -> None:
        """Change the tree or raise ``UsageError``."""
        match edit.kind:
            case "rename":
                at = self._one(edit)
                self._change(at, label=_label(edit))
            case "lock":
                at = self._one(edit)
                evidence = f"Confirmed by a person. {self._region(at).evidence}"
                self._change(at, level="operator", confidence=1.0, evidence=evidence)
            case "reject":
                self._dissolve(self._one(edit))
            case "split":
                self._split(edit)
            case "merge":
                self._merge(edit)
            case "group":
                self._enclose(self._nodes(edit), _label(edit), "Grouped by a person.", edit.regions)

    def tree(self) -> RegionTree:
        """The result; parents before children."""
        below: dict[int, list[int]] = {}
        for number, region in enumerate(self._regions):
            if region is not None:
                below.setdefault(region.parent, []).append(number)
        order, stack = list[int](), list(reversed(below.get(-1, [])))
        while stack:
            number = stack.pop()
            order.append(number)
            stack.extend(sorted(below.get(number, []), key=lambda n: -min(self._sets[n])))
        place = {old: new for new, old in enumerate(order)}
        regions = tuple(
            replace(self._region(old), members=np.array(sorted(self._sets[old]), np.int32),
                    parent=place.get(self._region(old).parent, -1))
            for old in order
        )  # fmt: skip
        return RegionTree(self._graph, regions, np.array([place.get(home, -1) for home in self._home], np.int32))

    # --- finding ------------------------------------------------------------------------

    def _region(self, at: int) -> Region:
        region = self._regions[at]
        if region is None:
            raise UsageError("this region is gone")
        return region

    def _at(self, name: str) -> int:
        at = self._index.get(name, -1)
        if at < 0 or self._regions[at] is None:
            raise UsageError(f"no region is called {name[:80]!r}")
        return at

    def _one(self, edit: RegionEdit) -> int:
        if len(edit.regions) != 1:
            raise UsageError(f"{edit.kind} takes one region, given are {len(edit.regions)}")
        return self._at(edit.regions[0])

    def _nodes(self, edit: RegionEdit) -> set[int]:
        prefix, found = f"g{self._graph}.n", set[int]()
        for name in edit.nodes:
            number = name.removeprefix(prefix)
            if number == name or not number.isdecimal() or len(number) > 9 or int(number) >= len(self._home):
                raise UsageError(f"no operator of this graph is called {name[:80]!r}")
            found.add(int(number))
        return found.union(*(self._sets[self._at(name)] for name in edit.regions)) if edit.kind != "split" else found

    # --- changing -----------------------------------------------------------------------

    def _change(self, at: int, **fields: object) -> None:
        self._regions[at] = replace(self._region(at), **fields)  # pyright: ignore[reportArgumentType]

    def _dissolve(self, at: int) -> None:
        parent = self._region(at).parent
        self._regions[at] = None
        for number, region in enumerate(self._regions):
            if region is not None and region.parent == at:
                self._change(number, parent=parent)
        self._home = [parent if home == at else home for home in self._home]

    def _split(self, edit: RegionEdit) -> None:
        at, apart = self._one(edit), self._nodes(edit)
        if not apart:
            self._dissolve(at)
            return
        whole, region = self._sets[at], self._region(at)
        if not apart < whole:
            raise UsageError("the operators to split off are not a part of this region")
        rest, label = whole - apart, edit.label or f"{region.label} (2)"
        self._uncut(self._children(at), apart)
        self._dissolve(at)
        for part, name in ((rest, region.label), (apart, label)):
            if len(part) > 1:
                self._enclose(part, name[:LABEL_LENGTH], f"Split off {region.label!r} by a person.", ())

    def _merge(self, edit: RegionEdit) -> None:
        if len(edit.regions) < 2:
            raise UsageError("merge takes two or more regions")
        places = [self._at(name) for name in edit.regions]
        label = _label(edit) if edit.label else self._region(places[0]).label
        members = self._nodes(edit)
        level = min((self._region(at).level for at in places), key=LEVELS.index)
        number = self._enclose(members, label, "Merged by a person.", edit.regions)
        self._change(number, level=level)
        for at in places:
            if at != number and self._regions[at] is not None:
                self._dissolve(at)

    def _enclose(self, members: set[int], label: str, evidence: str, regions: Sequence[str]) -> int:
        """Put a new region around these operators and the regions that they fill."""
        if len(members) < 2:
            raise UsageError("a region needs two operators or more")
        around = self._around(members)
        if around >= 0 and self._sets[around] == members:
            self._change(around, label=label, evidence=evidence, detector=DETECTOR, confidence=1.0)
            return around
        children = [child for child in self._children(around) if not self._sets[child].isdisjoint(members)]
        self._uncut(children, members)
        levels = [self._region(child).level for child in children] or ["layer"]
        above = self._region(around).level if around >= 0 else LEVELS[0]
        level = LEVELS[max(LEVELS.index(above), min(LEVELS.index(each) for each in levels))]
        key = "\0".join((DETECTOR, *sorted(regions), str(min(members)), str(max(members)), str(len(members))))
        name = f"r{self._graph}.{hashlib.blake2b(key.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
        number = len(self._regions)
        self._regions.append(Region(name, label, DETECTOR, level, np.zeros(0, np.int32), around, 1.0, evidence))
        self._sets.append(set(members))
        self._index[name] = number
        for child in children:
            self._change(child, parent=number)
        self._home = [number if home == around and node in members else home for node, home in enumerate(self._home)]
        return number

    def _children(self, at: int) -> list[int]:
        return [n for n, region in enumerate(self._regions) if region is not None and region.parent == at]

    def _around(self, members: set[int]) -> int:
        """The innermost region that holds all of them, -1 where none does."""
        holding = [n for n, region in enumerate(self._regions) if region is not None and members <= self._sets[n]]
        return min(holding, key=lambda n: (len(self._sets[n]), -n), default=-1)

    def _uncut(self, children: Iterable[int], members: set[int]) -> None:
        for child in children:
            if not self._sets[child].isdisjoint(members) and not self._sets[child] <= members:
                label = self._region(child).label
                raise UsageError(
                    f"this cuts through the region {label!r}", hint="Take all of it, or reject that region first."
                )


def _label(edit: RegionEdit) -> str:
    label = edit.label.strip()
    if not label:
        raise UsageError(f"{edit.kind} needs a name for the region")
    return label[:LABEL_LENGTH]
