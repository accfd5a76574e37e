"""What can be done with an artifact, and the sentence that says why not."""

from __future__ import annotations

from typing import Final, get_args

from core.ir import Capability, CapabilityName

NAMES: Final[tuple[CapabilityName, ...]] = get_args(CapabilityName)

Table = dict[CapabilityName, Capability]
Rows = dict[CapabilityName, tuple[str, str]]


def weights_only(kind: str, *, graph: str = "") -> Table:
    """Capabilities of a file that holds tensors but no operators.

    Args:
        kind: the format in words, e.g. ``safetensors file``.
        graph: what the Graph page shows instead, where it is not the module tree.
    """
    shown = graph or "The module tree is built from tensor names."
    no_operators = f"A {kind} holds tensors but no operators"
    return _table(
        kind,
        {
            "tensors": ("available", ""),
            "statistics": ("available", ""),
            "graph": ("partial", f"{no_operators}. {shown}"),
            "audit": ("unavailable", f"{no_operators}, so there is nothing to check against operator lists."),
            "trace": ("unavailable", f"{no_operators}; tracing needs an ONNX export of the model."),
            "intervene": ("unavailable", f"{no_operators}; interventions need a model that can run."),
            "gradients": ("unavailable", f"{no_operators}; gradients need a model that can run."),
        },
    )


def described_graph(kind: str, *, graph: tuple[str, str] = ("available", ""), tensors: tuple[str, str]) -> Table:
    """Capabilities of a file whose graph can be read but not run by this version.

    Args:
        kind: the format in words.
        graph, tensors: availability and reason, e.g. ``("partial", "Constants only.")``.
    """
    cannot_run = f"No engine of this version runs a {kind}; export the model to ONNX to run it."
    return _table(
        kind,
        {
            "tensors": tensors,
            "statistics": tensors,
            "graph": graph,
            "audit": ("unavailable", f"This version has no audit rules for a {kind}."),
            "trace": ("unavailable", cannot_run),
            "intervene": ("unavailable", cannot_run),
            "gradients": ("unavailable", cannot_run),
        },
    )


def _table(kind: str, known: Rows) -> Table:
    """``known`` with what no format but ONNX can have in this version."""
    rows: Rows = {
        "inspect": ("available", ""),
        "compare": ("unavailable", "This version has no comparison of two artifacts."),
        "edit": ("unavailable", f"This version has no editor for a {kind}."),
        "quantize": ("unavailable", f"This version has no quantizer for a {kind}."),
        "prune": ("unavailable", f"This version has no pruning for a {kind}."),
        "export": ("unavailable", f"This version has no writer for a {kind}."),
        **known,
    }
    return {name: Capability(name, *rows[name]) for name in NAMES}  # type: ignore[arg-type]
