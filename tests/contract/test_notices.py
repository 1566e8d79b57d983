from __future__ import annotations

import asyncio
import threading

import pytest

from tests.contract.steps import HOUR, operate, put
from tests.support.drafts import draft
from tests.support.until import until
from windlass.stores.contract import Action, Operated, Store

MANY = 5
"""a wake-up too many is allowed, so one alone proves nothing"""


class Bell:
    """Counts its rings, and where they came from."""

    def __init__(self) -> None:
        self.rings = 0
        self.places: set[tuple[int, asyncio.AbstractEventLoop]] = set()

    def ring(self) -> None:
        self.rings += 1
        self.places.add((threading.get_ident(), asyncio.get_running_loop()))

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
