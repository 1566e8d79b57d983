"""The steps that many tests take: insert, claim, settle, and reading back what the store made of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from tests.support.drafts import INSTANT, draft, want
from tests.support.until import until
from windlass.core.draft import Draft
from windlass.core.history import Entry, Happened
from windlass.core.job import Error, Job
from windlass.core.outcome import Crashed, Failed, Outcome, Released, Snoozed, Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.core.unique import Unique
from windlass.stores.contract import (
    Action,
    Answer,
    Created,
    Extended,
    Filter,
    Lease,
    Operated,
    Order,
    Store,
    Verdict,
    Want,
)

HOUR = timedelta(hours=1)
BEHIND = timedelta(milliseconds=50)
"""what a store's clock, as it is asked for, may lie behind the one that its server computes with"""
BOOM = Error(type="ValueError", message="boom", traceback="Traceback (most recent call last):\n  boom")

DONE = Succeeded('"done"')
AGAIN_LATER = Failed(BOOM, after=HOUR)
AGAIN_SOON = Failed(BOOM, after=INSTANT)
NEVER_AGAIN = Failed(BOOM, again=False)
SNOOZED = Snoozed(HOUR, "not yet")
RELEASED = Released("the worker stops")
CRASHED = Crashed("its process died")


async def get(store: Store, job_id: str) -> Job:
    [job] = await store.views.get([job_id])
    assert job is not None, f"no job {job_id}"
    return job


async def status(store: Store, job_id: str) -> Status:
    return (await get(store, job_id)).status


async def statuses(store: Store, job_ids: Collection[str]) -> list[Status]:
    found = await store.views.get(list(job_ids))
    return [job.status for job in found if job is not None]


async def gone(store: Store, job_id: str) -> bool:
    """Whether neither the job nor its history is left."""
    return await store.views.get([job_id]) == [None] and await store.views.history(job_id) == []


async def told(store: Store, job_id: str) -> list[Happened]:
    """What a job's history tells, oldest first."""
    return [entry.happened for entry in await store.views.history(job_id)]


async def last_entry(store: Store, job_id: str) -> Entry:
    return (await store.views.history(job_id))[-1]


async def everything(store: Store, filter_: Filter | None = None, page: int = 200) -> list[Job]:
    """All jobs that match, read page by page."""
    jobs: list[Job] = []
    after: str | None = None
    while True:
        found = await store.views.find(filter_ or Filter(), page, after)
        jobs += found.jobs
        after = found.next
        if after is None:
            return jobs


async def put(store: Store, *drafts: Draft) -> list[str]:
    """Insert them; all must be new."""
    ids = [one.id for one in drafts or (draft(),)]
    assert await store.jobs.insert(drafts or (draft(id=ids[0]),)) == [Created(id_) for id_ in ids]
    return ids


async def take(store: Store, wanted: Want | None = None) -> Job:
    """Claim the one job that there is to claim."""
    [job] = await store.jobs.claim(wanted or want())
    return job


async def start(store: Store, one: Draft | None = None, wanted: Want | None = None) -> Job:
    """Insert a job and claim it; nothing else may be claimable."""
    one = one or draft()
    await put(store, one)
    job = await take(store, wanted or want(types={one.type}))
    assert job.id == one.id
    return job


async def settle(store: Store, job: Job, outcome: Outcome = DONE) -> Verdict:
    [verdict] = await store.jobs.apply([decide(job, outcome)])
    return verdict


async def finish(store: Store, one: Draft | None = None, outcome: Outcome = DONE) -> Job:
    """A job that was inserted, claimed and ended so."""
    job = await start(store, one)
    assert await settle(store, job, outcome) is Verdict.APPLIED
    return await get(store, job.id)


async def operate(store: Store, job_id: str, action: Action, reason: str | None = None) -> Answer:
    [answer] = await store.jobs.operate([Order(id=job_id, action=action, actor="ann", reason=reason)])
    return answer


async def cancel(store: Store, job_id: str) -> None:
    answer = await operate(store, job_id, Action.CANCEL)
    assert answer.verdict in (Operated.DONE, Operated.REQUESTED)


async def passed(store: Store, instant: datetime | None) -> None:
    """Wait until the store's clock is beyond an instant."""
    assert instant is not None

    async def beyond() -> bool:
        return await store.now() > instant

    await until(beyond, f"the store's clock to pass {instant}")


async def expired(store: Store, one: Draft | None = None) -> Job:
    """A job, claimed, whose lease was confirmed and has run out."""
    job = await start(store, one)
    [late] = await lose(store, [job])
    return late


async def lose(store: Store, jobs: Sequence[Job]) -> list[Job]:
    """Confirm these leases and let them run out."""
    leases = [Lease(job.id, job.lease_token) for job in jobs]
    assert await store.jobs.extend("w1", leases, INSTANT) == Extended(frozenset(), frozenset())
    late = [await get(store, job.id) for job in jobs]
    await passed(store, max(job.lease_expires_at for job in late if job.lease_expires_at))
    return late


async def unconfirmed(store: Store, one: Draft | None = None) -> Job:
    """A job, claimed, whose lease has run out and was never extended."""
    one = one or draft()
    job = await start(store, one, want(lease=INSTANT, types={one.type}))
    await passed(store, job.lease_expires_at)
    return job


def near(found: datetime | None, expected: datetime, within: timedelta = timedelta(seconds=5)) -> bool:
    return found is not None and abs(found - expected) < within


def in_utc(instant: datetime | None) -> bool:
    return instant is not None and instant.tzinfo is not None and instant.utcoffset() == UTC.utcoffset(None)


def running(key: str) -> Unique:
    """Any number may wait, one may run."""
    return Unique(running=key)
