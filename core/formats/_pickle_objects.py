"""What a walked pickle is made of: names, calls and outside objects, none of them resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast


def as_tuple(value: object) -> tuple[Any, ...]:
    """The tuple itself, nothing where it is none."""
    return cast(tuple[Any, ...], value) if isinstance(value, tuple) else ()


def as_dict(value: object) -> dict[Any, Any] | None:
    """The dictionary itself, ``None`` where it is none."""
    return cast(dict[Any, Any], value) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Global:
    """A name that unpickling would import; ``byte`` is where the pickle names it."""

    module: str
    name: str
    byte: int = field(default=0, compare=False)

    @property
    def path(self) -> str:
        """Dotted name."""
        return f"{self.module}.{self.name}"


@dataclass(slots=True, eq=False)
class Call:
    """A call that unpickling would make; ``state`` is what ``__setstate__`` would get."""

    function: Any
    args: Any
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict[Any, Any])
    elements: list[Any] = field(default_factory=list[Any])

    @property
    def arguments(self) -> tuple[Any, ...]:
        """``args`` where they are a tuple, else none."""
        return as_tuple(self.args)

    @property
    def path(self) -> str:
        """Dotted name of the function, empty where it is no plain global."""
        return self.function.path if isinstance(self.function, Global) else ""


@dataclass(frozen=True, slots=True, eq=False)
class Persistent:
    """An object kept outside the pickle, by its id (a tuple for torch storages)."""

    id: Any
