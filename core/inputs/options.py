"""The parameters of a recipe: their types and bounds, and the checks of what was given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from core.dtypes import DTYPES
from core.errors import UsageError
from core.limits import RANK

Option = str | int | float | bool | tuple[float, ...] | tuple[int, ...] | tuple[str, ...]
"""One parameter's value; JSON writes the tuples as lists."""

Type = Literal["int", "float", "bool", "text", "path", "paths", "floats", "ints", "choice", "dtype", "shape"]

MOST: Final = 1 << 31
ITEMS: Final = 100_000
"""Entries of one list in a recipe."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a kind.

    Attributes:
        low, high: allowed range of numbers, both ends included.
        choices: the only texts allowed, where there are any.
        about: what it does, with its unit.
    """

    name: str
    type: Type
    default: Option
    about: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of recipe.

    Attributes:
        title: its name on a form.
        module, function: what makes it, e.g. ``core.inputs.image`` and ``image``.
        group: ``fill``, ``file``, ``signal`` or ``text``; forms sort kinds by it.
    """

    name: str
    title: str
    about: str
    module: str
    function: str
    group: Literal["fill", "file", "signal", "text"]
    params: tuple[Param, ...]

    def param(self, name: str) -> Param | None:
        """The parameter of that name."""
        return next((param for param in self.params if param.name == name), None)


def checked(kind: Kind, options: Mapping[str, object]) -> dict[str, Option]:
    """The options given, each of its parameter's type and within its bounds; lists become tuples.

    Raises:
        UsageError: with the parameter, what was found and what is allowed.
    """
    taken: dict[str, Option] = {}
    for name, value in options.items():
        param = kind.param(name)
        if param is None:
            names = ", ".join(p.name for p in kind.params)
            raise UsageError(f"{kind.name} takes no {str(name)[:80]!r}", hint=f"It takes {names}.")
        taken[name] = _value(kind, param, value)
    return taken


def complete(kind: Kind, options: Mapping[str, Option]) -> dict[str, Option]:
    """A value for every parameter: what is given, else the default."""
    return {param.name: options.get(param.name, param.default) for param in kind.params}


def parsed(kind: Kind, name: str, text: str) -> Option:
    """The value that a person wrote for a parameter; lists are separated by commas.

    Raises:
        UsageError: if it is of the wrong form or out of bounds.
    """
    param = kind.param(name)
    if param is None:
        return checked(kind, {name: text})[name]
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        match param.type:
            case "int":
                value: object = int(text)
            case "float":
                value = float(text)
            case "floats":
                value = [float(part) for part in parts]
            case "ints" | "shape":
                value = [int(part) for part in parts]
            case "bool":
                value = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}[text.lower()]
            case "paths":
                value = [text]
            case _:
                value = text
    except (ValueError, KeyError):
        raise _wrong(kind, param, text) from None
    return _value(kind, param, value)


def _value(kind: Kind, param: Param, value: object) -> Option:
    match param.type:
        case "int" if isinstance(value, int) and not isinstance(value, bool):
            good = param.low <= value <= param.high
        case "float" if isinstance(value, int | float) and not isinstance(value, bool):
            value, good = float(value), param.low <= value <= param.high
        case "bool":
            good = isinstance(value, bool)
        case "text" | "path":
            good = isinstance(value, str) and len(value) <= ITEMS
        case "choice":
            good = value in param.choices
        case "dtype":
            good = isinstance(value, str) and value in DTYPES and value != "opaque"
        case "floats" | "ints" | "shape" | "paths" if isinstance(value, list | tuple):
            items = tuple(cast("list[object]", value))
            good = len(items) <= (RANK if param.type == "shape" else ITEMS) and all(_fits(param, i) for i in items)
            value = items
        case _:
            good = False
    if not good:
        raise _wrong(kind, param, value)
    return cast("Option", value)


def _fits(param: Param, item: object) -> bool:
    if param.type == "paths":
        return isinstance(item, str)
    if isinstance(item, bool) or not isinstance(item, int | float):
        return False
    return (param.type == "floats" or isinstance(item, int)) and param.low <= item <= param.high


_WANTED: Final[dict[Type, str]] = {
    "text": "text", "path": "text", "paths": "a list of texts", "bool": "yes or no", "dtype": "an element type",
    "int": "a whole number", "float": "a number", "floats": "numbers", "ints": "whole numbers",
    "shape": "whole numbers",
}  # fmt: skip


def _wrong(kind: Kind, param: Param, value: object) -> UsageError:
    wanted = _WANTED.get(param.type) or "one of " + ", ".join(param.choices)
    if param.type == "shape":
        wanted = f"at most {RANK} {wanted}"
    if math.isfinite(param.low) and math.isfinite(param.high):
        wanted += f" from {param.low:.12g} to {param.high:.12g}"
    shown = str(value)[:80] if isinstance(value, int | float) else repr(str(value)[:80])
    return UsageError(f"{param.name} of {kind.name} is {shown}, expected {wanted}")
