"""Nest groups of operators that detectors found, the surer ones first, into one region tree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from core.structure.regions import LEVELS, Draft, Level, RegionTree, grow
from core.structure.wiring import Wiring

_SHARED: Final = 64
"""Regions that may share a constant before it is left where it is."""


class Forest:
    """Regions that nest: each new group is put inside, around or beside those already there."""

    def __init__(self, w: Wiring) -> None:
        self.graph, self.side = w.graph.index, w.side
        self.home = [-1] * len(w.ops)
        self.drafts: list[Draft] = []
        self.sizes: list[int] = []
        self.sets: list[set[int]] = []

    def plant(self, tree: RegionTree) -> None:
        """Begin with the regions of a tree."""
        self.home = tree.home.tolist()
        for region in tree.regions:
            key = region.path or region.id
            self._add(
                Draft(region.label, region.detector, region.level, region.parent, region.confidence, region.evidence,
                      key, region.path),
                set(region.members.tolist()),
            )  # fmt: skip

    def insert(self, draft: Draft, members: Collection[int], core: Collection[int] = (), least: int = 2) -> int:
        """Put a group in its place and return its number, -1 where it does not fit.

        Members that lie in a region which the group cuts are left out, unless they are ``core``;
        constants and shape arithmetic of that region go with the group and do not count as a cut.
        A group with exactly the members of a region gives that region its meaning.
        """
        wanted = set(members)
        if len(wanted) < least:
            return -1
        around = self._around(wanted)
        below: dict[int, list[int]] = {}
        for node in wanted:
            below.setdefault(self._child(node, around), []).append(node)
        for child, inside in below.items():
            if child >= 0 and len(inside) < self.sizes[child]:
                missing = self.sets[child].difference(inside)
                if all(self.side[node] for node in missing):
                    wanted |= missing
                else:
                    wanted.difference_update(inside)
        if len(wanted) < least or not wanted.issuperset(core):
            return -1
        same = next((r for r in (around, *below) if r >= 0 and self.sets[r] == wanted), -1)
        if same >= 0:
            return self._mean(same, draft)
        return self._between(draft, wanted, around, [c for c in below if c >= 0])

    def tree(self, w: Wiring) -> RegionTree:
        """Freeze; constants and shape arithmetic go where all their users are."""
        adopt(w, self.home, [draft.parent for draft in self.drafts])
        order = self._outermost_first()
        place = {old: new for new, old in enumerate(order)}
        drafts = [self.drafts[old] for old in order]
        for draft in drafts:
            draft.parent = place[draft.parent] if draft.parent >= 0 else -1
        for draft in drafts:
            if draft.parent >= 0:
                draft.level = LEVELS[max(LEVELS.index(draft.level), LEVELS.index(drafts[draft.parent].level))]
        home = np.array([place[h] if h >= 0 else -1 for h in self.home], np.int32)
        return grow(self.graph, drafts, home)

    def within(self, region: int) -> list[int]:
        """Regions directly in a region, -1 for the top."""
        return [number for number, draft in enumerate(self.drafts) if draft.parent == region]

    def _add(self, draft: Draft, members: set[int]) -> int:
        self.drafts.append(draft)
        self.sets.append(members)
        self.sizes.append(len(members))
        return len(self.drafts) - 1

    def _around(self, wanted: set[int]) -> int:
        """The innermost region that holds all of ``wanted``."""
        at = self.home[next(iter(wanted))]
        while at >= 0 and (self.sizes[at] < len(wanted) or not wanted <= self.sets[at]):
            at = self.drafts[at].parent
        return at

    def _child(self, node: int, around: int) -> int:
        """The region directly in ``around`` that holds ``node``, -1 where none does."""
        at, below = self.home[node], -1
        while at != around:
            below, at = at, self.drafts[at].parent
        return below

    def _mean(self, region: int, draft: Draft) -> int:
        known = self.drafts[region]
        named = known.detector == "module scopes"
        if known.detector == draft.detector or (known.confidence > draft.confidence and not named):
            return region
        if not named:
            known.label = draft.label
        elif draft.label not in known.label:
            known.label = f"{known.label} ({draft.label})"
        known.evidence = f"{draft.evidence} {known.evidence}"
        known.detector, known.confidence = draft.detector, max(draft.confidence, known.confidence)
        known.level = draft.level
        return region

    def _between(self, draft: Draft, wanted: set[int], around: int, below: Sequence[int]) -> int:
        draft.parent = around
        number = self._add(draft, wanted)
        for child in below:
            if self.sets[child] <= wanted:
                self.drafts[child].parent = number
        for node in wanted:
            if self.home[node] == around:
                self.home[node] = number
        return number

    def _outermost_first(self) -> list[int]:
        below: list[list[int]] = [[] for _ in range(len(self.drafts) + 1)]
        for number, draft in enumerate(self.drafts):
            below[draft.parent].append(number)
        order, stack = list[int](), list(reversed(below[-1]))
        while stack:
            number = stack.pop()
            order.append(number)
            stack.extend(reversed(below[number]))
        return order


def adopt(w: Wiring, home: list[int], parents: Sequence[int]) -> None:
    """Bring constants and shape arithmetic into the innermost region that holds all their users."""
    depth = [0] * len(parents)
    for number in range(len(parents)):
        at = parents[number]
        while at >= 0:
            at, depth[number] = parents[at], depth[number] + 1
    for node in reversed(w.order):
        if not w.side[node]:
            continue
        users = {home[user] for user in w.next(node)}
        if not users or -1 in users or len(users) > _SHARED:
            continue
        inner = _common(users, parents, depth)
        if home[node] < 0 or (inner >= 0 and _common({inner, home[node]}, parents, depth) == home[node]):
            home[node] = inner


def _common(homes: set[int], parents: Sequence[int], depth: Sequence[int]) -> int:
    """The innermost region that holds all of ``homes``, -1 where none does."""
    at = homes.pop()
    for other in homes:
        while at != other:
            if at < 0 or other < 0:
                return -1
            if depth[at] >= depth[other]:
                at = parents[at]
            else:
                other = parents[other]  # noqa: PLW2901
    return at


def draft(detector: str, label: str, level: Level, confidence: float, evidence: str, members: Collection[int]) -> Draft:
    """A draft named after what it is and which operators it spans."""
    key = f"{detector}:{min(members)}-{max(members)}:{len(members)}"
    return Draft(label, detector, level, -1, confidence, evidence, key)
