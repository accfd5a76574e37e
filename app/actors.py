"""Who is acting, and what each role may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.errors import Forbidden

Role = Literal["viewer", "collaborator", "owner"]

ROLES: Final[tuple[Role, ...]] = ("viewer", "collaborator", "owner")
"""From the least to the most: a viewer looks, a collaborator also runs, an owner also opens and writes."""


@dataclass(frozen=True, slots=True)
class Actor:
    """One person as the services see them."""

    id: str
    name: str
    role: Role


LOCAL_OWNER: Final = Actor("local", "Local owner", "owner")
"""Whoever sits at this machine, until sharing is switched on."""


def may(actor: Actor, least: Role) -> bool:
    """Whether the actor's role is at least ``least``."""
    return ROLES.index(actor.role) >= ROLES.index(least)


def require(actor: Actor, least: Role, deed: str = "do this") -> None:
    """Let the actor pass.

    Raises:
        Forbidden: if the role is less than ``least``.
    """
    if not may(actor, least):
        raise Forbidden(f"a {actor.role} may not {deed}", hint=f"It takes the role {least}.")
