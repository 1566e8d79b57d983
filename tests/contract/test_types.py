from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.contract.steps import near, passed
from tests.support.until import until
from windlass.core.declared import Declared
from windlass.core.values import encode
from windlass.stores.contract import About, Notice, Store, TypeInfo

MOMENT = timedelta(milliseconds=1)


def declared(type_: str = "send", queue: str = "mail", version: str | None = None) -> Declared:
    parts: dict[str, Any] = {"arguments": True, "defaults": {}, "payload": None, "result": None}
    return Declared(type_, encode({**parts, "options": {"tags": ["é"]}, "queue": queue}), version)


def versions(found: list[TypeInfo]) -> list[tuple[str, str, str | None]]:
    return [(one.declared.type, one.declared.queue, one.declared.version) for one in found]


async def moment(store: Store) -> None:
    """What is stamped next is later than all before."""
    await passed(store, await store.now())


async def test_what_a_worker_declares_is_read_back_as_it_is(store: Store, other: Store) -> None:
    assert await store.types.list() == []
    assert await store.types.get("send") == []
    await store.types.put([declared(version="1.4"), declared("resize", "images")])
    [resize, send] = await other.types.list()
    assert send.declared == declared(version="1.4")
    assert send.declared.options == {"tags": ["é"]}
    assert resize.declared == declared("resize", "images")
    assert list(await other.types.get("send")) == [send]
    assert send.first_seen == send.last_seen == send.announced_at
    assert near(send.first_seen, await store.now())


async def test_nothing_can_be_put(store: Store) -> None:
    await store.types.put([])
    assert await store.types.list() == []


async def test_two_versions_are_kept_and_the_one_a_worker_started_with_last_is_the_newest(store: Store) -> None:
    old, new = declared(version="1"), declared(queue="post", version="2")
    assert old.fingerprint != new.fingerprint
    await store.types.put([old])
    await moment(store)
    await store.types.put([new])
    assert [one.declared for one in await store.types.get("send")] == [new, old]
    assert [one.declared for one in await store.types.list()] == [new, old]
    await moment(store)
    await store.types.put([old], announce=False)  # a worker of the old version that is still there
    [first, second] = await store.types.get("send")
    assert (first.declared, second.declared) == (new, old)
    assert second.last_seen > first.last_seen
    assert second.last_seen > second.announced_at == second.first_seen
    await moment(store)
    await store.types.put([old])  # rolled back
    [first, second] = await store.types.get("send")
    assert (first.declared, second.declared) == (old, new)
    assert first.announced_at > first.first_seen


async def test_what_a_worker_refreshes_after_it_was_forgotten_is_there_again(store: Store) -> None:
    await store.types.put([declared()], announce=False)
    assert [one.declared for one in await store.types.get("send")] == [declared()]


async def test_the_version_of_the_application_is_that_given_last(store: Store) -> None:
    await store.types.put([declared(version="1.4")])
    await store.types.put([declared(version="1.5")])
    [found] = await store.types.get("send")
    assert found.declared.version == "1.5"


async def test_what_was_not_seen_for_long_is_forgotten_but_for_what_is_put(store: Store) -> None:
    await store.types.put([declared("gone"), declared("stays")])
    await moment(store)
    await store.types.put([declared("stays"), declared("new")], unseen=MOMENT)
    assert [one.declared.type for one in await store.types.list()] == ["new", "stays"]
    assert await store.types.get("gone") == []
    await moment(store)
    await store.types.put([declared("gone")])
    [back] = await store.types.get("gone")
    assert back.first_seen == back.last_seen


async def test_types_are_listed_by_name_whatever_is_in_it(store: Store) -> None:
    names = ["Über", "a:b", "a.b", "a", "b%", "b_"]
    await store.types.put([declared(name) for name in names])
    assert [one.declared.type for one in await store.types.list()] == sorted(names)
    for name in names:
        assert [one.declared.type for one in await store.types.get(name)] == [name]


async def test_many_workers_that_start_at_once_make_one_version(crowd: list[Store]) -> None:
    await asyncio.gather(*[one.types.put([declared(), declared("resize")]) for one in crowd])
    assert versions(list(await crowd[0].types.list())) == [("resize", "mail", None), ("send", "mail", None)]


async def test_a_new_version_is_told_and_one_that_is_refreshed_is_not(store: Store, other: Store) -> None:
    heard: list[Notice] = []
    async with other.notices.subscribe(heard.append):
        await until(lambda: other.notices.healthy, "push to work")
        await overheard(store, heard)  # that the store may have been away is behind us
        await store.types.put([declared()])
        await until(lambda: any(about(one) for one in heard), "the new type to be told")
        await moment(store)
        heard.clear()
        await store.types.put([declared()], announce=False)
        await store.types.put([declared()])
        assert not [one for one in await overheard(store, heard) if about(one)]


async def overheard(store: Store, heard: list[Notice]) -> list[Notice]:
    """Everything that was told until now."""
    await store.notices.publish(Notice(About.DUE))
    await until(lambda: any(one.about is About.DUE for one in heard), "what was told last")
    told = list(heard)
    heard.clear()
    return told


def about(notice: Notice) -> bool:
    return notice.about in (About.TYPES, About.ANYTHING)
