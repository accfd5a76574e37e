"""What a generator hands back: the array, where it came from, and how near to the real thing it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Generated:
    """An array made by a recipe.

    Attributes:
        array: bfloat16 and smaller floats are carried as ``core.inputs.encode`` says.
        source: where it came from, in words, e.g. ``image cat.png``.
        fidelity: how far it is what a real use of the model would see, one sentence.
        facts: plain JSON values about the making, e.g. sizes before and after a resize.
    """

    array: NDArray[np.generic]
    source: str
    fidelity: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])


SYNTHETIC = "Synthetic: it fits dtype and shape, the numbers mean nothing."
"""Fidelity of everything made without a real recording, picture or text."""
