"""How one input of a model is made: a kind, a seed, a range, and sizes for its open dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol, get_args

from core.errors import InputMismatch, UsageError
from core.ir import Dim
from core.limits import ELEMENTS, RANK, check

RecipeKind = Literal["random", "zeros", "ones", "npy"]
KINDS: Final[tuple[RecipeKind, ...]] = get_args(RecipeKind)

PLACEHOLDERS: Final = frozenset({"", "?", "-1", "none", "unknown", "dynamic"})
"""Dimension names that exporters write for "not known": equal ones do not mean equal sizes."""

_SUM: Final = re.compile(r"\w+( \+ \w+)+")


class Slot(Protocol):
    """What an input is declared as: ``core.ir.Value`` and ``core.run.prepare.InputSlot`` are."""

    @property
    def name(self) -> str:
        """The name of the input in the file."""
        ...

    @property
    def dtype(self) -> str | None:
        """Element type name, ``None`` where the file does not say."""
        ...

    @property
    def shape(self) -> tuple[Dim, ...] | None:
        """Declared dimensions, ``None`` where the rank is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to put into one input.

    Attributes:
        kind: ``random``, ``zeros``, ``ones`` or ``npy``.
        seed: of the random numbers.
        low, high: range of random numbers, both ends included for integers; ``None`` for the
            standard normal distribution (floats) or 0 to 9 (integers).
        dims: sizes by ``dimension_key``; a ``npy`` recipe takes them from its file.
        path: the ``.npy`` file.
    """

    kind: RecipeKind = "random"
    seed: int = 0
    low: float | None = None
    high: float | None = None
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    path: str = ""

    def to_json(self) -> dict[str, object]:
        """Plain JSON values; ``from_json`` reads them back."""
        return {
            "kind": self.kind,
            "seed": self.seed,
            "low": self.low,
            "high": self.high,
            "dims": dict(self.dims),
            "path": self.path,
        }

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Recipe:
        """A recipe from ``to_json``'s values.

        Raises:
            UsageError: if a field is of the wrong type or out of range.
        """
        kind, seed, dims, path = (
            data.get("kind", "random"),
            data.get("seed", 0),
            data.get("dims", {}),
            data.get("path", ""),
        )
        known: RecipeKind | None = next((k for k in KINDS if k == kind), None)
        if known is None:
            raise UsageError(f"no input recipe is called {kind!r}", hint="Use one of " + ", ".join(KINDS) + ".")
        if not isinstance(seed, int) or not 0 <= seed < 1 << 63:
            raise UsageError(f"the seed of an input recipe is {seed!r}, expected 0 to 2**63 - 1")
        if not isinstance(dims, Mapping) or not isinstance(path, str):
            raise UsageError("an input recipe needs dims as an object and path as text")
        sizes = {str(name): _size(str(name), size) for name, size in dims.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return Recipe(known, seed, _number(data, "low"), _number(data, "high"), sizes, path)

    def describe(self) -> str:
        """The recipe in a few words, e.g. ``random 0 to 9, seed 0`` or ``always 16000``."""
        if self.kind == "npy":
            return "file " + re.split(r"[/\\]", self.path)[-1]
        if self.kind != "random":
            return self.kind
        if self.low is not None and self.low == self.high:
            return f"always {self.low:g}"
        span = "" if self.low is None and self.high is None else f" {_short(self.low)} to {_short(self.high)}"
        return f"random{span}, seed {self.seed}"


def dimension_key(slot: Slot, axis: int) -> str | None:
    """The name under which the size of an open dimension is asked for; ``None`` for a fixed one.

    Dimensions of the same symbol share one key; unnamed ones get ``input[axis]``.
    """
    dim = (slot.shape or ())[axis]
    if isinstance(dim, int):
        return None if dim >= 0 else f"{slot.name}[{axis}]"
    if dim is None or dim.strip().lower() in PLACEHOLDERS:
        return f"{slot.name}[{axis}]"
    return dim


def open_dimensions(slots: Iterable[Slot]) -> dict[str, list[tuple[str, int]]]:
    """Every key to be asked for, once, with the (input, axis) pairs that use it, in order."""
    found: dict[str, list[tuple[str, int]]] = {}
    for slot in slots:
        for axis in range(len(slot.shape or ())):
            key = dimension_key(slot, axis)
            if key is not None and summed(key) is None:
                found.setdefault(key, []).append((slot.name, axis))
    return found


def summed(key: str) -> list[str] | None:
    """The names in a dimension written as a sum such as ``past + sequence``, else ``None``."""
    return key.split(" + ") if _SUM.fullmatch(key) else None


def concrete_shape(slot: Slot, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape with every open dimension given its size.

    Raises:
        InputMismatch: if the rank is unknown or a size is missing.
        LimitExceeded: if the shape has more elements than ``limits.ELEMENTS``.
    """
    if slot.shape is None:
        raise InputMismatch(f"input {slot.name!r} declares no rank", hint="Give it a .npy file of the right shape.")
    check(f"the rank of input {slot.name!r}", len(slot.shape), RANK)
    shape: list[int] = []
    elements = 1
    for axis, dim in enumerate(slot.shape):
        key = dimension_key(slot, axis)
        size = dim if key is None and isinstance(dim, int) else _lookup(slot, key or "", dims)
        elements *= check(f"dimension {axis} of input {slot.name!r}", size, ELEMENTS)
        shape.append(size)
        check(f"the number of elements of input {slot.name!r}", elements, ELEMENTS)
    return tuple(shape)


def bind(slot: Slot, shape: tuple[int, ...], known: Mapping[str, int] | None = None) -> dict[str, int]:
    """The sizes that an array of ``shape`` gives to the open dimensions of ``slot``.

    Args:
        known: sizes fixed before, which the shape must agree with.

    Raises:
        InputMismatch: if rank, a fixed dimension or a known size differs.
    """
    bound = dict(known or {})
    declared = slot.shape
    if declared is None:
        return bound
    if len(declared) != len(shape):
        raise _mismatch(slot, shape)
    for axis, size in enumerate(shape):
        key = dimension_key(slot, axis)
        if key is None:
            if declared[axis] != size:
                raise _mismatch(slot, shape)
        elif summed(key) is None and bound.setdefault(key, size) != size:
            raise InputMismatch(
                f"dimension {key!r} is {bound[key]} elsewhere and {size} in input {slot.name!r}",
                hint="All inputs must agree on it.",
            )
    return bound


def with_dims(recipe: Recipe, dims: Mapping[str, int]) -> Recipe:
    """The same recipe with these sizes."""
    return replace(recipe, dims=dict(dims))


def shape_text(shape: tuple[Dim, ...] | None) -> str:
    """A shape in words: sizes and symbols with ``×``, ``scalar``, or ``any shape``."""
    if shape is None:
        return "any shape"
    return " × ".join("?" if dim is None or dim == -1 else str(dim) for dim in shape) or "scalar"


def _lookup(slot: Slot, key: str, dims: Mapping[str, int]) -> int:
    if key in dims:
        return dims[key]
    parts = summed(key)
    if parts is not None:
        return sum(int(part) if part.isdecimal() else _lookup(slot, part, dims) for part in parts)
    raise InputMismatch(f"dimension {key!r} of input {slot.name!r} has no size", hint="Set it on the Inputs page.")


def _mismatch(slot: Slot, shape: tuple[int, ...]) -> InputMismatch:
    return InputMismatch(
        f"input {slot.name!r} takes shape {shape_text(slot.shape)}, the array has {shape_text(shape)}",
        hint="Give an array of the declared shape.",
    )


def _size(name: str, size: object) -> int:
    if not isinstance(size, int) or not 0 <= size <= ELEMENTS:
        raise UsageError(f"the size of dimension {name!r} is {size!r}, expected 0 to {ELEMENTS}")
    return size


def _number(data: Mapping[str, object], name: str) -> float | None:
    found = data.get(name)
    if found is None or (isinstance(found, int | float) and abs(found) < float("inf")):
        return found
    raise UsageError(f"{name} of an input recipe is {found!r}, expected a finite number")


def _short(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
