"""A convolution and what belongs to it: normalisation and activation."""

from __future__ import annotations

from core.structure.detectors.growth import absorb
from core.structure.wiring import ACTIVATIONS, CONVOLUTION, NORMS, Found, Wiring

_WEIGHT_AT = {"QLinearConv": 3}


def find(w: Wiring) -> list[Found]:
    """Every convolution that something light follows."""
    found: list[Found] = []
    for node in w.of(CONVOLUTION):
        after = absorb(w, [node], most=16) if w.main[node] else []
        if not after:
            continue
        ops = [w.ops[n] for n in after]
        norm = next((op for op in ops if op in NORMS), "")
        affine = any(w.ops[n] in ("Mul", "Add") and len(w.main[n]) == 1 for n in after)
        bend = next((op for op in ops if op in ACTIVATIONS), "")
        parts = [f"conv{_kernel(w, node)}", "norm" if norm else "affine" if affine and not bend else "", bend.lower()]
        words = [f"{w.ops[node]} followed by"]
        words.append(", ".join(part for part in (norm, "scale and shift" if affine and not norm else "", bend) if part))
        evidence = " ".join(words) if words[1] else f"{w.ops[node]} followed by {', '.join(dict.fromkeys(ops))}"
        sure, label = (0.95 if norm or bend else 0.85), " · ".join(part for part in parts if part)
        found.append(Found("convolution", label, frozenset({node, *after}), sure, evidence + ".", frozenset((node,))))
    return found


def _kernel(w: Wiring, node: int) -> str:
    """`` 3×3`` from the shape of the weights, empty where it is not known."""
    at = _WEIGHT_AT.get(w.ops[node], 1)
    if at >= len(w.takes[node]):
        return ""
    place = int(w.graph.columns.tensor[w.takes[node][at]])
    shape = w.model.tensors[place].shape if place >= 0 else ()
    return " " + "×".join(str(size) for size in shape[2:]) if len(shape) > 2 else ""
