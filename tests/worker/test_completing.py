"""Handlers that end their job inside their own transaction, on a file."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.apps import until_status, working
from tests.support.until import until
from windlass import Ctx, LeaseLost, Retry, Status, TransactionRefused, Windlass
from windlass.core.history import Happened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE orders (n INTEGER)")
    return path


def orders(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as db:
        return [n for (n,) in db.execute("SELECT n FROM orders ORDER BY n")]


async def test_effect_and_end_commit_together(app: Windlass, path: Path) -> None:
    @app.job()
    async def work(ctx: Ctx, n: int) -> str:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("INSERT INTO orders VALUES (?)", (n,))
            await ctx.complete_in(db, f"order {n}")
        return "this counts no more"

    @app.job()
    def work_in_thread(ctx: Ctx, n: int) -> str:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("INSERT INTO orders VALUES (?)", (n,))
            ctx.complete_in_now(db, f"order {n}")
        return "nor does this"

    async with working(app):
        for n, job in enumerate((work, work_in_thread), 1):
            handle = await job.enqueue(n)
            done = await until_status(handle, Status.SUCCEEDED)
            assert done.result == f"order {n}"
            told = [entry.happened for entry in await app.store.views.history(handle.id)]
            assert told == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    assert orders(path) == [1, 2]


async def test_a_transaction_that_is_rolled_back_takes_the_end_with_it(app: Windlass, path: Path) -> None:
    @app.job(retry=Retry(2, base=0.01))
    async def work(ctx: Ctx, n: int) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("INSERT INTO orders VALUES (?)", (n * 10 + ctx.attempt,))
            await ctx.complete_in(db)
            if ctx.attempt == 1:
                raise ValueError("after all")

    async with working(app):
        handle = await work.enqueue(1)
        done = await until_status(handle, Status.SUCCEEDED)
        assert done.attempts == 2
    assert orders(path) == [12]


async def test_a_handler_that_forgets_to_commit_has_not_succeeded(app: Windlass, path: Path) -> None:
    @app.job(retry=1)
    async def work(ctx: Ctx) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO orders VALUES (1)")
            await ctx.complete_in(db)

    async with working(app):
        handle = await work.enqueue()
        done = await until_status(handle, Status.FAILED)
        assert done.error is not None
        assert "complete_in" in done.error.message
    assert orders(path) == []


async def test_a_worker_that_lost_its_lease_is_told_inside_the_transaction(app: Windlass, path: Path) -> None:
    lost: list[Exception] = []
    taken, go_on = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(ctx: Ctx) -> None:
        if ctx.token > 1:
            return
        taken.set()
        await go_on.wait()
        try:
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("INSERT INTO orders VALUES (1)")
                await ctx.complete_in(db)
        except LeaseLost as error:
            lost.append(error)
            raise

    async with working(app):
        handle = await work.enqueue()
        await taken.wait()
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE windlass_jobs SET lease_token = 7")
        go_on.set()
        await until(lambda: lost, "the lease to be lost")
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE windlass_jobs SET lease_expires_at = 0")
        await until_status(handle, Status.SUCCEEDED)
    assert orders(path) == []


async def test_without_a_worker_there_is_nothing_to_complete(app: Windlass) -> None:
    @app.job()
    async def work(ctx: Ctx) -> None:
        await ctx.complete_in(object())

    with pytest.raises(TransactionRefused):
        await work.call()


async def test_what_is_no_transaction_is_refused(app: Windlass) -> None:
    @app.job(retry=1)
    async def work(ctx: Ctx) -> None:
        await ctx.complete_in(object())

    async with working(app):
        handle = await work.enqueue()
        done = await until_status(handle, Status.FAILED)
        assert done.error is not None
        assert "TransactionRefused" in done.error.type
