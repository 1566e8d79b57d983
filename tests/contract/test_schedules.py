from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.contract.steps import HOUR, everything, finish, get, near, put, settle, start, take, told
from tests.support.drafts import draft, want
from windlass.core.every import When, every
from windlass.core.history import Happened
from windlass.core.schedule import cron
from windlass.core.status import Status
from windlass.stores.contract import Filter, Fired, Firing, Schedule, Store, Tick

MINUTE = timedelta(minutes=1)


async def past(store: Store, minutes: int = 120) -> datetime:
    """A whole minute in the store's past."""
    return (await store.now()).replace(second=0, microsecond=0) - minutes * MINUTE


async def rule(store: Store, name: str = "nightly", **changes: Any) -> Schedule:
    """A schedule that is due, and stored."""
    schedule = Schedule(
        name=name, cron=cron("* * * * *"), type="noop", payload_json='{"n":1}', queue="q", next_tick=await past(store)
    )
    schedule = replace(schedule, **changes)
    await store.schedules.put([schedule])
    return schedule


def firing(schedule: Schedule, n: int = 0, *, job: bool = True, unless_live: bool = False) -> Firing:
    """The schedule's next tick but n."""
    tick = schedule.next_tick + n * MINUTE
    made = draft(schedule.type, schedule.payload_json, queue=schedule.queue, schedule=schedule.name, tick=tick)
    return Firing(
        name=schedule.name,
        expected=tick,
        next_tick=tick + MINUTE,
        draft=made if job else None,
        unless_live=unless_live,
    )


async def fire(store: Store, one: Firing) -> Fired:
    [found] = await store.schedules.fire([one])
    return found


async def stored(store: Store, name: str = "nightly") -> Schedule:
    [found] = [one for one in await store.schedules.list() if one.name == name]
    return found


def made(one: Firing) -> str:
    assert one.draft is not None
    return one.draft.id


async def unmoved(store: Store, schedule: Schedule) -> bool:
    """Whether the schedule stands where it stood, without ticks or jobs."""
    return (
        (await stored(store, schedule.name)).next_tick == schedule.next_tick
        and await store.schedules.ticks(schedule.name) == []
        and await everything(store) == []
    )


@pytest.mark.parametrize(
    "fires",
    [
        cron("0 9 * * mon-fri", "Europe/Paris", overlap="allow", missed="all", limit=7),
        every(30, overlap="queue", missed="none", limit=8),
        every(timedelta(hours=1)),
    ],
)
async def test_a_schedule_is_stored_as_it_was_put(store: Store, other: Store, fires: When) -> None:
    schedule = await rule(store, cron=fires, options_json='{"priority":5}', declared=True)
    found = await stored(other)
    assert near(found.updated_at, await store.now())
    assert replace(found, updated_at=None) == schedule


async def test_schedules_are_listed_by_name_and_removed_by_name(store: Store) -> None:
    assert await store.schedules.list() == []
    for name in ("c", "a", "b"):
        await rule(store, name)
    assert [one.name for one in await store.schedules.list()] == ["a", "b", "c"]
    assert await store.schedules.remove(["a", "unheard", "c"]) == 2
    assert await store.schedules.remove([]) == 0
    assert [one.name for one in await store.schedules.list()] == ["b"]


async def test_an_unchanged_schedule_keeps_its_next_tick(store: Store) -> None:
    schedule = await rule(store)
    assert await fire(store, firing(schedule)) is Fired.FIRED
    await store.schedules.put([replace(schedule, next_tick=schedule.next_tick + HOUR)])
    found = await stored(store)
    assert found.next_tick == schedule.next_tick + MINUTE
    assert found.last_tick == schedule.next_tick


@pytest.mark.parametrize(
    "change",
    [
        {"cron": cron("*/5 * * * *")},
        {"cron": cron("* * * * *", "Europe/Paris")},
    ],
    ids=["expression", "zone"],
)
async def test_a_changed_rule_takes_the_new_next_tick(store: Store, change: dict[str, Any]) -> None:
    schedule = await rule(store)
    changed = replace(schedule, next_tick=schedule.next_tick + HOUR, **change)
    await store.schedules.put([changed])
    assert replace(await stored(store), updated_at=None) == changed
    assert len(await store.schedules.list()) == 1


@pytest.mark.parametrize(
    "change",
    [{"payload_json": '{"n":2}'}, {"queue": "other"}, {"options_json": '{"priority":1}'}, {"declared": True}],
    ids=["payload", "queue", "options", "declared"],
)
async def test_a_changed_job_under_the_same_rule_keeps_the_tick_it_stands_at(
    store: Store, change: dict[str, Any]
) -> None:
    schedule = await rule(store)
    changed = replace(schedule, next_tick=schedule.next_tick + HOUR, **change)
    await store.schedules.put([changed])
    assert replace(await stored(store), updated_at=None) == replace(changed, next_tick=schedule.next_tick)


async def test_a_due_tick_makes_its_job_and_moves_on(store: Store) -> None:
    schedule = await rule(store)
    one = firing(schedule)
    assert await fire(store, one) is Fired.FIRED
    job = await get(store, made(one))
    assert (job.schedule, job.tick, job.status) == ("nightly", schedule.next_tick, Status.QUEUED)
    assert (job.type, job.payload, job.queue) == ("noop", {"n": 1}, "q")
    assert await told(store, job.id) == [Happened.ENQUEUED]
    found = await stored(store)
    assert (found.next_tick, found.last_tick) == (schedule.next_tick + MINUTE, schedule.next_tick)
    assert await store.schedules.ticks("nightly") == [Tick(schedule.next_tick, Fired.FIRED, job.id)]
    assert [one.id for one in (await store.views.find(Filter(schedule="nightly"), 5)).jobs] == [job.id]
    assert (await take(store)).id == job.id


async def test_a_tick_fires_once(store: Store, other: Store) -> None:
    schedule = await rule(store)
    one, two = firing(schedule), firing(schedule)
    assert await fire(store, one) is Fired.FIRED
    assert await fire(other, two) is Fired.STALE
    assert await fire(store, one) is Fired.STALE
    assert [job.id for job in await everything(store)] == [made(one)]
    assert len(await store.schedules.ticks("nightly")) == 1
    assert await told(store, made(one)) == [Happened.ENQUEUED]


async def test_a_tick_other_than_the_next_is_stale(store: Store) -> None:
    schedule = await rule(store)
    assert await fire(store, firing(schedule, 1)) is Fired.STALE
    assert await fire(store, firing(schedule, -1)) is Fired.STALE
    assert await unmoved(store, schedule)


async def test_a_tick_that_has_not_come_by_the_stores_clock_is_early(store: Store) -> None:
    schedule = await rule(store, next_tick=await past(store, -60))
    assert await fire(store, firing(schedule)) is Fired.EARLY
    assert await unmoved(store, schedule)


async def test_a_paused_schedule_does_not_fire_until_it_is_restarted(store: Store, other: Store) -> None:
    schedule = await rule(store)
    await other.schedules.pause(["nightly", "unheard"], paused=True)
    assert near((await stored(store)).paused_at, await store.now())
    assert await fire(store, firing(schedule)) is Fired.STALE
    assert await unmoved(store, schedule)
    await other.schedules.pause(["nightly"], paused=False)
    assert (await stored(store)).paused_at is None
    one = firing(schedule)
    assert await fire(store, one) is Fired.FIRED
    assert await told(store, made(one)) == [Happened.ENQUEUED]


async def test_a_paused_schedule_that_is_put_again_stays_paused(store: Store) -> None:
    schedule = await rule(store)
    await store.schedules.pause(["nightly"], paused=True)
    await store.schedules.put([schedule])
    assert (await stored(store)).paused_at is not None
    await store.schedules.put([replace(schedule, payload_json='{"n":2}')])
    assert (await stored(store)).paused_at is not None


async def test_a_removed_schedule_does_not_fire_and_its_jobs_stay(store: Store) -> None:
    schedule = await rule(store)
    one = firing(schedule)
    await fire(store, one)
    assert await store.schedules.remove(["nightly"]) == 1
    assert await fire(store, firing(schedule, 1)) is Fired.STALE
    assert [job.id for job in await everything(store)] == [made(one)]
    assert await told(store, made(one)) == [Happened.ENQUEUED]


async def test_a_schedule_put_again_after_its_removal_does_not_fire_a_tick_twice(store: Store) -> None:
    schedule = await rule(store)
    one = firing(schedule)
    await fire(store, one)
    await store.schedules.remove(["nightly"])
    await store.schedules.put([schedule])
    assert await fire(store, firing(schedule)) is not Fired.FIRED
    assert [job.id for job in await everything(store)] == [made(one)]
    # And it is not stuck there.
    next_ = firing(schedule, 1)
    assert await fire(store, next_) is Fired.FIRED
    assert await told(store, made(next_)) == [Happened.ENQUEUED]


async def test_a_tick_is_skipped_while_an_earlier_job_of_the_schedule_is_live(store: Store) -> None:
    schedule = await rule(store)
    first, second, third = [firing(schedule, n, unless_live=True) for n in range(3)]
    assert await fire(store, first) is Fired.FIRED
    assert await fire(store, second) is Fired.SKIPPED
    assert (await stored(store)).next_tick == third.expected
    job = await take(store)
    assert await fire(store, third) is Fired.SKIPPED
    await settle(store, job)
    fourth = firing(schedule, 3, unless_live=True)
    assert await fire(store, fourth) is Fired.FIRED
    assert await store.schedules.ticks("nightly") == [
        Tick(fourth.expected, Fired.FIRED, made(fourth)),
        Tick(third.expected, Fired.SKIPPED, None),
        Tick(second.expected, Fired.SKIPPED, None),
        Tick(first.expected, Fired.FIRED, made(first)),
    ]
    assert {job.id for job in await everything(store)} == {made(first), made(fourth)}
    assert await told(store, made(fourth)) == [Happened.ENQUEUED]


async def test_another_schedules_job_does_not_count_as_live(store: Store) -> None:
    schedule, other = await rule(store), await rule(store, "other")
    await put(store, draft())
    assert await fire(store, firing(other)) is Fired.FIRED
    assert await fire(store, firing(schedule, unless_live=True)) is Fired.FIRED


async def test_with_overlap_allowed_every_tick_makes_its_job(store: Store) -> None:
    schedule = await rule(store)
    assert [await fire(store, firing(schedule, n)) for n in range(3)] == [Fired.FIRED] * 3
    assert len(await store.jobs.claim(want())) == 3


async def test_a_missed_tick_is_recorded_without_a_job(store: Store) -> None:
    schedule = await rule(store)
    assert await fire(store, firing(schedule, job=False)) is Fired.MISSED
    found = await stored(store)
    assert found.next_tick == schedule.next_tick + MINUTE
    assert await store.schedules.ticks("nightly") == [Tick(schedule.next_tick, Fired.MISSED, None)]
    assert await everything(store) == []


async def test_ticks_missed_in_a_row_are_recorded_with_their_number(store: Store) -> None:
    schedule = await rule(store)
    assert await fire(store, replace(firing(schedule, job=False), ticks=57)) is Fired.MISSED
    assert await store.schedules.ticks("nightly") == [Tick(schedule.next_tick, Fired.MISSED, None, 57)]


async def test_several_ticks_of_several_schedules_are_fired_in_one_call(store: Store) -> None:
    one, two = await rule(store, "one"), await rule(store, "two", next_tick=await past(store, -60))
    firings = [firing(one, 0, job=False), firing(two), firing(one, 1), firing(one, 1), firing(one, 2)]
    found = await store.schedules.fire(firings)
    assert found == [Fired.MISSED, Fired.EARLY, Fired.FIRED, Fired.STALE, Fired.FIRED]
    assert [job.id for job in await everything(store)] == [made(firings[4]), made(firings[2])]
    assert (await stored(store, "one")).next_tick == one.next_tick + 3 * MINUTE
    assert await store.schedules.fire([]) == []


async def test_the_newest_fifty_ticks_are_remembered_newest_first(store: Store) -> None:
    schedule = await rule(store)
    await store.schedules.fire([firing(schedule, n, job=n % 2 == 0) for n in range(60)])
    ticks = await store.schedules.ticks("nightly")
    assert [tick.tick for tick in ticks] == [schedule.next_tick + n * MINUTE for n in range(59, 9, -1)]
    assert {tick.fired for tick in ticks} == {Fired.FIRED, Fired.MISSED}
    assert await store.schedules.ticks("unheard") == []


async def test_a_job_that_only_mentions_a_schedule_leaves_it_alone(store: Store) -> None:
    schedule = await rule(store)
    await finish(store, draft(schedule="nightly"))
    await start(store, draft(schedule="nightly"))
    assert (await stored(store)).next_tick == schedule.next_tick
    assert await store.schedules.ticks("nightly") == []


async def test_what_is_due_is_told_longest_due_first_with_the_next_tick_of_the_others(store: Store) -> None:
    second = await rule(store, "b", next_tick=await past(store, 1))
    first = await rule(store, "a", next_tick=await past(store, 5))
    await rule(store, "later", next_tick=await past(store, -60))
    await rule(store, "sooner", next_tick=await past(store, -30))
    await rule(store, "paused", next_tick=await past(store, 9))
    await store.schedules.pause(["paused"], paused=True)
    due = await store.schedules.due(10)
    assert [one.name for one in due.schedules] == [first.name, second.name]
    assert due.schedules == (await stored(store, "a"), await stored(store, "b"))
    assert near(due.now, await store.now())
    assert due.next_in is not None
    assert near(due.now + due.next_in, await past(store, -30), MINUTE)
    assert [one.name for one in (await store.schedules.due(1)).schedules] == ["a"]


async def test_nothing_is_due_where_there_is_no_schedule(store: Store) -> None:
    due = await store.schedules.due(10)
    assert (due.schedules, due.next_in) == ((), None)


async def test_a_schedule_that_was_fired_is_due_at_its_next_tick(store: Store) -> None:
    schedule = await rule(store)
    one = replace(firing(schedule), next_tick=await past(store, -30))
    assert await fire(store, one) is Fired.FIRED
    due = await store.schedules.due(10)
    assert due.schedules == ()
    assert due.next_in is not None
