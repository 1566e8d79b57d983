from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from tests.contract.steps import AGAIN_LATER, DONE, HOUR, operate, put, settle, start, take
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass.core.kept import Signal
from windlass.core.limit import Limit
from windlass.core.outcome import Waiting
from windlass.stores.contract import ANYTHING, LANES, About, Action, Notice, Operated, Order, Store

MANY = 5
"""a wake-up too many is allowed, so one alone proves nothing"""


class Bell:
    """Counts its rings, and where they came from."""

    def __init__(self) -> None:
        self.rings = 0
        self.notices: list[Notice] = []
        self.places: set[tuple[int, asyncio.AbstractEventLoop]] = set()

    def ring(self, notice: Notice) -> None:
        self.rings += 1
        self.notices.append(notice)
        self.places.add((threading.get_ident(), asyncio.get_running_loop()))

    def claimable(self) -> list[Notice]:
        return [notice for notice in self.notices if notice.about is About.CLAIMABLE]

    async def rung(self) -> None:
        await until(lambda: self.rings, "a wake-up")
        self.rings = 0


@pytest.fixture(params=["store", "other"])
def who(request: pytest.FixtureRequest, store: Store, other: Store) -> Store:
    """Who makes the change that another listens for: the same store, or one of another process."""
    return {"store": store, "other": other}[request.param]


async def ready(store: Store) -> None:
    if store.capabilities.push:
        await until(lambda: store.notices.healthy, "the notices to be healthy")


async def test_an_insert_wakes_who_listens(store: Store, who: Store) -> None:
    bell = Bell()
    async with store.notices.subscribe(bell.ring):
        await ready(store)
        for _ in range(MANY):
            await put(who)
            await bell.rung()
    assert bell.places == {(threading.get_ident(), asyncio.get_running_loop())}


async def test_publishing_a_change_wakes_who_listens(store: Store, who: Store) -> None:
    bell = Bell()
    [id_] = await put(store, draft(delay=HOUR))
    async with store.notices.subscribe(bell.ring):
        await ready(store)
        for action in (Action.RETRY, Action.CANCEL) * MANY:
            assert (await operate(who, id_, action)).verdict is Operated.DONE
            await who.notices.publish()
            await bell.rung()


async def test_everyone_who_listens_is_woken(store: Store, other: Store) -> None:
    bells = [Bell(), Bell(), Bell()]
    subscribers = (store, store, other)
    async with (
        subscribers[0].notices.subscribe(bells[0].ring),
        subscribers[1].notices.subscribe(bells[1].ring),
        subscribers[2].notices.subscribe(bells[2].ring),
    ):
        await ready(store)
        await ready(other)
        await put(store)
        for bell in bells:
            await bell.rung()


async def test_who_has_left_is_not_woken(store: Store) -> None:
    left, stays = Bell(), Bell()
    async with store.notices.subscribe(stays.ring):
        async with store.notices.subscribe(left.ring):
            await ready(store)
            await put(store)
            await left.rung()
        left.rings = stays.rings = 0
        for _ in range(MANY):
            await put(store)
            await stays.rung()
        assert left.rings == 0


async def test_who_comes_back_is_woken_again(store: Store) -> None:
    for _ in range(3):
        bell = Bell()
        async with store.notices.subscribe(bell.ring):
            await ready(store)
            await put(store)
            await bell.rung()


async def test_publishing_to_nobody_is_fine(store: Store) -> None:
    await store.notices.publish()


@pytest.mark.parametrize("notice", [ANYTHING, Notice(About.CLAIMABLE, "mail.eu", 7, 123456, 2), Notice(About.DUE)])
def test_a_notice_travels_as_text(notice: Notice) -> None:
    assert Notice.of(notice.text()) == notice


@pytest.mark.parametrize("text", ["", "?", "c", "c1.2", "y1.2.3.q", "cone.2.3.q", "queue"])
def test_what_is_no_notice_is_a_hint_of_anything(text: str) -> None:
    assert Notice.of(text) == ANYTHING


async def heard(store: Store, who: Store, change: Callable[[], Awaitable[object]]) -> list[Notice]:
    """What is told of a change, from the moment that the channel is quiet; a coalesced notice may come late."""
    bell = Bell()
    async with store.notices.subscribe(bell.ring):
        await ready(store)
        # What opening told, and what came before, is out of the way once a notice of ours has come through.
        await who.notices.publish(Notice(About.CHANGED, "mark", 77))
        await until(lambda: any(one.n == 77 or one.about is About.ANYTHING for one in bell.notices), "our own notice")
        await settled(bell)
        bell.notices.clear()
        await change()
        await until(lambda: bell.notices, "a notice of the change")
        await settled(bell)
    return bell.notices


async def settled(bell: Bell) -> None:
    """Wait until nothing more has come for a moment."""
    while True:
        before = len(bell.notices)
        await asyncio.sleep(0.05)  # that nothing comes shows only in time
        if len(bell.notices) == before:
            return


async def test_inserted_jobs_are_told_as_claimable_with_their_queue_and_number(store: Store, who: Store) -> None:
    notices = await heard(store, who, lambda: put(who, *[draft(queue="mail") for _ in range(3)]))
    claimable = [one for one in notices if one.about is About.CLAIMABLE]
    assert claimable, notices
    assert {one.queue for one in claimable} == {"mail"}
    assert max(one.n for one in claimable) >= 3
    assert all(one.about in (About.CLAIMABLE, About.CHANGED) for one in notices), notices


async def test_everybody_hears_the_same_draw(store: Store, other: Store) -> None:
    bells = [Bell(), Bell()]
    async with store.notices.subscribe(bells[0].ring), other.notices.subscribe(bells[1].ring):
        await ready(store)
        await ready(other)
        await settled(bells[0])
        await settled(bells[1])
        for bell in bells:
            bell.notices.clear()
        await put(store, draft(queue="mail"))
        for bell in bells:
            await until(bell.claimable, "a notice of something claimable")
    first, second = ({one.draw for one in bell.claimable()} for bell in bells)
    assert first & second, (bells[0].notices, bells[1].notices)


async def test_a_scheduled_job_is_told_as_due_and_not_as_claimable(store: Store, who: Store) -> None:
    notices = await heard(store, who, lambda: put(who, draft(delay=HOUR)))
    assert About.DUE in {one.about for one in notices}, notices
    assert About.CLAIMABLE not in {one.about for one in notices}, notices


async def test_an_end_that_frees_nobody_is_not_told_as_claimable(store: Store, who: Store) -> None:
    job = await start(store)
    notices = await heard(store, who, lambda: settle(who, job, DONE))
    # A file cannot tell ends from requests to cancel: there every end is told as both.
    both = {About.CANCEL} if store.capabilities.store == "sqlite" else set[About]()
    assert {one.about for one in notices} == {About.CHANGED} | both, notices


async def test_an_end_that_frees_another_is_told_as_claimable(store: Store, who: Store) -> None:
    job = await start(store, draft(limit=Limit("k")))
    await put(store, draft(limit=Limit("k")))
    assert await store.jobs.claim(want()) == []
    notices = await heard(store, who, lambda: settle(who, job, DONE))
    assert About.CLAIMABLE in {one.about for one in notices}, notices


async def test_a_retry_is_told_as_due(store: Store, who: Store) -> None:
    job = await start(store)
    notices = await heard(store, who, lambda: settle(who, job, AGAIN_LATER))
    assert About.DUE in {one.about for one in notices}, notices
    assert About.CLAIMABLE not in {one.about for one in notices}, notices


async def test_a_wait_for_a_signal_is_told_as_due(store: Store, who: Store) -> None:
    job = await start(store)
    notices = await heard(store, who, lambda: settle(who, job, Waiting("approved", HOUR)))
    assert About.DUE in {one.about for one in notices}, notices
    assert About.CLAIMABLE not in {one.about for one in notices}, notices


async def test_a_signal_that_a_job_waited_for_is_told_as_claimable(store: Store, who: Store) -> None:
    job = await start(store)
    await settle(store, job, Waiting("approved", HOUR))
    order = Order(id=job.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "true"))
    notices = await heard(store, who, lambda: who.jobs.operate([order]))
    assert About.CLAIMABLE in {one.about for one in notices}, notices


async def test_a_job_that_expires_is_told_as_due(store: Store, who: Store) -> None:
    notices = await heard(store, who, lambda: put(who, draft(expires=HOUR)))
    assert About.DUE in {one.about for one in notices}, notices


async def test_a_request_to_cancel_is_told_as_such(store: Store, who: Store) -> None:
    job = await start(store)

    async def asked() -> None:
        assert (await operate(who, job.id, Action.CANCEL)).verdict is Operated.REQUESTED

    notices = await heard(store, who, asked)
    assert About.CANCEL in {one.about for one in notices}, notices
    assert {one.about for one in notices} <= {About.CHANGED, About.CANCEL}, notices


async def test_who_follows_some_lanes_hears_of_single_jobs_in_these(store: Store, other: Store) -> None:
    bell, some = Bell(), frozenset(range(0, LANES, 2))
    async with store.notices.subscribe(bell.ring):
        await ready(store)
        store.notices.follow(bell.ring, some)
        for lane in (0, 2, LANES - 2):
            await _told_until(other, Notice(About.CLAIMABLE, "mail", draw=lane), bell)


async def test_who_follows_some_lanes_is_spared_the_others(store: Store, other: Store) -> None:
    if store.capabilities.store == "sqlite":
        return  # whoever watches a file is woken by every change of it
    bell = Bell()
    async with store.notices.subscribe(bell.ring):
        await ready(store)
        store.notices.follow(bell.ring, frozenset({1}))

        async def spared() -> bool:
            bell.notices.clear()
            await other.notices.publish(Notice(About.CLAIMABLE, "mail", draw=2))
            await _told_until(other, Notice(About.CLAIMABLE, "mail", draw=1), bell)
            return all(notice.lane != 2 for notice in bell.claimable())

        await until(spared, "the other lane to fall silent")
        # What is told to all still arrives: more than one job, what was passed on; and so does what is followed anew.
        await _told_until(other, Notice(About.CLAIMABLE, "mail", n=2, draw=2), bell)
        await _told_until(other, Notice(About.CLAIMABLE, "mail", draw=2, hop=1), bell)
        store.notices.follow(bell.ring, None)
        await _told_until(other, Notice(About.CLAIMABLE, "mail", draw=2), bell)


async def test_who_follows_no_lane_of_ends_is_spared_the_ends_of_jobs(store: Store, other: Store) -> None:
    if store.capabilities.store == "sqlite":
        return  # whoever watches a file is woken by every change of it
    bell = Bell()
    async with store.notices.subscribe(bell.ring):
        await ready(store)
        store.notices.follow(bell.ring, frozenset({1}))

        async def spared() -> bool:
            bell.notices.clear()
            await settle(other, await start(other), DONE)
            await _told_until(other, Notice(About.CLAIMABLE, "mail", draw=1), bell)
            return About.CHANGED not in {notice.about for notice in bell.notices}

        await until(spared, "ends to fall silent")
        store.notices.follow(bell.ring, None)
        await until(lambda: _ended(other, bell), "ends to be told again")


async def _ended(who: Store, bell: Bell) -> bool:
    await settle(who, await start(who), DONE)
    return About.CHANGED in {notice.about for notice in bell.notices}


async def test_lanes_that_one_subscriber_follows_are_heard_though_another_of_the_same_store_does_not(
    store: Store, other: Store
) -> None:
    bells = [Bell(), Bell()]
    async with store.notices.subscribe(bells[0].ring), store.notices.subscribe(bells[1].ring):
        await ready(store)
        store.notices.follow(bells[0].ring, frozenset())
        store.notices.follow(bells[1].ring, frozenset({5}))
        await _told_until(other, Notice(About.CLAIMABLE, "mail", draw=5), bells[1])
        await _told_until(other, Notice(About.CLAIMABLE, "mail", draw=5 + LANES), bells[1])


async def _told_until(who: Store, notice: Notice, bell: Bell) -> None:
    """Publish it until it is heard: a subscriber may be about to change what it follows."""

    async def told() -> bool:
        # SQLite draws anew.
        alike = {(one.about, one.n, one.hop, one.draw) for one in bell.notices} | {
            (one.about, one.n, one.hop, notice.draw) for one in bell.notices if who.capabilities.store == "sqlite"
        }
        if (notice.about, notice.n, notice.hop, notice.draw) in alike:
            return True
        await who.notices.publish(notice)
        return False

    await until(told, f"{notice} to be heard")


async def test_a_claim_tells_nobody_that_something_is_claimable(store: Store, who: Store) -> None:
    await put(store)

    async def claimed() -> None:
        await take(who)
        await who.notices.publish(Notice(About.CHANGED))

    notices = await heard(store, who, claimed)
    assert About.CLAIMABLE not in {one.about for one in notices}, notices
