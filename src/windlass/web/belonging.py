"""Belonging: what an enqueue has met is told to its caller only where it is the caller's own.

A unique key or idempotence that a type declares holds over all users, as the application wants it. So a user's enqueue
may meet the job of another: then all that is told is that there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from windlass.client.handle import Handle
from windlass.core.errors import DuplicateJob, JobNotFound, SettingsError
from windlass.web.problems import KINDS, Refused

if TYPE_CHECKING:
    from windlass.web.answers import Answers
    from windlass.web.callers import Caller

Found = TypeVar("Found", bound="Handle[Any] | Exception")
_DUPLICATE = KINDS[DuplicateJob]
_TAKEN = "there is such a job already, which is not yours: jobs of this type are unique over all users"


def own_key(caller: Caller, key: str) -> str:
    """A unique key that a user gives is the user's own: what others hold can neither be met nor seen."""
    # The owner's part ends at the first slash: no two owners have a key in common.
    owner = caller.owner.replace("%", "%25").replace("/", "%2F")
    return f"{owner}/{key}"


def check_conflict(caller: Caller, asked: dict[str, Any]) -> None:
    """Refuse a user to replace what may be another's: what a key of the type's own holds."""
    if not caller.sees_all and asked.get("on_conflict") == "replace" and "unique" not in asked:
        raise SettingsError("onConflict is 'replace' without a uniqueKey: give one, so that what is replaced is yours")


async def met(caller: Caller, app: Answers, found: Found) -> Found | Refused:
    """What came of an enqueue, without a job of others that it met."""
    if caller.sees_all or (isinstance(found, Handle) and found.created):
        return found
    if isinstance(found, DuplicateJob):
        there = found.existing
    elif isinstance(found, Handle):
        there = found.id
    else:
        return found
    try:
        await caller.jobs(app).get(there)
    except JobNotFound:
        return Refused(_DUPLICATE, _TAKEN)
    return found
