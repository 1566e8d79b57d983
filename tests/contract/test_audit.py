from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.contract.steps import near, passed
from tests.support.drafts import new_id
from windlass.core.errors import SettingsError
from windlass.stores.contract import AuditEntry, AuditFilter, Store

MOMENT = timedelta(milliseconds=1)
ALL = AuditFilter()


def entry(actor: str = "ann", action: str = "queue.pause", object_: str = "queue:mail") -> AuditEntry:
    return AuditEntry(
        id=new_id(),
        actor=actor,
        action=action,
        object=object_,
        origin="10.0.0.7",
        details_json='{"reason":"größer","$n":1}',
    )


async def ids(store: Store, filter_: AuditFilter = ALL, limit: int = 100) -> list[str]:
    """All that match, read page by page."""
    read: list[str] = []
    after: str | None = None
    while True:
        page = await store.audit.list(filter_, limit, after)
        assert len(page.entries) <= limit
        read += [one.id for one in page.entries]
        after = page.next
        if after is None:
            return read


async def added(store: Store, *entries: AuditEntry) -> datetime:
    """Append these; what is appended next is later than they are."""
    await store.audit.append(entries)
    [last] = (await store.audit.list(ALL, 1)).entries
    assert last.at is not None
    await passed(store, last.at)
    return last.at


async def test_an_entry_is_read_back_with_the_time_of_the_store(store: Store, other: Store) -> None:
    assert (await store.audit.list(ALL, 10)).entries == ()
    one = entry()
    bare = AuditEntry(id=new_id(), actor="system", action="login", object="session:1")
    await store.audit.append([one, bare])
    page = await other.audit.list(ALL, 10)
    assert page.next is None
    read = {found.id: found for found in page.entries}
    assert near(read[one.id].at, await store.now())
    assert {id_: replace(found, at=None) for id_, found in read.items()} == {one.id: one, bare.id: bare}


async def test_nothing_can_be_appended(store: Store) -> None:
    await store.audit.append([])
    assert await ids(store) == []


async def test_an_append_tried_again_is_the_same_entry(store: Store) -> None:
    one = entry()
    await added(store, one)
    [first] = (await store.audit.list(ALL, 10)).entries
    await store.audit.append([replace(one, actor="eve"), entry()])
    last = (await store.audit.list(ALL, 10)).entries[-1]
    assert last == first
    assert len(await ids(store)) == 2


async def test_entries_are_listed_newest_first_in_pages_of_any_size(store: Store) -> None:
    batches = [[entry() for _ in range(5)] for _ in range(3)]
    for batch in batches:
        await added(store, *batch)
    expected = [one.id for batch in reversed(batches) for one in sorted(batch, key=lambda one: one.id, reverse=True)]
    for size in (1, 4, 5, 15, 100):
        assert await ids(store, limit=size) == expected
    # What is added meanwhile is on no page that comes after.
    page = await store.audit.list(ALL, 4)
    await store.audit.append([entry()])
    rest = await store.audit.list(ALL, 100, page.next)
    assert [one.id for one in (*page.entries, *rest.entries)] == expected


async def test_entries_are_found_by_actor_action_object_and_time(store: Store) -> None:
    first, second = entry("ann", "queue.pause", "queue:mail"), entry("bob", "queue.pause", "queue:post")
    third, fourth = entry("ann", "job.cancel", "job:1"), entry("ann", "queue.pause", "queue:post")
    times = [await added(store, one) for one in (first, second, third, fourth)]
    for filter_, expected in (
        (AuditFilter(actor="ann"), [fourth, third, first]),
        (AuditFilter(action="queue.pause"), [fourth, second, first]),
        (AuditFilter(object="queue:post"), [fourth, second]),
        (AuditFilter(actor="ann", object="queue:post"), [fourth]),
        (AuditFilter(actor="bob", action="job.cancel"), []),
        (AuditFilter(since=times[1]), [fourth, third, second]),
        (AuditFilter(until=times[1]), [first]),
        (AuditFilter(since=times[1], until=times[3], action="queue.pause"), [second]),
        (AuditFilter(actor="an"), []),
        (AuditFilter(actor="ANN"), []),
    ):
        for size in (1, 100):
            assert await ids(store, filter_, size) == [one.id for one in expected], filter_


async def test_many_that_do_not_match_are_passed_over(store: Store) -> None:
    one = entry("ann", "job.cancel")
    await added(store, one)
    await store.audit.append([entry("ann") for _ in range(1200)])
    assert await ids(store, AuditFilter(actor="ann", action="job.cancel"), 10) == [one.id]


async def test_what_is_older_than_it_is_kept_is_removed_with_the_next_append(store: Store) -> None:
    for _ in range(2):
        await added(store, entry(), entry("bob"))
    last = entry()
    await store.audit.append([last], keep=MOMENT)
    assert await ids(store) == [last.id]
    assert await ids(store, AuditFilter(actor="bob")) == []
    assert await ids(store, AuditFilter(actor="ann")) == [last.id]


async def test_a_place_to_go_on_from_that_nobody_gave_is_refused(store: Store) -> None:
    for after in ("nonsense", "1", "x.y", "99999999999999999999.0", ""):
        with pytest.raises(SettingsError):
            await store.audit.list(ALL, 10, after)


async def test_many_append_at_once(crowd: list[Store]) -> None:
    batches = [[entry() for _ in range(20)] for _ in crowd]
    await asyncio.gather(*[one.audit.append(batch) for one, batch in zip(crowd, batches, strict=True)])
    assert sorted(await ids(crowd[0], limit=7)) == sorted(one.id for batch in batches for one in batch)
