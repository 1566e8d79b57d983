"""Jobs that expire: what no worker has taken by then is cancelled, and says so."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.steps import (
    AGAIN_SOON,
    HOUR,
    RELEASED,
    get,
    last_entry,
    operate,
    passed,
    put,
    settle,
    start,
    status,
    take,
    told,
)
from tests.support.drafts import INSTANT, draft, want
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.unique import Unique
from windlass.stores.contract import Action, Created, Operated, Replaced, Store


async def over(store: Store, job_id: str) -> Job:
    """The job, once its time to begin is over."""
    job = await get(store, job_id)
    await passed(store, job.expires_at)
    return job


async def swept(store: Store) -> list[str]:
    """What is cancelled by looking until nothing more is found."""
    found = list[str]()
    while some := (await store.jobs.promote(100)).expired:
        found += some
    return found


async def test_a_job_knows_when_it_expires(store: Store) -> None:
    [job_id, plain] = await put(store, draft(expires=HOUR), draft())
    job = await get(store, job_id)
    assert job.expires_at == job.created_at + HOUR
    assert (await get(store, plain)).expires_at is None
    assert {one.id for one in await store.jobs.claim(want())} == {job_id, plain}


async def test_no_claim_brings_what_has_expired(store: Store) -> None:
    [job_id, plain] = await put(store, draft(expires=INSTANT), draft())
    await over(store, job_id)
    claimed = [job.id for _ in range(3) for job in await store.jobs.claim(want())]
    assert claimed == [plain]


async def test_it_is_cancelled_and_says_why(store: Store) -> None:
    [job_id] = await put(store, draft(expires=INSTANT, unique="u"))
    await over(store, job_id)
    await store.jobs.claim(want())
    await swept(store)
    job = await get(store, job_id)
    assert (job.status, job.attempts, job.lease_token) == (Status.CANCELLED, 0, 0)
    assert job.finished_at is not None
    entry = await last_entry(store, job_id)
    assert (entry.happened, entry.status) == (Happened.CANCELLED, Status.CANCELLED)
    assert entry.note is not None
    assert "expired" in entry.note
    other = draft(unique="u")
    assert await store.jobs.insert([other]) == [Created(other.id)], "its key is free"
    assert await told(store, job_id) == [Happened.ENQUEUED, Happened.CANCELLED]


async def test_a_sweep_names_what_it_cancelled(store: Store) -> None:
    ids = await put(store, *[draft(expires=INSTANT) for _ in range(5)], draft(expires=HOUR), draft())
    await over(store, ids[4])
    assert sorted(await swept(store)) == sorted(ids[:5])
    assert [await status(store, one) for one in ids[5:]] == [Status.QUEUED] * 2


async def test_a_scheduled_and_a_blocked_job_expire_as_well(store: Store) -> None:
    [later] = await put(store, draft(expires=INSTANT, delay=HOUR))
    holder = await start(store, draft(limit=Limit("k")))
    [behind] = await put(store, draft(expires=timedelta(milliseconds=300), limit=Limit("k")))
    assert await store.jobs.claim(want()) == []
    assert await status(store, behind) is Status.BLOCKED
    await over(store, behind)
    assert sorted(await swept(store)) == sorted([later, behind])
    assert await status(store, behind) is Status.CANCELLED
    await settle(store, holder)
    assert await store.jobs.claim(want()) == []


async def test_what_a_worker_has_taken_does_not_expire(store: Store) -> None:
    wait = timedelta(milliseconds=400)
    first = await start(store, draft(expires=wait))
    second = await start(store, draft(expires=wait))
    third = await start(store, draft(expires=wait))
    await settle(store, second, RELEASED)
    await settle(store, third, AGAIN_SOON)
    await over(store, third.id)
    await passed(store, (await get(store, third.id)).run_at)
    assert await swept(store) == []
    assert sorted(job.id for job in await store.jobs.claim(want())) == sorted([second.id, third.id])
    assert await status(store, first.id) is Status.PROCESSING


async def test_the_next_due_moment_is_when_the_first_expires(store: Store) -> None:
    await put(store, draft(expires=HOUR), draft(expires=HOUR * 2))
    next_due = (await store.jobs.promote(100)).next_due
    assert next_due is not None
    assert HOUR - timedelta(minutes=1) < next_due <= HOUR
    await store.jobs.claim(want())
    assert (await store.jobs.promote(100)).next_due is None


async def test_who_awaits_it_is_cancelled(store: Store) -> None:
    last = draft("last", awaits="success")
    end = draft("last", awaits="end")
    one, other = draft(next_id=last.id, expires=INSTANT), draft(next_id=end.id, expires=INSTANT)
    await put(store, last, one, end, other)
    await over(store, other.id)
    await swept(store)
    await store.jobs.promote(100)
    assert (await status(store, last.id), await status(store, end.id)) == (Status.CANCELLED, Status.QUEUED)


async def test_an_operators_retry_gives_it_all_the_time(store: Store) -> None:
    [job_id] = await put(store, draft(expires=INSTANT))
    await over(store, job_id)
    await swept(store)
    assert (await operate(store, job_id, Action.RETRY)).verdict is Operated.DONE
    assert (await get(store, job_id)).expires_at is None
    assert (await take(store)).id == job_id


async def test_one_that_is_replaced_expires_as_its_successor_says(store: Store) -> None:
    [job_id] = await put(store, draft(unique=Unique(queued="u"), delay=HOUR, expires=HOUR))
    again = draft(unique=Unique(queued="u"), delay=HOUR, expires=HOUR * 3, on_conflict="replace")
    assert await store.jobs.insert([again]) == [Replaced(job_id)]
    job = await get(store, job_id)
    assert job.expires_at is not None
    assert job.expires_at - job.created_at >= HOUR * 3
    plain = draft(unique=Unique(queued="u"), delay=HOUR, on_conflict="replace")
    assert await store.jobs.insert([plain]) == [Replaced(job_id)]
    assert (await get(store, job_id)).expires_at is None
