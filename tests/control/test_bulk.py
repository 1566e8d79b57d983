"""Orders for many on every store: counted first, a batch at a time, each job once, and nothing that came meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.contract.places import Place
from tests.contract.steps import HOUR, NEVER_AGAIN, finish, told
from tests.support.apps import Heard
from tests.support.drafts import draft, new_id, want
from windlass import Bulk, SettingsError, Status, Windlass
from windlass.client import bulk
from windlass.core.events import JobOperated
from windlass.core.history import Happened
from windlass.core.unique import Unique

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "PAGE", 3)


async def enqueued(app: Windlass, n: int, type_: str = "send", **options: Any) -> list[str]:
    drafts = [draft(type_, **options) for _ in range(n)]
    await app.store.jobs.insert(drafts)
    return [one.id for one in drafts]


async def statuses(app: Windlass, ids: list[str]) -> list[Status | None]:
    return [None if job is None else job.status for job in await app.store.views.get(ids)]


async def test_all_that_match_are_cancelled_with_who_and_why_in_their_history(app: Windlass) -> None:
    heard = Heard(app)
    mine, others = await enqueued(app, 8), await enqueued(app, 2, "other")
    assert await app.jobs.cancel_all(type="send", dry_run=True) == Bulk(of=8, dry_run=True)
    assert await app.jobs.cancel_all(type="send", dry_run=True, limit=5) == Bulk(of=5, dry_run=True)
    assert await statuses(app, mine) == [Status.QUEUED] * 8
    steps: list[Bulk] = []
    result = await app.jobs.cancel_all(type="send", actor="ada", reason="not needed", progress=steps.append)
    assert result == Bulk(of=8, done=8)
    assert [step.done for step in steps] == [3, 6, 8]
    assert steps[-1] == result
    assert await statuses(app, mine + others) == [Status.CANCELLED] * 8 + [Status.QUEUED] * 2
    for job_id in mine:
        entry = (await app.jobs.history(job_id))[-1]
        assert (entry.happened, entry.actor, entry.note) == (Happened.CANCELLED, "ada", "not needed")
    assert {(one.id, one.action, one.actor) for one in heard.all(JobOperated)} == {
        (id_, "cancel", "ada") for id_ in mine
    }


async def test_what_cannot_be_done_is_left_and_counted(app: Windlass) -> None:
    await enqueued(app, 3, "run")
    running = await app.store.jobs.claim(want(3, types={"run"}))
    over = await finish(app.store, draft("over"))
    waiting = await enqueued(app, 4, "wait", delay=HOUR)
    assert await app.jobs.cancel_all(everything=True) == Bulk(of=8, done=4, requested=3, refused=1)
    assert {(await app.jobs.get(job.id)).cancel_requested_at is None for job in running} == {False}
    assert await app.jobs.retry_all(everything=True) == Bulk(of=8, done=5, refused=3)
    assert await app.jobs.delete_all(everything=True) == Bulk(of=8, done=5, refused=3)
    assert await statuses(app, [over.id, *waiting]) == [None] * 5
    assert await statuses(app, [job.id for job in running]) == [Status.PROCESSING] * 3


async def test_a_key_that_another_holds_keeps_a_job_from_being_queued_again(app: Windlass) -> None:
    [first] = await enqueued(app, 1, unique=Unique(queued="k"))
    await app.jobs.cancel(first)
    await enqueued(app, 1, unique=Unique(queued="k"))
    assert await app.jobs.retry_all(status="cancelled") == Bulk(of=1, duplicate=1)
    assert await told(app.store, first) == [Happened.ENQUEUED, Happened.CANCELLED]


def elsewhere(place: Place, work: Callable[[Windlass], Awaitable[object]]) -> None:
    """Let another thread do something to the same store, and wait for it."""

    async def inside() -> None:
        async with Windlass(store=place.store()) as other:
            await work(other)

    thread = threading.Thread(target=asyncio.run, args=(inside(),))
    thread.start()
    thread.join()


async def test_jobs_that_come_meanwhile_are_not_met(app: Windlass, place: Place) -> None:
    first = await enqueued(app, 4)
    early = [new_id() for _ in range(3)]
    second = await enqueued(app, 4)

    def meanwhile(step: Bulk) -> None:
        if step.done == 3:  # the clock of the program that made these ids was behind
            drafts = [draft("send", id=one) for one in early] + [draft("send")]
            elsewhere(place, lambda other: other.store.jobs.insert(drafts))

    assert await app.jobs.cancel_all(type="send", progress=meanwhile) == Bulk(of=8, done=8)
    assert await statuses(app, first + second) == [Status.CANCELLED] * 8
    assert await statuses(app, early) == [Status.QUEUED] * 3


async def test_each_job_is_met_once_whatever_becomes_of_it(app: Windlass, place: Place) -> None:
    ids = await enqueued(app, 7, delay=HOUR)

    def meanwhile(step: Bulk) -> None:
        # Those that were queued fall back behind the place that was reached; one further on leaves the filter.
        elsewhere(place, lambda other: other.jobs.cancel(ids[0] if step.done == 3 else ids[6]))

    assert await app.jobs.retry_all(status="scheduled", progress=meanwhile, limit=6) == Bulk(of=6, done=6)
    assert await statuses(app, ids) == [Status.CANCELLED, *[Status.QUEUED] * 5, Status.CANCELLED]


async def test_a_limit_takes_the_newest(app: Windlass) -> None:
    ids = await enqueued(app, 9)
    assert await app.jobs.cancel_all(type="send", limit=4) == Bulk(of=4, done=4)
    assert await statuses(app, ids) == [Status.QUEUED] * 5 + [Status.CANCELLED] * 4


async def test_no_filter_or_one_that_is_none_is_refused(app: Windlass) -> None:
    ids = await enqueued(app, 2)
    nothing: Any = None
    for order in (app.jobs.cancel_all, app.jobs.retry_all, app.jobs.delete_all):
        with pytest.raises(SettingsError, match="no filter was given"):
            await order()
        with pytest.raises(SettingsError, match="user is None"):
            await order(user=nothing)
        with pytest.raises(SettingsError, match="colour"):
            await order(colour="red")  # type: ignore[call-arg]  # a word that is not known
        with pytest.raises(SettingsError, match="limit is 0"):
            await order(everything=True, limit=0)
    assert await statuses(app, ids) == [Status.QUEUED] * 2


async def test_dead_letters_tell_how_far_they_have_come(app: Windlass) -> None:
    for _ in range(4):
        await finish(app.store, draft("send"), outcome=NEVER_AGAIN)
    steps: list[Bulk] = []
    await app.dead_letters.replay_all(type="send", progress=steps.append)
    assert [(step.done, step.of) for step in steps] == [(3, 4), (4, 4)]
    steps.clear()
    await app.dead_letters.replay_all(type="send", progress=steps.append)
    assert [(step.done, step.refused) for step in steps] == [(0, 3), (0, 4)]
    steps.clear()
    await app.dead_letters.discard_all(type="send", progress=steps.append)
    assert [step.done for step in steps] == [3, 4]


async def test_it_is_done_without_an_event_loop(app: Windlass) -> None:
    ids = await enqueued(app, 4)

    def script() -> Bulk:
        return app.run_sync(app.jobs.cancel_all(type="send"))

    assert await asyncio.to_thread(script) == Bulk(of=4, done=4)
    assert await statuses(app, ids) == [Status.CANCELLED] * 4
