"""Attention: a softmax between two products of computed values, or one fused operator."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from core.structure.detectors.growth import bias, climb
from core.structure.wiring import CONVOLUTION, MATRIX, NORMS, QUANTIZING, RESHAPING, Found, Wiring, names

FUSED: Final = names(
    "Attention MultiHeadAttention GroupQueryAttention PackedAttention PackedMultiHeadAttention QAttention"
    " DecoderAttention DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention SparseAttention LongformerAttention"
    " PagedAttention LinearAttention ScaledDotProductAttention QOrderedAttention"
)
_SCORES: Final = (
    names(
        "Add Sub Mul Div Where Cast Reshape Transpose Clip Max Min Tanh Identity Slice Squeeze Unsqueeze Expand Concat"
        " MatMulInteger Split"
    )
    | QUANTIZING
)
_HEADS: Final = (
    RESHAPING
    | QUANTIZING
    | names("Mul Div Add Sub Neg Sqrt Sin Cos RotaryEmbedding Where ScatterND Pad Dropout")
    | names("SimplifiedLayerNormalization RMSNormalization")
)
_AFTER: Final = names("Cast Dropout Identity Where Mul Reshape Transpose Slice Squeeze Unsqueeze") | QUANTIZING
_OUT: Final = RESHAPING | QUANTIZING | names("Mul Dropout")
_REACH: Final = 14


def find(w: Wiring) -> list[Found]:
    """Every attention, with its projections where they are found."""
    found = [_fused(w, node) for node in w.of(FUSED)]
    for start, stop, members in softmaxes(w):
        group = _decomposed(w, start, stop, members)
        if group is not None:
            found.append(group)
    return found


def softmaxes(w: Wiring) -> list[tuple[int, int, frozenset[int]]]:
    """Softmax as one operator or written out: its input value, its output value, its nodes."""
    sites = [
        (w.main[node][0], w.makes[node][0], frozenset((node,)))
        for node in w.of(("Softmax", "QLinearSoftmax", "BiasSoftmax"))
        if w.main[node] and w.makes[node]
    ]
    for node in w.of(("Div",)):
        site = _written_out(w, node)
        if site is not None:
            sites.append(site)
    return sites


def _written_out(w: Wiring, node: int) -> tuple[int, int, frozenset[int]] | None:
    """``Exp(x) / ReduceSum(Exp(x))``, with the maximum subtracted or not."""
    if len(w.main[node]) != 2:
        return None
    top, below = w.main[node]
    exp, nodes = w.maker[top], {node}
    if exp < 0 or w.ops[exp] != "Exp":
        return None
    at = w.maker[below]
    while at >= 0 and w.ops[at] in ("Reshape", "Expand", "Unsqueeze") and w.main[at]:
        nodes.add(at)
        at = w.maker[w.main[at][0]]
    if at < 0 or w.ops[at] != "ReduceSum" or w.main[at][:1] != [top]:
        return None
    nodes |= {exp, at}
    start = w.main[exp][0]
    less = w.maker[start]
    if less >= 0 and w.ops[less] == "Sub" and len(w.main[less]) == 2:
        nodes.add(less)
        start = w.main[less][0]
    return start, w.makes[node][0], frozenset(nodes)


def _decomposed(w: Wiring, start: int, stop: int, softmax: frozenset[int]) -> Found | None:
    scores, product = _up(w, start)
    if product < 0:
        return None
    weights, mix = _down(w, stop)
    if mix < 0:
        return None
    core = {*softmax, *scores, product, *weights, mix}
    around, words, sure = _projections(w, w.main[product] + [v for v in w.main[mix] if w.maker[v] not in core], core)
    after = _output(w, mix)
    scale = sorted({w.ops[n] for n in scores if w.ops[n] in ("Mul", "Div")})
    mask = sorted({w.ops[n] for n in scores if w.ops[n] in ("Add", "Where")})
    evidence = (
        "Softmax between two matrix products of computed values"
        + (f", scaled by {scale[0]}" if scale else "")
        + (f", masked by {mask[0]}" if mask else "")
        + f"; {words}"
        + (", then an output projection." if after else ".")
    )
    return Found("attention", "attention", frozenset({*core, *around, *after}), sure, evidence, frozenset(core))


def _fused(w: Wiring, node: int) -> Found:
    around, words, _sure = _projections(w, w.main[node], {node})
    after = _output(w, node)
    evidence = f"One {w.ops[node]} operator; {words}" + (", then an output projection." if after else ".")
    return Found("attention", "attention", frozenset({node, *around, *after}), 1.0, evidence, frozenset((node,)))


def _up(w: Wiring, value: int) -> tuple[set[int], int]:
    """From the softmax back to the product of queries and keys, and the nodes of the way."""
    came: dict[int, int] = {}
    queue = [(value, -1, 0)]
    while queue:
        at, after, depth = queue.pop(0)
        node = w.maker[at]
        if node < 0 or w.side[node] or node in came or depth > _REACH:
            continue
        came[node] = after
        if w.ops[node] in MATRIX and len(w.main[node]) >= 2:
            way: set[int] = set()
            step = came[node]
            while step >= 0:
                way.add(step)
                step = came[step]
            return way, node
        if w.ops[node] in _SCORES:
            queue.extend((before, node, depth + 1) for before in w.main[node])
    return set(), -1


def _down(w: Wiring, value: int) -> tuple[set[int], int]:
    """From the softmax on to the product with the values, and the nodes of the way."""
    way: set[int] = set()
    for _ in range(_REACH):
        users = [user for user in w.users[value] if not w.side[user]]
        ends = [user for user in users if w.ops[user] in MATRIX and len(w.main[user]) >= 2]
        if ends:
            return way, ends[0]
        steps = [user for user in users if w.ops[user] in _AFTER and w.makes[user]]
        if not steps:
            return set(), -1
        way.add(steps[0])
        value = w.makes[steps[0]][0]
    return set(), -1


def _projections(w: Wiring, values: Collection[int], core: Collection[int]) -> tuple[set[int], str, float]:
    """What lies between the projections and the core, the projections and their biases included."""
    around: set[int] = set()
    ends: set[int] = set()
    for value in values:
        passed, stops = climb(w, value, _HEADS, MATRIX | CONVOLUTION)
        if stops:
            around |= _between(w, passed, stops)
            ends |= stops
    around -= set(core)
    if not ends:
        return set(), "no projections found before it", 0.85
    sources = {value for end in ends for value in w.main[end]}
    kind = "one projection" if len(ends) == 1 else f"{len(ends)} projections"
    where = "one value" if len(sources) == 1 else f"{len(sources)} values"
    return around, f"queries, keys and values come from {kind} of {where}", 0.97


def _between(w: Wiring, passed: set[int], ends: set[int]) -> set[int]:
    """Those of ``passed`` that an end leads to, so that a cache or a mask is not swept in."""
    reached = set(ends)
    for node in sorted(passed, key=w.position.__getitem__):
        if node in ends or any(maker in reached for maker in w.before(node)):
            reached.add(node)
    return reached & passed


def _output(w: Wiring, node: int) -> list[int]:
    """The way to the output projection, it and its bias included; empty where there is none."""
    way: list[int] = []
    at = node
    for _ in range(_REACH):
        users = [user for user in w.next(at) if not w.side[user]]
        if len(set(users)) != 1:
            return []
        at = users[0]
        way.append(at)
        if w.ops[at] in MATRIX | CONVOLUTION and w.weighted(at):
            return [*way, *bias(w, at)]
        if w.ops[at] not in _OUT and not (w.ops[at] == "Add" and len(w.main[at]) == 1):
            return []
        if w.ops[at] in NORMS or not w.makes[at]:
            return []
    return []
