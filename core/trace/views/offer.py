"""Which views make sense for a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, get_args

Kind = Literal[
    "tokens", "attention", "overlay", "maps", "heatmap", "line", "histogram", "profile", "projection", "stack", "text"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

TITLES: Final[dict[str, str]] = {
    "tokens": "Next token",
    "attention": "Attention heads",
    "overlay": "Over the image",
    "maps": "Feature maps",
    "heatmap": "Heatmap",
    "line": "Line",
    "histogram": "Histogram",
    "profile": "Channels",
    "projection": "Projection",
    "stack": "Layer stack",
    "text": "Text",
}

MAP_SIDE: Final = 2
"""A feature map has at least this many rows and columns."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of a value before its elements are read.

    Attributes:
        kind: of the element type: ``float``, ``int``, ``bool``, ``string``, ...
        stored: whether its elements can be read; without them only the histogram is left.
        attention: whether it is the weights of an attention, [.., heads, queries, keys].
        vocabulary: size of the token vocabulary that the model's text inputs use, 0 where none is known.
        image: height and width of a picture among the inputs, ``None`` where there is none.
        layers: how many values of other layers play the same part, this one counted.
        channel_axis: axis of channels or features, -1 where there is none.
    """

    shape: tuple[int, ...]
    kind: str
    stored: bool
    attention: bool = False
    vocabulary: int = 0
    image: tuple[int, int] | None = None
    layers: int = 0
    channel_axis: int = -1


def offered(subject: Subject) -> list[Kind]:
    """The views of a value, the one to begin with first."""
    if not subject.stored:
        return [] if subject.kind == "string" else ["histogram"]
    if any(size == 0 for size in subject.shape):
        return []
    if subject.kind == "string":
        return ["text"]
    return [kind for kind in KINDS if _FITS[kind](subject)]


def is_map(subject: Subject) -> bool:
    """Whether it is pictures by channel, [.., channels, height, width]."""
    shape = subject.shape
    return len(shape) in (3, 4) and subject.channel_axis == len(shape) - 3 and min(shape[-2:]) >= MAP_SIDE


def _is_line(subject: Subject) -> bool:
    return sum(size > 1 for size in subject.shape) == 1


def _is_logits(subject: Subject) -> bool:
    """The last axis is the vocabulary; tables are often rounded up for the hardware."""
    last, size = subject.shape[-1] if subject.shape else 0, subject.vocabulary
    return subject.kind == "float" and size > 1 and size <= last <= size + max(size // 50, 1024)


def _rows(shape: tuple[int, ...]) -> int:
    rows = 1
    for size in shape[:-1]:
        rows *= size
    return rows


_FITS: Final[dict[Kind, Callable[[Subject], bool]]] = {
    "tokens": _is_logits,
    "attention": lambda s: s.attention and len(s.shape) >= 2,
    "overlay": lambda s: is_map(s) and s.image is not None,
    "maps": lambda s: is_map(s) and s.shape[-3] > 1,
    "heatmap": lambda s: sum(size > 1 for size in s.shape) >= 2,
    "line": lambda s: _is_line(s) or (len(s.shape) == 3 and s.shape[-1] > 1) or all(size == 1 for size in s.shape),
    "histogram": lambda s: True,
    "profile": lambda s: s.channel_axis >= 0 and s.shape[s.channel_axis] > 1 and _rows(s.shape) > 1,
    "projection": lambda s: s.kind == "float" and not s.attention and len(s.shape) in (2, 3)
    and not is_map(s) and _rows(s.shape) >= 3 and s.shape[-1] >= 3,
    "stack": lambda s: s.layers > 1 and s.kind == "float",
    "text": lambda s: False,
}  # fmt: skip
