"""Named locks with fencing tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Granted:
    """The lock is the caller's; its token is larger than any before of this name: a resource can refuse older ones."""

    token: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """Another owner holds it."""

    until: datetime


class Locks(Protocol):
    """Named locks with fencing tokens. Each acquisition has an owner's name of its own."""

    async def acquire(self, name: str, owner: str, ttl: timedelta) -> Granted | Held:
        """Take the lock if it is free or has expired.

        Asked again by the owner that holds it, as after a lost answer, it grants the same token again.
        """
        ...

    async def extend(self, name: str, token: int, ttl: timedelta) -> bool:
        """Keep it longer, if the token is the current one and has not expired."""
        ...

    async def release(self, name: str, token: int) -> bool:
        """Give it back, if the token is the current one. The same answer again, until somebody else acquires it."""
        ...
