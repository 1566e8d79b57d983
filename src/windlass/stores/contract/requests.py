"""Requests: what was asked under an idempotency key, and what was answered, so that asking again does nothing again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, TypeAlias

KEPT_FOR = timedelta(hours=24)
HELD_FOR = timedelta(seconds=30)
"""so long nobody else carries out what one process has begun: after it, that process counts as dead"""
LARGEST_ANSWER = 1024 * 1024
"""characters"""
PRUNED_AT_ONCE = 100
"""so many records that have been kept long enough are removed with each request that begins"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request about to be carried out."""

    id: str
    """a hash of the caller and the key that they gave: two callers never share one record"""
    fingerprint: str
    """of what is asked"""
    first_id: str
    """the ids of the jobs that come of it follow from this one: they stand here before there is a job"""
    mark: str
    """of this attempt, so that one whose answer was lost is known again"""
    keep: timedelta = KEPT_FOR
    hold: timedelta = HELD_FOR


@dataclass(frozen=True, slots=True)
class Begun:
    """It is the caller's to carry out, with the ids that follow from this one; others have to wait."""

    first_id: str


@dataclass(frozen=True, slots=True)
class Answered:
    """It was carried out before, and this was answered."""

    answer: str


@dataclass(frozen=True, slots=True)
class UnderWay:
    """It is being carried out now; others are kept from it for so long at most."""

    left: timedelta


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """Something else was asked under this key."""


Standing: TypeAlias = Begun | Answered | UnderWay | OtherRequest


class Recorded(NamedTuple):
    """What a store knows of an id."""

    fingerprint: str
    first_id: str
    mark: str
    held_until: datetime
    expires_at: datetime
    answer: str | None


def judge(known: Recorded | None, new: NewRequest, now: datetime) -> Standing:
    """The law of `begin`. Stores that decide inside a statement or a script mirror it."""
    if known is None or known.expires_at <= now:
        return Begun(new.first_id)
    if known.fingerprint != new.fingerprint:
        return OtherRequest()
    if known.answer is not None:
        return Answered(known.answer)
    if known.held_until <= now or known.mark == new.mark:
        return Begun(known.first_id)
    return UnderWay(known.held_until - now)


class Requests(Protocol):
    """Requests under an idempotency key. All instants are the store's."""

    async def begin(self, new: NewRequest) -> Standing:
        """Note that this is carried out now, unless it was or is.

        In one atomic step: of any number of processes that begin the same at once one has `Begun`. What was begun and
        neither answered nor held any more is begun anew with the ids of the first time. Records that have been kept
        long enough count as gone, and are removed, a bounded number at each call or by the server itself.
        """
        ...

    async def finish(self, id_: str, mark: str, answer: str) -> bool:
        """Keep the answer, if the request is this attempt's still; whether it is kept."""
        ...

    async def release(self, id_: str, mark: str) -> bool:
        """Hold it no more, if it is this attempt's still: it may be begun anew at once, with the same ids."""
        ...

    async def forget(self, id_: str, mark: str) -> bool:
        """Remove it, if it is this attempt's still and was not answered: as if it had never been asked."""
        ...
