from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import timedelta

from tests.contract.steps import near, passed
from windlass.core.grants import Grants
from windlass.stores.contract import Key, KeyKind, NewKey, Scope, Store
from windlass.stores.contract import keys as contract

MOMENT = timedelta(milliseconds=1)
HOUR = timedelta(hours=1)


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


KEY = NewKey(
    id="k1",
    hash=hashed("one"),
    kind=KeyKind.KEY,
    owner="ann",
    name="nightly import, für später",
    scopes=frozenset({Scope.ENQUEUE, Scope.READ}),
)
SESSION = NewKey(
    id="s1",
    hash=hashed("two"),
    kind=KeyKind.SESSION,
    owner="bob",
    name="Firefox",
    scopes=frozenset({Scope.ADMIN}),
    lasts=HOUR,
)


async def found(store: Store, key: NewKey) -> Key:
    key_ = await store.keys.find(key.hash)
    assert key_ is not None
    return key_


async def test_a_key_is_found_by_the_hash_of_its_secret(store: Store, other: Store) -> None:
    made = await store.keys.put(KEY)
    assert await other.keys.find(KEY.hash) == made
    assert (made.id, made.kind, made.owner, made.name, made.scopes) == (
        *("k1", KeyKind.KEY, "ann", KEY.name),
        KEY.scopes,
    )
    assert near(made.created_at, await store.now())
    assert (made.expires_at, made.used_at, made.revoked_at) == (None, None, None)
    assert await other.keys.find(hashed("another")) is None
    assert await other.keys.find("k1") is None
    assert await other.keys.find("") is None


async def test_what_a_key_is_limited_to_is_kept(store: Store, other: Store) -> None:
    grants = Grants.made(["mail", "für.*"], ["mail.*", "*"], {"premium": True, "n": 2**53 + 1, "a": ["ö", None]})
    made = await store.keys.put(replace(KEY, grants=grants))
    assert made.grants == grants
    assert (await found(other, KEY)).grants == grants
    await store.keys.touch([KEY.id])
    await store.keys.revoke([KEY.id])
    [listed] = await other.keys.list()
    assert listed.grants == grants
    assert (await store.keys.put(SESSION)).grants == Grants()


async def test_a_key_without_scopes_lets_in_to_nothing(store: Store) -> None:
    await store.keys.put(replace(KEY, scopes=frozenset()))
    assert (await found(store, KEY)).scopes == frozenset()


async def test_a_session_expires_by_the_clock_of_the_store(store: Store) -> None:
    made = await store.keys.put(SESSION)
    assert made.expires_at == made.created_at + HOUR
    assert await store.keys.find(SESSION.hash) == made
    short = replace(SESSION, id="s2", hash=hashed("three"), lasts=MOMENT)
    over = await store.keys.put(short)
    await passed(store, over.expires_at)
    assert await store.keys.find(short.hash) is None
    assert {one.id for one in await store.keys.list()} == {"s1", "s2"}


async def test_a_key_put_again_is_the_same_key(store: Store) -> None:
    made = await store.keys.put(KEY)
    await passed(store, made.created_at)
    assert await store.keys.put(KEY) == made
    assert list(await store.keys.list()) == [made]
    await store.keys.revoke(["k1"])
    again = await store.keys.put(KEY)
    assert again.revoked_at is not None
    assert await store.keys.find(KEY.hash) is None


async def test_keys_are_listed_newest_first(store: Store) -> None:
    for id_ in ("c", "a", "b"):
        made = await store.keys.put(replace(KEY, id=id_, hash=hashed(id_)))
        await passed(store, made.created_at)
    assert [one.id for one in await store.keys.list()] == ["b", "a", "c"]


async def test_a_revoked_key_lets_nobody_in_and_stays_listed(store: Store, other: Store) -> None:
    await store.keys.put(KEY)
    assert list(await other.keys.revoke(["k1", "unheard"])) == ["k1"]
    assert await store.keys.find(KEY.hash) is None
    [first] = await store.keys.list()
    assert near(first.revoked_at, await store.now())
    await passed(store, first.revoked_at)
    assert list(await store.keys.revoke(["k1"])) == ["k1"]
    [again] = await store.keys.list()
    assert again.revoked_at == first.revoked_at
    assert list(await store.keys.revoke([])) == []


async def test_use_is_noted_at_most_once_a_minute(store: Store) -> None:
    await store.keys.put(KEY)
    await store.keys.touch([])
    await store.keys.touch(["unheard"])
    await store.keys.touch(["k1"])
    used = (await found(store, KEY)).used_at
    assert near(used, await store.now())
    await passed(store, used)
    await store.keys.touch(["k1", "k1"])
    assert (await found(store, KEY)).used_at == used
    assert timedelta(minutes=1) == contract.TOUCHED_EVERY


async def test_sessions_that_are_over_are_removed_when_another_key_is_put(store: Store) -> None:
    over = await store.keys.put(replace(SESSION, lasts=MOMENT))
    gone = replace(SESSION, id="s2", hash=hashed("left"))
    await store.keys.put(gone)
    await store.keys.revoke(["s2"])
    lives = replace(SESSION, id="s3", hash=hashed("lives"))
    await store.keys.put(lives)
    expired = replace(KEY, id="k2", hash=hashed("expired"), lasts=MOMENT)
    await store.keys.put(expired)
    await passed(store, over.expires_at)
    await store.keys.put(KEY)
    assert {one.id for one in await store.keys.list()} == {"s3", "k1", "k2"}, "keys stay listed, expired or not"
    assert await store.keys.find(lives.hash) is not None
    assert await store.keys.find(gone.hash) is None


async def test_of_a_secret_nothing_but_its_hash_can_be_read(store: Store) -> None:
    await store.keys.put(KEY)
    assert not [one for one in map(repr, await store.keys.list()) if KEY.hash in one]


async def test_many_revoke_and_use_one_key_at_once(crowd: list[Store]) -> None:
    await crowd[0].keys.put(KEY)
    calls = [one.keys.touch(["k1"]) for one in crowd] + [one.keys.revoke(["k1"]) for one in crowd]
    await asyncio.gather(*calls)
    [left] = await crowd[0].keys.list()
    assert left.revoked_at is not None
    assert await crowd[1].keys.find(KEY.hash) is None
