"""Region trees of a graph, mode by mode; ``auto`` puts the others together."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from core.structure.detectors import residual
from core.structure.detectors.table import layers
from core.structure.forest import Forest, draft
from core.structure.regions import Level, RegionTree
from core.structure.repeats import Run, repeated
from core.structure.separators import Segment, segments
from core.structure.wiring import CONVOLUTION, MATRIX, RECURRENT, Found, Wiring

_NUMBERED: Final = re.compile(r"(.{0,200}?)(\d{1,6})")
_COVERED: Final = 0.6
"""Share of the main operators that scopes must place to lead the way."""
_SCOPE_LEAST: Final = 3


def auto(w: Wiring, scopes: RegionTree) -> RegionTree:
    """Scopes where the names say enough, else repeated blocks; then residuals and layers inside."""
    forest = Forest(w)
    found = layers(w)
    main = [node for node in range(len(w.ops)) if not w.side[node]]
    placed = sum(1 for node in main if scopes.home[node] >= 0)
    led = placed > _COVERED * len(main) and len(scopes.regions) > 1
    if led:
        forest.plant(scopes)
        _stack_siblings(w, forest)
    else:
        _plant_runs(w, forest, repeated(w), found)
    for group in sorted(residual.find(w), key=lambda group: -len(group.members)):
        _insert(forest, group, "block")
    for group in found:
        _insert(forest, group, "layer")
    if not led:
        _sections(w, forest)
    return forest.tree(w)


def patterns(w: Wiring) -> RegionTree:
    """Layers only."""
    forest = Forest(w)
    for group in layers(w):
        _insert(forest, group, "layer")
    return forest.tree(w)


def repeats(w: Wiring) -> RegionTree:
    """Repeated blocks only."""
    forest = Forest(w)
    _plant_runs(w, forest, repeated(w), layers(w))
    return forest.tree(w)


def structural(w: Wiring) -> RegionTree:
    """Single-entry single-exit regions and straight chains, from the wiring alone."""
    forest = Forest(w)
    _plant_segments(forest, segments(w), "block")
    return forest.tree(w)


def _insert(forest: Forest, group: Found, level: Level) -> int:
    made = draft(group.detector, group.label, level, group.confidence, group.evidence, group.members)
    return forest.insert(made, group.members, group.core)


# --- repeated blocks --------------------------------------------------------------------


def _plant_runs(
    w: Wiring, forest: Forest, runs: Sequence[Run], found: Sequence[Found], level: Level = "architecture"
) -> None:
    kinds = {node: group.detector for group in found for node in group.core}
    for run in runs:
        every = [node for block in run.blocks for node in block]
        kind, count, size = _kind(w, run.blocks[0], kinds), len(run.blocks), len(run.blocks[0])
        shapes = "weights of the same shapes" if run.same_shapes else "weights of differing shapes"
        evidence = f"{count} blocks in a row with the same {size} operators in the same order and {shapes}."
        sure = 0.95 if run.same_shapes else 0.85
        forest.insert(draft("repeated blocks", f"{count} × {kind}", level, sure, evidence, every), every)
        for number, block in enumerate(run.blocks):
            words = f"Block {number + 1} of {count} equal ones."
            forest.insert(draft("repeated block", f"{kind} {number + 1}", "block", sure, words, block), block)
        _plant_runs(w, forest, run.inner, found, "block")


def _kind(w: Wiring, block: Collection[int], kinds: dict[int, str]) -> str:
    held = {kinds[node] for node in block if node in kinds}
    ops = {w.ops[node] for node in block}
    if "attention" in held:
        return "transformer block" if "feed-forward" in held else "attention block"
    for names, word in ((RECURRENT, "recurrent block"), (CONVOLUTION, "convolution block"), (MATRIX, "linear block")):
        if ops & names:
            return word
    return "block"


def _stack_siblings(w: Wiring, forest: Forest) -> None:
    """Modules side by side that differ in their number alone become one stack."""
    parents = {draft.parent for draft in forest.drafts}
    for parent in sorted(parents):
        groups: dict[str, list[tuple[int, int]]] = {}
        for region in forest.within(parent):
            match = _NUMBERED.fullmatch(forest.drafts[region].label)
            if match and forest.sizes[region] >= _SCOPE_LEAST:
                groups.setdefault(match[1], []).append((int(match[2]), region))
        for siblings in groups.values():
            for row in _alike(w, forest, [region for _, region in sorted(siblings)]):
                _stack(forest, row)


def _alike(w: Wiring, forest: Forest, siblings: Sequence[int]) -> list[list[int]]:
    """Rows of two or more neighbours with the same operators."""
    rows: list[list[int]] = []
    before: object = None
    for region in siblings:
        nodes = sorted((n for n in forest.sets[region] if not w.side[n]), key=w.position.__getitem__)
        now = tuple(w.ops[node] for node in nodes)
        if rows and now == before:
            rows[-1].append(region)
        else:
            rows.append([region])
        before = now
    return [row for row in rows if len(row) > 1]


def _stack(forest: Forest, row: Sequence[int]) -> None:
    members = set[int]().union(*(forest.sets[region] for region in row))
    names = [forest.drafts[region].label for region in row]
    label = f"{names[0]} … {names[-1]} ({len(row)}×)"
    evidence = f"{len(row)} modules with numbered names and the same operators."
    made = draft("repeated blocks", label, "architecture", 0.95, evidence, members)
    made.key = f"stack:{forest.drafts[row[0]].key}"
    forest.insert(made, members)
    for region in row:
        forest.drafts[region].level = "block"


# --- sections and segments --------------------------------------------------------------


def _sections(w: Wiring, forest: Forest) -> None:
    """What lies before, between and after the stacks of repeated blocks."""
    tops = forest.within(-1)
    stacks = {region for region in tops if forest.drafts[region].level == "architecture"}
    if not stacks:
        return
    firsts = [(min(w.position[n] for n in forest.sets[region]), region, -1) for region in tops]
    firsts += [(w.position[n], -1, n) for n in range(len(w.ops)) if forest.home[n] < 0 and not w.side[n]]
    rows: list[list[int]] = [[]]
    for _, region, node in sorted(firsts):
        if region in stacks:
            rows.append([])
        else:
            rows[-1].extend(forest.sets[region] if region >= 0 else (node,))
    for number, row in enumerate(rows):
        if len(row) > 2:
            label = "stem" if number == 0 else "head" if number == len(rows) - 1 else f"stage {number}"
            where = "before the first" if number == 0 else "after the last" if label == "head" else "between"
            evidence = f"{len(row)} operators {where} repeated blocks."
            forest.insert(draft("section", label, "architecture", 0.6, evidence, row), row)


def _plant_segments(forest: Forest, parts: Sequence[Segment], level: Level) -> None:
    chain: list[int] = []
    for part in [*parts, None]:
        if part is not None and len(part.nodes) == 1:
            chain.extend(part.nodes)
            continue
        if len(chain) > 1:
            words = "Each operator hands one value to the next."
            forest.insert(draft("single entry, single exit", f"chain of {len(chain)}", level, 1.0, words, chain), chain)
        chain = []
        if part is not None:
            ways = len(part.branches)
            label = f"{ways} branches" if ways > 1 else f"region of {len(part.nodes)}"
            words = f"One value enters and one leaves; {len(part.nodes)} operators in between."
            forest.insert(draft("single entry, single exit", label, level, 1.0, words, part.nodes), part.nodes)
            _plant_segments(forest, part.inner, "layer")
