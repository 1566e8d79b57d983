"""Named locks on every store: one holder at a time, whatever becomes of the holders."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from tests.contract.steps import passed
from tests.control.conftest import Crew
from tests.support.apps import working
from tests.support.until import until
from windlass import Ctx, Lock, LockHeld, LockLost, SettingsError, StoreUnavailable, Windlass
from windlass.stores.contract import Granted, Held

pytestmark = pytest.mark.timeout(60)
T = TypeVar("T")


@pytest.mark.timeout(120)
async def test_of_processes_that_race_one_is_inside_at_a_time_and_tokens_grow(app: Windlass, crew: Crew) -> None:
    racers = [crew.start("deckhand", "race", "8") for _ in range(4)]
    for one in racers:
        crew.wait_for("ready", one)
    crew.tell("go")
    codes = [await asyncio.to_thread(one.wait, 100) for one in racers]
    assert codes == [0, 0, 0, 0]
    assert [line for line in crew.ledger() if line[0] == "clash"] == []
    tokens = [int(line[2]) for line in crew.ledger() if line[0] == "inside"]
    assert len(tokens) == 32
    assert tokens == sorted(set(tokens)), "in the order in which they were inside"


async def test_a_killed_holder_s_lock_is_taken_over_when_its_time_is_over(app: Windlass, crew: Crew) -> None:
    holder = crew.start("deckhand", "hold", "2")
    token = int(crew.wait_for("held", holder)[2])
    with pytest.raises(LockHeld) as refused:
        async with app.lock("mast"):
            raise AssertionError("two hold it")
    # Renewed: it is still held when the time it was first taken for is over.
    await passed(app.store, refused.value.until)
    with pytest.raises(LockHeld) as again:
        async with app.lock("mast"):
            raise AssertionError("two hold it")
    assert again.value.until > refused.value.until
    holder.kill()
    holder.wait(10)
    async with app.lock("mast", wait=20) as lock:
        assert await app.store.now() >= again.value.until
        assert lock.token > token


async def test_a_late_holder_s_release_does_not_free_the_lock_of_the_next(
    app: Windlass, another: Windlass, crew: Crew
) -> None:
    holder = crew.start("deckhand", "hold", "1.5")
    crew.wait_for("held", holder)
    holder.send_signal(signal.SIGSTOP)
    async with app.lock("mast", wait=20) as lock:
        crew.tell(f"let-go-{holder.pid}")
        holder.send_signal(signal.SIGCONT)
        crew.wait_for("lost", holder)
        crew.wait_for("refused", holder)
        assert not lock.lost
        with pytest.raises(LockHeld):
            async with another.lock("mast"):
                raise AssertionError("two hold it")
    async with another.lock("mast"):
        ...


async def test_it_is_free_as_soon_as_it_is_left_also_by_an_error(app: Windlass, another: Windlass) -> None:
    with pytest.raises(ZeroDivisionError):
        async with app.lock("mast", ttl=60):
            raise ZeroDivisionError
    async with another.lock("mast", ttl=60) as second:
        assert not second.lost
        second.check()
    async with app.lock("mast") as third, app.lock("other") as other:
        assert third.token > second.token
        assert (third.name, other.name) == ("mast", "other")


async def test_one_who_waits_gets_it_when_it_is_given_back(app: Windlass, another: Windlass) -> None:
    order: list[str] = []

    async def second() -> None:
        async with another.lock("mast", wait=timedelta(seconds=20)):
            order.append("second")

    async with app.lock("mast"):
        waiting = asyncio.create_task(second())
        with pytest.raises(LockHeld):
            async with another.lock("mast", wait=0.3):
                raise AssertionError("two hold it")
        order.append("first")
    await waiting
    assert order == ["first", "second"]


async def test_a_cancelled_wait_leaves_no_lock_behind(app: Windlass, another: Windlass) -> None:
    async def take() -> None:
        async with another.lock("mast", ttl=60, wait=20):
            await asyncio.Event().wait()

    # Cancelled at any step of the way in, and inside: whenever the task is over, the lock is free.
    for steps in range(12):
        task = asyncio.create_task(take())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        found = await app.store.locks.acquire("mast", "test", timedelta(seconds=60))
        assert isinstance(found, Granted), f"cancelled after {steps} steps"
        await app.store.locks.release("mast", found.token)


async def test_a_lock_that_was_taken_away_is_lost_and_says_so(app: Windlass) -> None:
    held: list[Lock] = []
    with pytest.raises(LockLost) as told:
        async with app.lock("mast", ttl=6) as lock:
            held.append(lock)
            lock.check()
            assert await app.store.locks.release("mast", lock.token)
            taken = await app.store.locks.acquire("mast", "thief", timedelta(seconds=60))
            assert isinstance(taken, Granted)
            await until(lambda: lock.lost, "the renewal to find it gone", within=5)
            with pytest.raises(LockLost, match="no longer held under token"):
                lock.check()
    assert (told.value.name, told.value.token) == ("mast", held[0].token)
    assert isinstance(await app.store.locks.acquire("mast", "x", timedelta(1)), Held), "the thief keeps it"


async def test_handlers_hold_locks_too(app: Windlass) -> None:
    inside: list[str] = []
    most: list[int] = []

    @app.job
    async def one(ctx: Ctx) -> None:
        async with app.lock("mast", ttl=10, wait=30):
            inside.append(ctx.id)
            most.append(len(inside))
            await asyncio.sleep(0)
            inside.remove(ctx.id)

    @app.job
    def other(ctx: Ctx) -> int:
        with app.lock_sync("mast", ttl=10, wait=30) as lock:
            inside.append(ctx.id)
            most.append(len(inside))
            inside.remove(ctx.id)
            return lock.token

    handles: list[Any] = [await (one, other)[n % 2].enqueue() for n in range(6)]
    async with working(app):
        for handle in handles:
            await handle.result(30)
    assert most == [1] * 6


def test_the_synchronous_door_refuses_and_frees_alike(app: Windlass) -> None:
    with (
        app.lock_sync("mast") as lock,
        pytest.raises(LockHeld, match="lock 'mast' is held until"),
        app.lock_sync("mast"),
    ):
        raise AssertionError("two hold it")
    assert not lock.lost
    with pytest.raises(ZeroDivisionError), app.lock_sync("mast"):
        raise ZeroDivisionError
    with app.lock_sync("mast") as again:
        assert again.token > lock.token


class Unheard:
    """Locks of a store that does what it is asked, and whose answer is lost so many times."""

    def __init__(self, app: Windlass, patch: pytest.MonkeyPatch, **losses: int) -> None:
        self.owners: list[str] = []
        self.tokens: list[int] = []
        self.losses = losses
        self.between: Callable[[], Awaitable[object]] | None = None
        acquire, release = app.store.locks.acquire, app.store.locks.release

        async def acquired(name: str, owner: str, ttl: timedelta) -> Granted | Held:
            self.owners.append(owner)
            return await self._lost("acquire", granted(name, owner, ttl))

        async def granted(name: str, owner: str, ttl: timedelta) -> Granted | Held:
            answer = await acquire(name, owner, ttl)
            self.tokens += [answer.token] if isinstance(answer, Granted) else []
            return answer

        async def released(name: str, token: int) -> bool:
            return await self._lost("release", release(name, token))

        patch.setattr(app.store.locks, "acquire", acquired)
        patch.setattr(app.store.locks, "release", released)

    async def _lost(self, call: str, doing: Awaitable[T]) -> T:
        answer = await doing
        if self.losses.get(call, 0) > 0:
            self.losses[call] -= 1
            if self.between is not None:
                await self.between()
            raise StoreUnavailable("the answer was lost")
        return answer


async def test_a_grant_whose_answer_was_lost_is_the_asker_s(
    app: Windlass, another: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = Unheard(app, monkeypatch, acquire=1)
    async with app.lock("mast", ttl=60) as lock:
        assert not lock.lost
        with pytest.raises(LockHeld):
            async with another.lock("mast"):
                raise AssertionError("two hold it")
    assert len(unheard.owners) == 2
    assert len(set(unheard.owners)) == 1
    assert unheard.tokens == [lock.token] * 2, "the grant that was not heard of is the one that is used"
    async with another.lock("mast") as following:
        assert following.token > lock.token


async def test_a_store_that_never_answers_is_said_to_be_unavailable(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = Unheard(app, monkeypatch, acquire=1000)
    for wait in (None, 0.3):
        with pytest.raises(StoreUnavailable):
            async with app.lock("mast", ttl=0.1, wait=wait):
                raise AssertionError("nobody was told that it is held")
    assert len(unheard.owners) >= 4


async def test_a_release_whose_answer_was_lost_is_no_loss(
    app: Windlass, another: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = Unheard(app, monkeypatch, release=1)
    async with app.lock("mast", ttl=60):
        ...
    unheard.losses["release"] = 1

    async def take() -> None:
        assert isinstance(await another.store.locks.acquire("mast", "next", timedelta(seconds=60)), Granted)

    unheard.between = take
    async with app.lock("mast", ttl=60):
        ...
    with pytest.raises(LockHeld):
        async with app.lock("mast"):
            raise AssertionError("the next one keeps it")


async def test_two_of_one_process_are_two_owners(app: Windlass) -> None:
    async with app.lock("mast"):
        with pytest.raises(LockHeld):
            async with app.lock("mast"):
                raise AssertionError("two hold it")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": ""}, "the lock's name is ''"),
        ({"name": " mast"}, "without spaces around"),
        ({"name": 3}, "the lock's name is 3"),
        ({"name": "mast", "ttl": 0}, "ttl is 0: expected at least 0.1 seconds"),
        ({"name": "mast", "ttl": -1}, "ttl is -1: give seconds or a timedelta"),
        ({"name": "mast", "ttl": "soon"}, "ttl is 'soon': give seconds or a timedelta"),
        ({"name": "mast", "wait": float("nan")}, "wait is nan: give seconds or a timedelta"),
        ({"name": "mast", "wait": -0.1}, "wait is -0.1"),
    ],
)
def test_what_cannot_be_a_lock_is_refused_at_once(given: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Windlass("sqlite:///:memory:").lock(**given)
