"""Keys: what lets programs and people in. Of a secret only its SHA-256 is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from windlass.core.grants import ANYTHING, Grants

TOUCHED_EVERY = timedelta(minutes=1)
"""that a key was used is written at most so often"""
PRUNED_AT_ONCE = 100
"""so many sessions that are over are removed with each key that is put"""


class KeyKind(StrEnum):
    """The person or service that uses it."""

    KEY = "key"
    """a program, until it is revoked or expires"""
    SESSION = "session"
    """a person's browser, for a while"""


class Scope(StrEnum):
    """What it lets in to; each says only what it says, none contains another."""

    ENQUEUE = "enqueue"
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key to be kept."""

    id: str
    hash: str
    """SHA-256 of the secret, in hexadecimal digits"""
    kind: KeyKind
    owner: str
    name: str
    scopes: frozenset[Scope]
    lasts: timedelta | None = None
    """None: until it is revoked"""
    grants: Grants = ANYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as it is kept; instants by the store's clock."""

    id: str
    kind: KeyKind
    owner: str
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    """to the minute"""
    revoked_at: datetime | None = None
    grants: Grants = ANYTHING


class Keys(Protocol):
    """API keys and sessions. Nobody can read a secret here, nor what would pass for one."""

    async def put(self, key: NewKey) -> Key:
        """Keep a new key; put again, as after a lost answer, it is the same key, as it was kept first.

        Sessions that have expired or were revoked are removed, a bounded number at each call.
        """
        ...

    async def find(self, hash_: str) -> Key | None:
        """The key whose secret has this SHA-256, unless it was revoked or has expired by the store's clock."""
        ...

    async def list(self) -> Sequence[Key]:
        """Every key that has not been removed, the newest first, revoked and expired ones too."""
        ...

    async def touch(self, ids: Sequence[str]) -> None:
        """Note that these were used just now, unless that was noted less than `TOUCHED_EVERY` ago."""
        ...

    async def revoke(self, ids: Sequence[str]) -> Sequence[str]:
        """Let them in no more, from this moment on; answers those that are revoked now, also if they were before."""
        ...
