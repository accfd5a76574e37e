"""Regions of a graph: nested groups of operators, each with the reason why it is one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from core.ir import Ints

Level = Literal["architecture", "block", "layer", "operator"]
LEVELS: Final[tuple[Level, ...]] = ("architecture", "block", "layer", "operator")
LABEL_LENGTH: Final = 120
"""Characters of a label; the whole text is in ``path`` and in the nodes."""


@dataclass(frozen=True, slots=True)
class Region:
    """A group of operators of one graph.

    Attributes:
        id: stable over sessions and usable in a URL.
        detector: what found it, e.g. ``module scopes``, ``attention``.
        level: views at this level and at coarser ones draw it folded.
        members: node indexes, ascending.
        parent: index of the enclosing region in its tree, -1 at the top.
        confidence: 0 to 1; ``evidence`` says in words what it rests on.
        path: the full name where it has one.
    """

    id: str
    label: str
    detector: str
    level: Level
    members: Ints
    parent: int
    confidence: float
    evidence: str
    path: str = ""


@dataclass(frozen=True)
class RegionTree:
    """All regions of one graph, parents before children.

    Attributes:
        home: the innermost region of each node, -1 where it is in none.
    """

    graph: int
    regions: tuple[Region, ...]
    home: Ints

    @cached_property
    def index(self) -> dict[str, int]:
        """Places of regions by id."""
        return {region.id: place for place, region in enumerate(self.regions)}

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Child regions of each region; the last entry holds those at the top."""
        lists: list[list[int]] = [[] for _ in range(len(self.regions) + 1)]
        for place, region in enumerate(self.regions):
            lists[region.parent].append(place)
        return tuple(tuple(entry) for entry in lists)


@dataclass(slots=True)
class Draft:
    """A region before its members are known: they are the nodes whose home it or a descendant is."""

    label: str
    detector: str
    level: Level
    parent: int
    confidence: float
    evidence: str
    key: str
    path: str = ""


def grow(graph: int, drafts: Sequence[Draft], home: Ints, *, least: int = 2) -> RegionTree:
    """Make the tree; drafts list parents before children.

    Regions with fewer than ``least`` members dissolve into their parent, and a region that holds
    the same members as its parent merges with it: the inner one's level and evidence stay.
    """
    sizes = _sizes(drafts, home)
    kept, heir = _kept(drafts, sizes, len(home), least)
    final = np.array([*heir, -1], np.int32)[home] if len(drafts) else home
    members = _members([entry.parent for entry in kept], final)
    _distinguish(kept)
    regions = tuple(_region(graph, draft, members[place]) for place, draft in enumerate(kept))
    return RegionTree(graph, regions, final.astype(np.int32))


def _distinguish(drafts: Sequence[Draft]) -> None:
    """Give equal keys a number, for ids name one region each."""
    seen: dict[str, int] = {}
    for draft in drafts:
        times = seen[draft.key] = seen.get(draft.key, 0) + 1
        if times > 1:
            draft.key = f"{draft.key}#{times}"


def _sizes(drafts: Sequence[Draft], home: Ints) -> list[int]:
    sizes: list[int] = np.bincount(home[home >= 0], minlength=len(drafts)).tolist() if len(drafts) else []
    for place in range(len(drafts) - 1, -1, -1):
        if drafts[place].parent >= 0:
            sizes[drafts[place].parent] += sizes[place]
    return sizes


def _kept(drafts: Sequence[Draft], sizes: list[int], count: int, least: int) -> tuple[list[Draft], list[int]]:
    only = [-1] * len(drafts)  # the child that holds all members of its parent
    for place, draft in enumerate(drafts):
        if draft.parent >= 0 and sizes[place] == sizes[draft.parent]:
            only[draft.parent] = place
    kept: list[Draft] = []
    heir: list[int] = []  # which kept region a draft became
    for place, draft in enumerate(drafts):
        parent = heir[draft.parent] if draft.parent >= 0 else -1
        everything = draft.parent < 0 and sizes[place] == count and draft.detector == "module scopes"
        if sizes[place] < least or only[place] >= 0 or everything:
            heir.append(parent)
            continue
        heir.append(len(kept))
        kept.append(Draft(draft.label, draft.detector, draft.level, parent, draft.confidence, draft.evidence,
                          draft.key, draft.path))  # fmt: skip
    return kept, heir


def _members(parents: Sequence[int], home: Ints) -> list[Ints]:
    """Sorted members of each region, descendants' included."""
    first, last, clock = [0] * len(parents), [0] * len(parents), 0
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for place, parent in enumerate(parents):
        below[parent].append(place)
    stack = [(place, False) for place in reversed(below[-1])] if parents else []
    while stack:
        place, leaving = stack.pop()
        if leaving:
            last[place] = clock
            continue
        first[place] = clock
        clock += 1
        stack.append((place, True))
        stack.extend((child, False) for child in reversed(below[place]))
    ticks = np.array([*first, -1], np.int32)[home]
    order = np.argsort(ticks, kind="stable")
    ranked = ticks[order]
    starts, stops = np.searchsorted(ranked, first), np.searchsorted(ranked, last)
    return [np.sort(order[a:b]).astype(np.int32) for a, b in zip(starts, stops, strict=True)]


def _region(graph: int, draft: Draft, members: Ints) -> Region:
    name = hashlib.blake2b(draft.key.encode("utf-8", "replace"), digest_size=6).hexdigest()
    label = draft.label if len(draft.label) <= LABEL_LENGTH else draft.label[: LABEL_LENGTH - 1] + "…"
    return Region(
        f"r{graph}.{name}", label, draft.detector, draft.level, members,
        draft.parent, draft.confidence, draft.evidence, draft.path,
    )  # fmt: skip
