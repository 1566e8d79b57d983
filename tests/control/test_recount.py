"""Events = history, on every store: each line of a job's history was told, and nothing that is not there."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.places import Place
from tests.contract.steps import everything, passed
from tests.support.apps import Heard, until_status, working
from tests.support.drafts import INSTANT, want
from tests.support.until import until
from windlass import (
    Cancel,
    Ctx,
    Handle,
    Happened,
    Limit,
    Reject,
    Retention,
    Retry,
    Snooze,
    Status,
    Windlass,
    cron,
    events,
)
from windlass.core.ageing import Ageing
from windlass.stores.contract import Lease, Schedule
from windlass.worker.chores.ageing import AgeingChore
from windlass.worker.chores.pruning import Pruning

pytestmark = pytest.mark.timeout(120)

DEAD = "dead-1"
"""a worker that died before it could tell of its claims"""
COUNTED: dict[Happened, type[Any]] = {Happened.PROMOTED: events.JobsPromoted, Happened.AGED: events.JobsAged}
ASIDE = {Happened.BLOCKED, Happened.UNBLOCKED}
"""what a store does to other jobs in the step that claims or ends one"""


def lines_of(event: events.Event) -> Iterator[tuple[str, Happened]]:
    """The lines that an event says are in the history."""
    match event:
        case events.JobEnqueued():
            yield event.id, Happened.ENQUEUED
        case events.JobReplaced():
            yield event.id, Happened.REPLACED
        case events.JobClaimed():
            yield event.job.id, Happened.CLAIMED
        case events.JobEnded():
            yield event.job.id, event.transition.happened
        case events.ResultRefused():
            yield event.job.id, Happened.REFUSED
        case events.JobRescued():
            ended = {Status.QUEUED: Happened.LOST, Status.FAILED: Happened.FAILED, Status.CANCELLED: Happened.CANCELLED}
            yield event.job.id, ended[event.to]
        case events.JobExpired():
            yield event.id, Happened.CANCELLED
        case events.JobOperated(action="cancel"):
            yield event.id, Happened.CANCEL_REQUESTED if event.requested else Happened.CANCELLED
        case events.JobOperated(action="retry"):
            yield event.id, Happened.RETRIED
        case events.JobSignalled():
            yield event.id, Happened.SIGNALLED
        case _:
            pass


class Recount:
    """What was told beside what is written."""

    def __init__(self, app: Windlass) -> None:
        self._app, self.heard = app, Heard(app)
        self.committed: set[str] = set()

    def told(self) -> Counter[tuple[str, Happened]]:
        lines = Counter(line for event in list(self.heard.events) for line in lines_of(event))
        # The caller, and nobody else, knows which of these there are.
        lines.update((job_id, Happened.ENQUEUED) for job_id in self.in_transactions() & self.committed)
        return lines

    def in_transactions(self) -> set[str]:
        return {event.id for event in self.heard.all(events.JobEnqueuedInTransaction)}

    async def written(self) -> Counter[tuple[str, Happened]]:
        lines: Counter[tuple[str, Happened]] = Counter()
        for job in await everything(self._app.store):
            history = await self._app.store.views.history(job.id)
            lines.update((job.id, entry.happened) for entry in history if entry.actor != DEAD)
        return lines

    async def differences(self) -> dict[str, Any]:
        """What one side has and the other has not; empty when they agree."""
        told, written = self.told(), await self.written()
        counts = {
            happened.value: (sum(event.count for event in self.heard.all(kind)), _sum(written, happened))
            for happened, kind in COUNTED.items()
        }
        each = Counter({line: n for line, n in written.items() if line[1] not in {*COUNTED, *ASIDE}})
        apart = {name: pair for name, pair in counts.items() if pair[0] != pair[1]}
        return {
            name: value
            for name, value in (("never told", each - told), ("not written", told - each), ("counts", apart))
            if value
        }

    async def check(self) -> None:
        assert await self.differences() == {}


def _sum(lines: Counter[tuple[str, Happened]], happened: Happened) -> int:
    return sum(n for (_, what), n in lines.items() if what is happened)


@pytest.fixture
def recount(app: Windlass) -> Recount:
    return Recount(app)


async def all_ended(app: Windlass, *handles: Handle[Any]) -> None:
    async def ended() -> bool:
        found = await app.store.views.get([handle.id for handle in handles])
        return all(job is not None and job.status.finished for job in found)

    await until(ended, "all to have ended", within=30)


async def test_every_way_an_attempt_ends_is_told_as_it_is_written(app: Windlass, recount: Recount) -> None:
    async def work(ctx: Ctx, how: str) -> str:
        match how:
            case "again" if ctx.attempt == 1:
                raise ValueError(how)
            case "asked again" if ctx.attempt == 1:
                raise Retry(after=0.01)
            case "snooze" if seen.count(how) < 2:
                seen.append(how)
                raise Snooze(0.01)
            case "fail":
                raise ValueError(how)
            case "reject":
                raise Reject(how)
            case "cancel":
                raise Cancel(how)
            case _:
                return how

    seen: list[str] = []
    job = app.job(retry=Retry(2, base=0.01, jitter=False))(work)
    ways = ("fine", "again", "asked again", "snooze", "fail", "reject", "cancel")
    handles = await app.enqueue_many(job.bind(how) for how in ways)
    async with working(app):
        await all_ended(app, *handles)
    await recount.check()
    assert {event.transition.happened for event in recount.heard.all(events.JobEnded)} == {
        Happened.SUCCEEDED,
        Happened.RETRYING,
        Happened.SNOOZED,
        Happened.FAILED,
        Happened.CANCELLED,
    }
    assert len(recount.heard.all(events.JobStarted)) == len(recount.heard.all(events.JobClaimed))


async def test_signals_and_suspensions_are_told_as_they_are_written(app: Windlass, recount: Recount) -> None:
    @app.job
    async def child(n: int) -> int:
        return n

    @app.job
    async def work(ctx: Ctx) -> list[int]:
        await ctx.wait("first")
        await ctx.wait("second")
        return await ctx.gather("all", [child.bind(n) for n in range(3)])

    handle = await work.enqueue()
    await app.jobs.signal(handle, "second", actor="ann")
    async with working(app):
        await until_status(handle, Status.BLOCKED)
        await app.jobs.signal(handle, "first", actor="bob")
        await all_ended(app, handle)
    await recount.check()
    told = [(event.signal, event.actor, event.freed) for event in recount.heard.all(events.JobSignalled)]
    assert told == [("second", "ann", False), ("first", "bob", True)]


async def test_a_retry_that_became_a_cancellation_is_told_as_what_it_became(app: Windlass, recount: Recount) -> None:
    asked = threading.Event()

    @app.job(retry=Retry(3, base=60))
    def stubborn() -> None:
        asked.wait(20)
        raise ValueError("again")

    handle = await stubborn.enqueue()
    async with working(app):
        await until_status(handle, Status.PROCESSING)
        assert not await app.jobs.cancel(handle, actor="ann")
        asked.set()
        await until_status(handle, Status.CANCELLED)
        [ended] = await until(lambda: recount.heard.all(events.JobEnded), "its end to be told")
    await recount.check()
    assert (ended.transition.happened, ended.finished) == (Happened.CANCELLED, True)
    await until(lambda: not any("windlass-thread" in one.name for one in threading.enumerate()), "threads to end")


async def test_orders_are_told_as_they_are_written(app: Windlass, recount: Recount) -> None:
    @app.job
    async def hold() -> None:
        await asyncio.Event().wait()

    @app.job(retry=1)
    async def bad() -> None:
        raise ValueError("bad")

    waiting, doomed = await hold.using(delay=60).enqueue(), await hold.using(delay=60).enqueue()
    running, failed = await hold.enqueue(), await bad.enqueue()
    await app.jobs.cancel(waiting, actor="ann")
    await app.jobs.delete(doomed, actor="bob")
    async with working(app):
        await until_status(running, Status.PROCESSING)
        assert not await app.jobs.cancel(running, actor="cy")
        await all_ended(app, running, failed)
        await app.jobs.retry(failed, actor="dee")
        again = await app.jobs.replay(waiting.id, actor="eve")
        await until_status(again, Status.PROCESSING)
        await all_ended(app, failed)
    await until_status(again, Status.QUEUED)
    gone = {event.id for event in recount.heard.all(events.JobOperated) if event.action == "delete"}
    assert gone == {doomed.id}
    assert await _only_these_are_gone(recount, gone)


async def _only_these_are_gone(recount: Recount, gone: set[str]) -> bool:
    """Whether the two sides agree but for jobs that are deleted, whose histories went with them."""
    left = await recount.differences()
    return set(left) <= {"not written"} and {job_id for job_id, _ in left.get("not written", ())} == gone


async def test_lost_jobs_and_late_results_are_told_as_they_are_written(app: Windlass, recount: Recount) -> None:
    @app.job(max_crashes=2, name="noop")
    async def work() -> None: ...

    handles = [await work.enqueue(), await work.using(max_crashes=1).enqueue()]
    claimed = await app.store.jobs.claim(want(worker=DEAD))
    await app.store.jobs.extend(DEAD, [Lease(job.id, job.lease_token) for job in claimed], INSTANT)
    async with working(app):
        await all_ended(app, *handles)
    await recount.check()
    assert sorted(event.to for event in recount.heard.all(events.JobRescued)) == [Status.FAILED, Status.QUEUED]
    assert {event.job.type for event in recount.heard.all(events.JobRescued)} == {"noop"}


async def test_jobs_that_expire_are_told_as_they_are_written(app: Windlass, recount: Recount) -> None:
    @app.job
    async def work(n: int) -> int:
        return n

    late = [await work.using(expires=INSTANT).enqueue(n) for n in range(3)]
    fine = await work.using(expires=60).enqueue(3)
    await passed(app.store, (await late[-1].job()).expires_at)
    async with working(app):
        await all_ended(app, *late, fine)
        await until(lambda: len(recount.heard.all(events.JobExpired)) == 3, "them to be told")
    await recount.check()
    assert sorted(event.id for event in recount.heard.all(events.JobExpired)) == [handle.id for handle in late]


async def test_duplicates_replacements_and_limits_are_told_as_they_are_written(app: Windlass, recount: Recount) -> None:
    @app.job(limit=Limit("one", 1))
    async def one(n: int) -> int:
        return n

    first = await one.using(unique="k", delay=0.2).enqueue(1)
    await one.using(unique="k").enqueue(2)
    await one.using(unique="k", on_conflict="replace", delay=0.1).enqueue(3)
    handles = [first, *await app.enqueue_many(one.bind(n) for n in range(8))]
    handles += await app.enqueue_many(one.using(delay=0.01, queue=f"q{n % 2}").bind(n) for n in range(4))
    async with working(app):
        await all_ended(app, *handles)
    await recount.check()
    assert [event.id for event in recount.heard.all(events.JobDeduplicated)] == [first.id]
    assert [event.id for event in recount.heard.all(events.JobReplaced)] == [first.id]
    promoted: Counter[str] = Counter()
    for event in recount.heard.all(events.JobsPromoted):
        assert sum(event.queues.values()) == event.count
        promoted.update(event.queues)
    assert promoted == {"default": 1, "q0": 2, "q1": 2}


@pytest.mark.parametrize("commits", [True, False])
async def test_what_a_transaction_enqueues_is_told_as_what_it_is(
    app: Windlass, recount: Recount, place: Place, commits: bool
) -> None:
    @app.job
    async def step(n: int) -> int:
        return n

    if not app.store.capabilities.transactions:
        await step.enqueue(0)
        await recount.check()
        return
    async with place.transaction() as transaction:
        with app.within(transaction.tx):
            handles = await app.enqueue_many([step.bind(1), step.bind(2)])
        await (transaction.commit() if commits else transaction.rollback())
    recount.committed |= {handle.id for handle in handles} if commits else set()
    await app.worker(drain=True).run()
    await recount.check()
    assert len(recount.in_transactions()) == 2


async def test_ticks_are_told_as_the_schedule_has_them(app: Windlass, recount: Recount) -> None:
    @app.job(name="tick")
    async def tick() -> None: ...

    now = await app.store.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    rule, first = cron("0 * * * *", missed="latest", overlap="skip"), hour - timedelta(hours=3)
    await app.store.schedules.put(
        [
            Schedule(
                name="s",
                cron=rule,
                type="tick",
                payload_json="{}",
                queue="default",
                next_tick=first,
            )
        ]
    )
    async with working(app):
        fired = await recount.heard.one(events.ScheduleFired)
        await all_ended(app, await _handle(app, fired.job_id))
    ticks = [(one.tick, one.job_id, one.ticks) for one in await app.store.schedules.ticks("s")]
    [missed] = recount.heard.all(events.ScheduleMissed)
    assert ticks == [(fired.tick, fired.job_id, 1), (missed.tick, None, missed.ticks)]
    await recount.check()


async def _handle(app: Windlass, job_id: str) -> Handle[Any]:
    return Handle(app.client, job_id, created=True, codec=None)


async def test_what_is_raised_and_pruned_is_counted(app: Windlass, recount: Recount) -> None:
    @app.job
    async def step(n: int) -> int:
        return n

    low = await app.enqueue_many(step.using(priority="low").bind(n) for n in range(3))
    await _passed(app, timedelta(seconds=1.1))
    await AgeingChore(app.store, app.hub, Ageing(after=timedelta(seconds=1), to="high")).once()
    assert sum(event.count for event in recount.heard.all(events.JobsAged)) == 3
    async with working(app):
        await all_ended(app, *low)
    await recount.check()
    await _passed(app, timedelta(milliseconds=20))
    await Pruning(app.store, app.hub, Retention(succeeded=timedelta(0))).once()
    assert sum(event.count for event in recount.heard.all(events.JobsPruned)) == 3
    assert await everything(app.store) == []


async def _passed(app: Windlass, wait: timedelta) -> None:
    end = await app.store.now() + wait

    async def over() -> bool:
        return await app.store.now() > end

    await until(over, "the time to pass")
