"""Quantize and dequantize pairs: a value rounded to a grid and brought back."""

from __future__ import annotations

from core.structure.wiring import Found, Wiring


def find(w: Wiring) -> list[Found]:
    """Every ``QuantizeLinear`` with the ``DequantizeLinear`` operators that alone take its result."""
    found: list[Found] = []
    for node in w.of(("QuantizeLinear",)):
        after = w.next(node)
        if after and all(w.ops[user] == "DequantizeLinear" for user in after):
            scales = {tuple(w.takes[n][1:]) for n in (node, *after)}
            same = "with the same scale" if len(scales) == 1 else "with another scale"
            evidence = f"QuantizeLinear, then DequantizeLinear {same}."
            members = frozenset({node, *after})
            found.append(Found("quantization", "quantize · dequantize", members, 1.0, evidence, members))
    return found
