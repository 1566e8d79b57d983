from __future__ import annotations

from datetime import datetime, timedelta

from tests.contract.steps import BEHIND, HOUR, finish, get, near, put, settle, start, take, told
from tests.support.drafts import LONG, draft, want
from tests.support.until import until
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.contract import Count, Extended, Lease, QueueInfo, Store, Verdict


async def queue(store: Store, name: str) -> QueueInfo:
    [found] = [one for one in await store.queues.list() if one.name == name]
    return found


async def names(store: Store) -> list[str]:
    return [one.name for one in await store.queues.list()]


async def test_a_queue_exists_from_the_first_job_or_setting_that_names_it(store: Store) -> None:
    assert await store.queues.list() == []
    await put(store, draft(queue="c"))
    await store.queues.pause(["b"])
    await store.queues.limit_depth("a", 5)
    assert await names(store) == ["a", "b", "c"]


async def test_a_queue_shows_what_waits_and_what_runs(store: Store) -> None:
    await put(store, *[draft(queue="q") for _ in range(3)], draft(queue="q", delay=HOUR), draft(queue="other"))
    await take(store, want(1, queues={"q": 1}))
    found = await queue(store, "q")
    assert (found.depth, found.processing) == (Count(2, exact=True), Count(1, exact=True))
    assert (found.paused_at, found.max_depth) == (None, None)


async def test_a_queue_shows_how_long_its_longest_waiting_job_has_waited(store: Store) -> None:
    [first] = await put(store, draft(queue="q"))
    await put(store, draft(queue="q"))
    queued_at = (await get(store, first)).queued_at
    assert queued_at is not None
    before = await store.now()
    oldest = (await queue(store, "q")).oldest
    assert oldest is not None
    assert before - queued_at <= oldest <= await store.now() + BEHIND - queued_at
    await store.jobs.claim(want())
    assert (await queue(store, "q")).oldest is None


async def test_jobs_that_were_due_long_ago_have_waited_only_since_they_were_queued(store: Store) -> None:
    """However many there are: the longest-waiting job stands behind all of them."""
    [first] = await put(store, draft(queue="q"))
    queued_at = (await get(store, first)).queued_at
    assert queued_at is not None
    await until_later(store, queued_at)
    await put(store, *[draft(queue="q", run_at=queued_at - HOUR) for _ in range(60)])
    await put(store, draft(queue="q", priority=1))
    before = await store.now()
    oldest = (await queue(store, "q")).oldest
    assert oldest is not None
    assert before - queued_at <= oldest <= await store.now() + BEHIND - queued_at


async def until_later(store: Store, moment: datetime) -> None:
    async def later() -> bool:
        return await store.now() > moment + timedelta(milliseconds=20)

    await until(later, "the store's clock to go on")


async def test_an_empty_queue_is_still_there(store: Store) -> None:
    await finish(store, draft(queue="q"))
    found = await queue(store, "q")
    assert (found.depth, found.processing, found.oldest) == (Count(0, exact=True), Count(0, exact=True), None)


async def test_a_paused_queue_keeps_its_jobs_until_it_is_resumed(store: Store, other: Store) -> None:
    a, b = await put(store, draft(queue="a"), draft(queue="b"))
    await store.queues.pause(["a"])
    assert near((await queue(other, "a")).paused_at, await store.now())
    assert (await queue(other, "b")).paused_at is None
    assert [job.id for job in await other.jobs.claim(want())] == [b]
    assert (await get(store, a)).status is Status.QUEUED
    await put(store, draft(queue="a"))
    assert (await queue(store, "a")).depth.n == 2
    await other.queues.resume(["a"])
    assert (await queue(store, "a")).paused_at is None
    assert len(await store.jobs.claim(want())) == 2
    assert await told(store, a) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_several_queues_are_paused_and_resumed_at_once(store: Store) -> None:
    await put(store, draft(queue="a"), draft(queue="b"), draft(queue="c"))
    await store.queues.pause(["a", "b", "a"])
    await store.queues.pause([])
    assert [job.queue for job in await store.jobs.claim(want())] == ["c"]
    await store.queues.resume(["a", "b", "unheard"])
    assert {job.queue for job in await store.jobs.claim(want())} == {"a", "b"}


async def test_pausing_again_and_resuming_what_runs_changes_nothing(store: Store) -> None:
    await put(store, draft(queue="q"))
    await store.queues.pause(["q"])
    paused = await queue(store, "q")
    await store.queues.pause(["q"])
    assert (await queue(store, "q")).paused_at == paused.paused_at
    await store.queues.resume(["q"])
    await store.queues.resume(["q"])
    assert (await take(store)).queue == "q"


async def test_what_runs_goes_on_in_a_paused_queue(store: Store) -> None:
    job = await start(store, draft(queue="q"))
    await store.queues.pause(["q"])
    assert await store.jobs.extend("w1", [Lease(job.id, 1)], LONG) == Extended(frozenset(), frozenset())
    assert await settle(store, job) is Verdict.APPLIED
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]


async def test_a_depth_is_set_and_taken_back(store: Store, other: Store) -> None:
    await store.queues.limit_depth("q", 7)
    assert (await queue(other, "q")).max_depth == 7
    await store.queues.pause(["q"])
    assert (await queue(other, "q")).max_depth == 7
    await other.queues.limit_depth("q", None)
    found = await queue(store, "q")
    assert found.max_depth is None
    assert found.paused_at is not None
