"""How one input of a model is made: a kind, a seed, a range, and sizes for its open dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, cast

from core.errors import InputMismatch, UsageError
from core.inputs.kinds import kind_of
from core.inputs.options import Option, checked
from core.ir import Dim
from core.limits import ELEMENTS, RANK, check

RecipeKind = str
"""A name in ``core.inputs.kinds.KINDS``."""

PLACEHOLDERS: Final = frozenset({"", "?", "-1", "none", "unknown", "dynamic"})
"""Dimension names that exporters write for "not known": equal ones do not mean equal sizes."""

READY: Final = "ready:"
"""Begins a path that means a picture shipping with Modelglass, e.g. ``ready:picture``."""

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
        kind: a name in ``kinds.KINDS``.
        seed: of the random numbers.
        low, high: range of random numbers, both ends included for integers; ``None`` for the
            standard normal distribution (floats) or 0 to 9 (integers).
        dims: sizes by ``dimension_key``; a ``npy`` recipe takes them from its file.
        path: the ``.npy`` file.
        options: parameters of the kind as ``kinds.KINDS`` lists them; what is left out follows from
            the input (shape, dtype) or is the default.
    """

    kind: RecipeKind = "random"
    seed: int = 0
    low: float | None = None
    high: float | None = None
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    path: str = ""
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])

    @property
    def files(self) -> tuple[str, ...]:
        """The files and folders that the recipe reads; ready-made ones that ship with us are none."""
        found = [self.path]
        for param in kind_of(self.kind).params:
            value = self.options.get(param.name, ())
            if param.type == "path" and isinstance(value, str):
                found.append(value)
            elif param.type == "paths" and isinstance(value, tuple):
                found += [str(item) for item in value]
        return tuple(path for path in found if path and not path.startswith(READY))

    def to_json(self) -> dict[str, object]:
        """Plain JSON values; ``from_json`` reads them back."""
        options = {name: list(v) if isinstance(v, tuple) else v for name, v in self.options.items()}
        return {
            "kind": self.kind,
            "seed": self.seed,
            "low": self.low,
            "high": self.high,
            "dims": dict(self.dims),
            "path": self.path,
            **({"options": options} if options else {}),
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
        known = kind_of(kind)
        if not isinstance(seed, int) or not 0 <= seed < 1 << 63:
            raise UsageError(f"the seed of an input recipe is {seed!r}, expected 0 to 2**63 - 1")
        options = data.get("options", {})
        if not isinstance(dims, Mapping) or not isinstance(path, str) or not isinstance(options, Mapping):
            raise UsageError("an input recipe needs dims and options as objects and path as text")
        sizes = {str(name): _size(str(name), size) for name, size in dims.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        chosen = checked(known, cast("Mapping[str, object]", options))
        return Recipe(known.name, seed, _number(data, "low"), _number(data, "high"), sizes, path, chosen)

    def describe(self) -> str:
        """The recipe in a few words, e.g. ``random 0 to 9, seed 0`` or ``always 16000``."""
        if self.kind == "npy":
            return "file " + _last_part(self.path or str(self.options.get("path", "")))
        if self.kind != "random":
            return self._words()
        if self.low is not None and self.low == self.high:
            return f"always {self.low:g}"
        span = "" if self.low is None and self.high is None else f" {_short(self.low)} to {_short(self.high)}"
        return f"random{span}, seed {self.seed}"

    def _words(self) -> str:
        paths = {name: v for name, v in self.options.items() if name in ("path", "paths")}
        names = [_last_part(str(p)) for v in paths.values() for p in (v if isinstance(v, tuple) else (v,))][:3]
        options = [
            f"{name} {value}"
            for name, value in self.options.items()
            if name not in paths and not isinstance(value, tuple) and len(str(value)) <= 24
        ]
        return ", ".join([" ".join([kind_of(self.kind).title.lower(), *names]), *options[:4]])


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


def _last_part(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _short(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
