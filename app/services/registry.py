"""The services: every deed of the app with the least role that may do it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, Final, ParamSpec, TypeVar

from app.actors import Actor, Role, require

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Service:
    """One registered function.

    Attributes:
        name: module and function, e.g. ``opening.open_path``.
    """

    name: str
    least: Role
    function: Callable[..., object]


SERVICES: Final[dict[str, Service]] = {}


def service(
    least: Role,
) -> Callable[[Callable[Concatenate[Actor, P], R]], Callable[Concatenate[Actor, P], R]]:
    """Register a function whose first parameter is the acting person; the role is checked before anything."""

    def register(function: Callable[Concatenate[Actor, P], R]) -> Callable[Concatenate[Actor, P], R]:
        name = f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"

        @functools.wraps(function)
        def checked(actor: Actor, /, *args: P.args, **kwargs: P.kwargs) -> R:
            require(actor, least, function.__name__.replace("_", " "))
            return function(actor, *args, **kwargs)

        SERVICES[name] = Service(name, least, checked)
        return checked

    return register
