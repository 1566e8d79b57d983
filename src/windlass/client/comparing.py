"""Comparing: the handlers of this code with the catalogue and with the jobs that wait, before it is deployed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.client.describing import differences
from windlass.core.errors import PayloadInvalid, SecretUnreadable
from windlass.core.status import WAITING
from windlass.stores.contract import Filter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from windlass.core.job import Job
    from windlass.core.registry import Registry
    from windlass.stores.contract import Store, TypeInfo

MOST_LOOKED_AT = 10_000
MOST_NAMED = 100
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A waiting job that this code could not run as it is."""

    job_id: str
    type: str
    queue: str
    reason: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A type that this code declares otherwise than the newest worker does."""

    type: str
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """A type in the store that this code has no handler for."""

    type: str
    waiting: int
    """of the jobs that were looked at"""
    last_seen: datetime | None
    """when a worker last told of it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What would happen if workers ran this code now."""

    unreadable: tuple[Unreadable, ...]
    """by name the first hundred"""
    unreadable_in_all: int
    missing: tuple[Missing, ...]
    changed: tuple[Changed, ...]
    new: tuple[str, ...]
    """types of this code that no worker has told of"""
    looked_at: int
    """waiting jobs, the oldest first"""
    complete: bool
    """whether these are all that wait"""

    @property
    def fine(self) -> bool:
        """Whether every waiting job that was looked at could be read."""
        return not self.unreadable_in_all


async def compare(store: Store, registry: Registry, most: int) -> Comparison:
    """Compare the handlers here with what is in the store; of what waits, the oldest `most` jobs."""
    newest: dict[str, TypeInfo] = {}
    for info in await store.types.list():
        newest.setdefault(info.declared.type, info)
    unreadable: list[Unreadable] = []
    waiting: Counter[str] = Counter()
    looked_at = bad = 0
    complete = True
    async for job in _waiting(store):
        if looked_at == most:
            complete = False
            break
        looked_at += 1
        waiting[job.type] += 1
        reason = _misfit(job, registry)
        if reason is not None:
            bad += 1
            unreadable += [Unreadable(job.id, job.type, job.queue, reason)] if bad <= MOST_NAMED else []
    gone = sorted(name for name in waiting.keys() | newest.keys() if name not in registry)
    return Comparison(
        unreadable=tuple(unreadable),
        unreadable_in_all=bad,
        missing=tuple(Missing(name, waiting[name], _last_seen(newest.get(name))) for name in gone),
        changed=tuple(_changed(registry, newest)),
        new=tuple(sorted(one.name for one in registry if one.name not in newest)),
        looked_at=looked_at,
        complete=complete,
    )


async def _waiting(store: Store) -> AsyncIterator[Job]:
    after: str | None = None
    while True:
        page = await store.views.find(Filter(status=WAITING), _PAGE, after, oldest_first=True)
        for job in page.jobs:
            yield job
        after = page.next
        if after is None:
            return


def _misfit(job: Job, registry: Registry) -> str | None:
    """Why this code could not read the job's payload; nothing where it has no handler, or results are still to come."""
    if job.type not in registry or job.takes is not None:
        return None
    try:
        registry.get(job.type).arguments(job.payload_json)
    except SecretUnreadable:
        return None  # where code is checked the keys of its workers need not be
    except PayloadInvalid as error:
        return str(error)
    return None


def _last_seen(published: TypeInfo | None) -> datetime | None:
    return None if published is None else published.last_seen


def _changed(registry: Registry, newest: dict[str, TypeInfo]) -> Sequence[Changed]:
    both = sorted((one for one in registry if one.name in newest), key=lambda one: one.name)
    told = ((one.name, differences(newest[one.name].declared, one.described())) for one in both)
    return [Changed(name, tuple(what)) for name, what in told if what]
