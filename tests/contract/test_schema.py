from __future__ import annotations

import asyncio

import pytest

from tests.contract.places import Place
from tests.contract.steps import put, start, told
from tests.control.conftest import address
from windlass.core.errors import SchemaMismatch
from windlass.core.history import Happened
from windlass.stores.addresses import store_at
from windlass.stores.contract import Filter, Store

pytestmark = pytest.mark.new_place


async def test_opening_installs_the_schema(store: Store) -> None:
    assert await store.schema.version() >= 1
    assert await store.schema.verify() == []


async def test_migrating_again_does_nothing(store: Store, other: Store) -> None:
    version = await store.schema.version()
    [id_] = await put(store)
    assert await store.schema.migrate() == []
    assert await other.schema.migrate() == []
    assert await store.schema.version() == version
    assert await told(store, id_) == [Happened.ENQUEUED]


async def test_many_open_an_empty_place_at_once(place: Place) -> None:
    stores = [place.store() for _ in range(6)]
    await asyncio.gather(*[store.open() for store in stores])
    assert {await store.schema.version() for store in stores} == {await stores[0].schema.version()}
    assert await stores[0].schema.verify() == []
    job = await start(stores[1])
    assert await told(stores[2], job.id) == [Happened.ENQUEUED, Happened.CLAIMED]
    for store in stores:
        await store.close()


async def test_what_is_stored_is_there_for_the_next_process(place: Place) -> None:
    first = place.store()
    await first.open()
    [id_] = await put(first)
    await first.close()
    second = place.store()
    await second.open()
    assert await told(second, id_) == [Happened.ENQUEUED]
    await second.close()


async def test_a_store_may_be_opened_again(place: Place) -> None:
    store = place.store()
    for expected in ([], [Happened.ENQUEUED]):
        await store.open()
        found = [await told(store, job.id) for job in (await store.views.find(Filter(), 5)).jobs]
        assert [one for history in found for one in history] == expected
        if not expected:
            await put(store)
        await store.close()


async def test_closing_more_than_once_is_harmless(place: Place) -> None:
    store = place.store()
    await store.close()
    await store.open()
    await store.close()
    await store.close()
    await store.open()
    [id_] = await put(store)
    assert await told(store, id_) == [Happened.ENQUEUED]
    await store.close()


async def test_a_newer_schema_is_refused_until_it_is_known(store: Store, place: Place) -> None:
    known = await store.schema.version()
    await place.pretend_version(known + 1)
    late = store.sibling()
    with pytest.raises(SchemaMismatch):
        await late.open()
    with pytest.raises(SchemaMismatch):
        await store.schema.migrate()
    assert await store.schema.version() == known + 1
    await place.pretend_version(known)
    await late.open()
    assert await late.schema.verify() == []
    await late.close()


async def test_what_is_missing_from_the_schema_is_named(store: Store, place: Place) -> None:
    await place.damage()
    differences = await store.schema.verify()
    assert len(differences) == 1
    assert differences[0].strip()


async def test_the_migrations_can_be_read(store: Store) -> None:
    assert store.schema.statements().strip()


async def test_a_store_says_what_it_is(store: Store) -> None:
    assert store.capabilities.store
    assert store.capabilities.durability
    assert store.address
    assert (await store.health())["version"]
    quickly = await store.health(thorough=False)
    assert quickly["version"]
    assert quickly.get("integrity") is None


async def test_removing_takes_away_everything_but_what_is_not_ours(place: Place, store: Store) -> None:
    [id_] = await put(store)
    await place.plant(id_)
    await store.schema.remove()
    assert await store.schema.version() == 0
    assert await place.planted() == [id_]
    await store.schema.remove()
    fresh = store.sibling()
    await fresh.open()
    assert await fresh.schema.verify() == []
    assert (await fresh.views.find(Filter(), 10)).jobs == ()
    await put(fresh)
    await fresh.close()


@pytest.mark.parametrize("namespace", ["shop", "windlass_shop", "windlass_jobs"])
async def test_namespaces_are_apart_whatever_they_begin_with(place: Place, namespace: str) -> None:
    url, _ = address(place)
    store, beside = place.store(), store_at(url, namespace=namespace)
    await beside.open()  # first, so that whatever is made beside it must not be taken for its own, nor the other way
    await store.open()
    [mine] = await put(store)
    [its] = await put(beside)
    assert await beside.schema.verify() == []
    assert await store.schema.verify() == []
    assert [job.id for job in (await store.views.find(Filter(), 10)).jobs] == [mine]
    assert [job.id for job in (await beside.views.find(Filter(), 10)).jobs] == [its]
    await beside.schema.remove()
    await beside.close()
    assert await store.schema.verify() == []
    assert await told(store, mine) == [Happened.ENQUEUED]
    await store.close()
