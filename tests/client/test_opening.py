"""Opening and closing: at first use, nested, again, in one loop after another, and when it fails."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.client.test_enqueue import define
from tests.support.apps import app_at, nothing_left, working
from windlass import StoreUnavailable, Windlass

_others: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def only_our_own_threads() -> None:
    """What an earlier test of this process left running is not for these tests to count."""
    _others.clear()
    _others.update(threading.enumerate())


def threads() -> list[str]:
    ours = set(threading.enumerate()) - _others
    return sorted(thread.name for thread in ours if thread.name.startswith("windlass"))


def test_making_an_application_opens_nothing(path: Path) -> None:
    define(app_at(path))
    assert threads() == []
    assert not path.exists()


async def test_the_store_opens_at_first_use_and_closes_once(path: Path) -> None:
    async with nothing_left():
        app = app_at(path)
        send = define(app)
        handles = await asyncio.gather(*(send.enqueue(n) for n in range(20)))
        assert len(handles) == 20
        assert threads() == ["windlass-sqlite-reader", "windlass-sqlite-writer"]
        async with app:
            ...
        assert threads() == []


async def test_uses_may_be_nested_and_the_last_closes(path: Path) -> None:
    async with nothing_left():
        app = app_at(path)
        send = define(app)
        async with app:
            async with app, working(app):
                assert await (await send.enqueue(1)).result(10) == "sent 1"
            await send.enqueue(2)
            assert threads()
        assert threads() == []


async def test_an_application_may_be_used_again_after_it_was_closed(path: Path) -> None:
    async with nothing_left():
        app = app_at(path)
        send = define(app)
        async with app:
            handle = await send.enqueue(1)
        async with app:
            assert (await handle.job()).payload == {"order_id": 1}
            await send.enqueue(2)


def test_one_loop_after_another_may_use_the_same_application(path: Path) -> None:
    app = app_at(path)
    send = define(app)

    async def some() -> int:
        await asyncio.gather(*(send.enqueue(n) for n in range(50)))
        return (await app.jobs.count()).n

    async def last() -> int:
        async with app:
            return await some()

    assert [asyncio.run(some()), asyncio.run(some()), asyncio.run(last())] == [50, 100, 150]
    assert threads() == []


def test_a_loop_that_ended_in_the_middle_of_an_enqueue_does_not_break_the_next(path: Path) -> None:
    app = app_at(path)
    send = define(app)

    async def cut() -> None:
        await send.enqueue(0)
        pending = [asyncio.ensure_future(send.enqueue(n)) for n in range(5)]
        await asyncio.sleep(0)
        assert not any(one.done() for one in pending)

    async def whole() -> None:
        async with app:
            assert (await send.enqueue(1)).created

    asyncio.run(cut())
    asyncio.run(whole())
    assert threads() == []


async def test_a_failed_opening_leaves_nothing_behind_and_may_be_tried_again(tmp_path: Path) -> None:
    async with nothing_left():
        app = app_at(tmp_path / "missing" / "jobs.db")
        send = define(app)
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="folder"):
                async with app:
                    ...
            with pytest.raises(StoreUnavailable):
                await send.enqueue(1)
            with pytest.raises(StoreUnavailable):
                async with app.worker():
                    ...
        assert threads() == []
        (tmp_path / "missing").mkdir()
        async with app:
            assert (await send.enqueue(1)).created


def test_a_failed_opening_is_told_to_synchronous_code_too(tmp_path: Path) -> None:
    app = app_at(tmp_path / "missing" / "jobs.db")
    send = define(app)
    with pytest.raises(StoreUnavailable):
        send.enqueue_sync(1)
    (tmp_path / "missing").mkdir()
    assert send.enqueue_sync(1).created
    app.close()
    assert threads() == []


async def test_an_application_in_memory_is_shared_by_its_parts() -> None:
    async with nothing_left():
        app = Windlass("sqlite://")
        send = define(app)
        async with app, working(app):
            assert await (await send.enqueue(1)).result(10) == "sent 1"
            handle = await asyncio.to_thread(send.enqueue_sync, 2)
            assert await handle.result(10) == "sent 2"
        app.close()
