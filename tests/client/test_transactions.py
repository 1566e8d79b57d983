"""Enqueueing inside the caller's own transaction on the same file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.client.test_enqueue import define
from tests.support.apps import Heard, app_at, working
from windlass import QueueFull, SchemaMismatch, TransactionRefused, Windlass

MODES = ["autocommit", "legacy", "immediate", "since 3.12"]


NEWER: dict[str, Any] = {"autocommit": False}  # since Python 3.12


def connect(path: Path, mode: str) -> sqlite3.Connection:
    if mode == "since 3.12":
        if not hasattr(sqlite3.Connection, "autocommit"):
            pytest.skip("autocommit= came with Python 3.12")
        newer: sqlite3.Connection = sqlite3.connect(path, **NEWER)
        return newer
    level: Any = {"autocommit": None, "legacy": "", "immediate": "IMMEDIATE"}[mode]
    connection = sqlite3.connect(path, isolation_level=level)
    if level is None:
        connection.execute("BEGIN")
    return connection


def end(connection: sqlite3.Connection, how: str) -> None:
    # conn.commit() works in every mode once a transaction is open.
    connection.commit() if how == "commit" else connection.rollback()


@pytest.fixture(params=MODES)
def conn(request: pytest.FixtureRequest, app: Windlass, path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as first, first:
        first.execute("CREATE TABLE orders (id INTEGER)")
    with closing(connect(path, request.param)) as connection:
        yield connection


def shout(raw: bytes) -> str:
    return raw.decode().upper()


async def count(app: Windlass) -> int:
    return (await app.jobs.count()).n


@pytest.mark.parametrize("how", ["commit", "rollback"])
async def test_a_job_comes_and_goes_with_the_callers_own_writes(
    app: Windlass, conn: sqlite3.Connection, how: str
) -> None:
    send = define(app)
    conn.execute("INSERT INTO orders VALUES (1)")
    handle = await send.using(tx=conn).enqueue(1)
    assert handle.created
    assert await count(app) == 0, "nobody else sees it yet"
    end(conn, how)
    expected = 1 if how == "commit" else 0
    assert await count(app) == expected
    assert conn.execute("SELECT count(*) FROM orders").fetchone() == (expected,)


@pytest.mark.parametrize("how", ["commit", "rollback"])
async def test_it_needs_no_write_of_the_callers_own_before(app: Windlass, conn: sqlite3.Connection, how: str) -> None:
    await define(app).using(tx=conn).enqueue(1)
    end(conn, how)
    assert await count(app) == (1 if how == "commit" else 0)


async def test_everything_below_within_joins(app: Windlass, conn: sqlite3.Connection) -> None:
    send = define(app)
    with app.within(conn):
        await send.enqueue(1)
        send.enqueue_sync(2)
        await app.enqueue("send", {"order_id": 3})
        app.enqueue_sync("send", {"order_id": 4})
        await app.enqueue_many(send.bind(n) for n in range(5, 1_205))
    assert await count(app) == 0
    end(conn, "rollback")
    await send.enqueue(9)
    assert await count(app) == 1, "outside it, nothing joins any more"


def test_synchronous_code_joins_on_its_own_thread(path: Path) -> None:
    before = set(threading.enumerate())
    app = app_at(path)
    send = define(app)
    send.enqueue_sync(0)
    app.close()
    for how in ("rollback", "commit"):
        with closing(sqlite3.connect(path)) as conn, app.within(conn):
            send.enqueue_sync(1)
            end(conn, how)
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("SELECT count(*) FROM windlass_jobs").fetchone() == (2,)
    left = set(threading.enumerate()) - before
    assert not [thread.name for thread in left if thread.name.startswith("windlass")], "no thread was needed"


async def test_a_duplicate_does_not_abort_the_transaction(app: Windlass, conn: sqlite3.Connection) -> None:
    send = define(app)
    first = await send.using(unique="k").enqueue(1)
    conn.execute("INSERT INTO orders VALUES (1)")
    second = await send.using(unique="k", tx=conn).enqueue(2)
    third = await send.using(tx=conn).enqueue(3)
    end(conn, "commit")
    assert (second.id, second.created, third.created) == (first.id, False, True)
    assert conn.execute("SELECT count(*) FROM orders").fetchone() == (1,)


async def test_a_connection_that_reads_rows_its_own_way_is_served_and_left_so(
    app: Windlass, conn: sqlite3.Connection
) -> None:
    send = define(app)
    await app.queues.limit_depth("mail", 2)
    await send.using(unique="k", idempotent=True).enqueue(1)

    def by_name(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
        return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}

    for rows, text in ((sqlite3.Row, bytes), (by_name, bytes), (None, shout)):
        conn.row_factory, conn.text_factory = rows, text
        twin = await send.using(unique="k", tx=conn).enqueue(2)
        same = await send.using(idempotent=True, tx=conn).enqueue(1)
        assert (twin.created, same.created, twin.id) == (False, False, same.id)
        assert (conn.row_factory, conn.text_factory) == (rows, text)
    await send.using(tx=conn).enqueue(3)
    with pytest.raises(QueueFull):
        await send.using(tx=conn).enqueue(4)
    end(conn, "commit")
    assert await count(app) == 2


async def test_a_committed_job_wakes_a_worker_and_an_uncommitted_one_does_not_run(
    app: Windlass, conn: sqlite3.Connection
) -> None:
    send, heard = define(app), Heard(app)
    async with working(app):
        handle = await send.using(tx=conn).enqueue(1)
        assert not [event for event in heard.events if type(event).__name__ == "JobStarted"]
        end(conn, "commit")
        assert await handle.result(10) == "sent 1"


@pytest.mark.parametrize("wrong", [object(), "a text", 3])
async def test_an_object_that_is_no_connection_is_refused(app: Windlass, wrong: object) -> None:
    send = define(app)
    with pytest.raises(TransactionRefused, match=r"sqlite3\.Connection"):
        await send.using(tx=wrong).enqueue(1)
    with pytest.raises(TransactionRefused):
        send.using(tx=wrong).enqueue_sync(1)


async def test_a_connection_to_another_database_is_refused(app: Windlass, tmp_path: Path) -> None:
    send = define(app)
    other = app_at(tmp_path / "other.db")
    async with other:
        ...
    for elsewhere in (tmp_path / "other.db", Path(":memory:")):
        with closing(sqlite3.connect(elsewhere)) as conn, pytest.raises(TransactionRefused, match="same file"):
            await send.using(tx=conn).enqueue(1)


async def test_a_closed_connection_is_refused(app: Windlass, path: Path) -> None:
    conn = sqlite3.connect(path)
    conn.close()
    with pytest.raises(TransactionRefused):
        await define(app).using(tx=conn).enqueue(1)


async def test_a_file_without_windlasss_tables_is_told_of_and_the_transaction_lives(tmp_path: Path) -> None:
    app = app_at(tmp_path / "fresh.db")
    with closing(sqlite3.connect(tmp_path / "fresh.db")) as conn:
        conn.execute("CREATE TABLE orders (id INTEGER)")
        with pytest.raises(SchemaMismatch, match="windlass migrate"):
            await define(app).using(tx=conn).enqueue(1)
        conn.execute("INSERT INTO orders VALUES (1)")
        conn.commit()
        assert conn.execute("SELECT count(*) FROM orders").fetchone() == (1,)


async def test_a_connection_that_commits_by_itself_enqueues_at_once(app: Windlass, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        await define(app).using(tx=conn).enqueue(1)
        assert not conn.in_transaction
        assert await count(app) == 1


async def test_a_transaction_that_has_read_nothing_waits_for_who_is_writing(app: Windlass, path: Path) -> None:
    send = define(app)
    rival = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with closing(rival), closing(sqlite3.connect(path, isolation_level=None)) as own:
        own.execute("BEGIN")
        rival.execute("BEGIN IMMEDIATE")
        rival.execute("CREATE TABLE orders (id INTEGER)")
        # What it has read by then would be out of date, and it could not write any more.
        threading.Timer(0.2, rival.execute, ["COMMIT"]).start()
        await send.using(tx=own).enqueue(1)
        own.execute("COMMIT")
    assert await count(app) == 1
