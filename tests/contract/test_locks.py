from __future__ import annotations

from datetime import timedelta

from tests.contract.steps import HOUR, near, passed
from tests.support.drafts import INSTANT
from windlass.stores.contract import Granted, Held, Store


async def granted(store: Store, owner: str = "ann", ttl: timedelta = HOUR, name: str = "l") -> Granted:
    found = await store.locks.acquire(name, owner, ttl)
    assert isinstance(found, Granted)
    return found


async def test_a_free_lock_is_granted_until_its_time_runs_out(store: Store) -> None:
    found = await granted(store)
    assert near(found.until, await store.now() + HOUR)


async def test_a_held_lock_is_not_granted_to_another(store: Store, other: Store) -> None:
    first = await granted(store)
    assert await other.locks.acquire("l", "bob", HOUR) == Held(first.until)


async def test_an_owner_who_asks_again_after_a_lost_answer_gets_the_same_token(store: Store, other: Store) -> None:
    first = await granted(store, ttl=timedelta(minutes=1))
    again = await granted(other)
    assert again.token == first.token
    assert near(again.until, await store.now() + HOUR)
    assert await store.locks.release("l", first.token)
    assert (await granted(store)).token > first.token


async def test_an_owner_whose_lock_has_expired_gets_a_greater_token(store: Store) -> None:
    first = await granted(store, ttl=INSTANT)
    await passed(store, first.until)
    assert (await granted(store)).token > first.token


async def test_locks_of_other_names_are_other_locks(store: Store) -> None:
    await granted(store)
    await granted(store, "bob", name="m")


async def test_a_released_lock_is_free_and_its_token_grows(store: Store, other: Store) -> None:
    tokens: list[int] = []
    for one in (store, other, store):
        found = await granted(one)
        tokens.append(found.token)
        assert await one.locks.release("l", found.token)
    assert tokens == sorted(set(tokens))


async def test_an_expired_lock_is_granted_to_another_with_a_greater_token(store: Store, other: Store) -> None:
    first = await granted(store, ttl=INSTANT)
    await passed(store, first.until)
    second = await granted(other, "bob")
    assert second.token > first.token


async def test_an_older_token_can_do_nothing(store: Store) -> None:
    first = await granted(store, ttl=INSTANT)
    await passed(store, first.until)
    second = await granted(store, "bob")
    assert not await store.locks.extend("l", first.token, HOUR)
    assert not await store.locks.release("l", first.token)
    assert await store.locks.acquire("l", "cid", HOUR) == Held(second.until)


async def test_the_current_token_keeps_the_lock_longer(store: Store) -> None:
    first = await granted(store, ttl=timedelta(minutes=1))
    assert await store.locks.extend("l", first.token, HOUR)
    held = await store.locks.acquire("l", "bob", HOUR)
    assert isinstance(held, Held)
    assert near(held.until, await store.now() + HOUR)


async def test_an_expired_lock_is_not_extended(store: Store) -> None:
    first = await granted(store, ttl=INSTANT)
    await passed(store, first.until)
    assert not await store.locks.extend("l", first.token, HOUR)
    assert (await granted(store, "bob")).token > first.token


async def test_a_released_lock_is_not_extended_and_a_repeated_release_has_the_same_answer(store: Store) -> None:
    first = await granted(store)
    assert await store.locks.release("l", first.token)
    assert not await store.locks.extend("l", first.token, HOUR)
    assert await store.locks.release("l", first.token)
    assert (await granted(store, "bob")).token > first.token
    assert not await store.locks.release("l", first.token)


async def test_an_unknown_lock_is_neither_extended_nor_released(store: Store) -> None:
    assert not await store.locks.extend("l", 1, HOUR)
    assert not await store.locks.release("l", 1)
