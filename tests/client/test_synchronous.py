"""Code without an event loop: what runs on its own thread, what runs behind the door, and what is refused."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.client.test_enqueue import define
from tests.support.apps import app_at, working
from tests.support.until import until_sync
from windlass import SettingsError, TransactionRefused, Windlass
from windlass.client.calls import JobFunction
from windlass.client.flows import Bound


@pytest.fixture
def app(path: Path) -> Iterator[Windlass]:
    app = app_at(path)
    yield app
    app.close()


def count(app: Windlass) -> int:
    return app.run_sync(app.jobs.count()).n


def test_results_and_jobs_are_there_without_a_loop(app: Windlass) -> None:
    send = define(app)
    handle = send.enqueue_sync(1)

    async def drain() -> None:
        async with app, working(app, drain=True) as worker:
            await worker.wait()

    asyncio.run(drain())
    assert app.run_sync(handle.result(10)) == "sent 1"
    assert app.run_sync(handle.job()).status == "succeeded"
    with pytest.raises(TimeoutError):
        app.run_sync(send.enqueue_sync(2).wait(0.1))


def test_many_are_made_where_the_caller_is(app: Windlass) -> None:
    send = define(app)
    threads: set[threading.Thread] = set()

    def made() -> Iterator[Bound[str]]:
        for n in range(2_500):
            threads.add(threading.current_thread())
            yield send.bind(n)

    assert len({one.id for one in app.enqueue_many_sync(made())}) == 2_500
    assert threads == {threading.current_thread()}
    assert count(app) == 2_500
    assert app.enqueue_many_sync([]) == []


def enqueue_all(app: Windlass, send: JobFunction[[int], str], tx: sqlite3.Connection | None) -> list[str]:
    """Six jobs, one in each way but the plain one."""
    flow = send.bind(2).then(send.bind(3)).enqueue_sync(tx)
    return [
        send.bind(1).enqueue_sync(tx).id,
        *(one.id for one in flow.jobs),
        *(one.id for one in app.group([send.bind(4), send.bind(5)]).enqueue_sync(tx)),
        *(one.id for one in app.enqueue_many_sync([send.bind(6)], tx=tx)),
    ]


@pytest.mark.parametrize("ambient", [False, True])
def test_all_of_it_joins_a_transaction_on_its_own_thread(app: Windlass, path: Path, ambient: bool) -> None:
    send = define(app)
    assert count(app) == 0
    app.close()
    before = set(threading.enumerate())
    ids: list[str] = []
    with closing(sqlite3.connect(path)) as tx:
        for end in (tx.rollback, tx.commit):
            if ambient:
                with app.within(tx):
                    ids = enqueue_all(app, send, None)
            else:
                ids = enqueue_all(app, send, tx)
            assert len(set(ids)) == 6
            end()
    new = {thread.name for thread in set(threading.enumerate()) - before}
    assert "windlass-blocking" not in new, "no thread was needed"
    assert {job.id for job in app.run_sync(app.jobs.find()).jobs} == set(ids)


def test_a_transaction_is_not_taken_to_another_thread(app: Windlass, path: Path) -> None:
    send = define(app)
    assert count(app) == 0
    with closing(sqlite3.connect(path)) as tx:
        with pytest.raises(TransactionRefused, match="enqueue_sync"):
            app.run_sync(send.using(tx=tx).enqueue(1))
        with app.within(tx), pytest.raises(TransactionRefused, match="enqueue_sync"):
            app.run_sync(app.enqueue_many([send.bind(1)]))
        tx.commit()
    assert count(app) == 0


async def test_inside_a_loop_one_is_told_to_await(app: Windlass) -> None:
    send = define(app)
    async with app:
        handle = await send.enqueue(1)
        with pytest.raises(SettingsError, match="await the call instead"):
            app.run_sync(handle.result())


def test_who_is_interrupted_leaves_nothing_running(app: Windlass) -> None:
    ended = threading.Event()
    waiting = threading.get_ident()

    async def endless() -> None:
        try:
            await asyncio.sleep(0.1)  # until the caller waits
            signal.pthread_kill(waiting, signal.SIGUSR1)
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            app.run_sync(endless())
    finally:
        signal.signal(signal.SIGUSR1, before)
    until_sync(ended.is_set, "the call to be cancelled")
