"""What an insert answers, one verdict per draft, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Created:
    """The job is in the store. Also the answer to the same id inserted again."""

    id: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Another live job holds the unique key, or an earlier one the idempotency key; nothing was written."""

    id: str
    """the job already there"""
    key: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A waiting job held the key and took over the draft's payload, priority and time (`on_conflict="replace"`)."""

    id: str


@dataclass(frozen=True, slots=True)
class Full:
    """The queue has reached its largest depth; nothing was written."""

    queue: str
    depth: int


Inserted: TypeAlias = Created | Duplicate | Replaced | Full
