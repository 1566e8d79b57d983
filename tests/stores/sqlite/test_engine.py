"""Connections, the writer's transaction, waiting for locks, and errors in windlass's words."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from tests.stores.sqlite.conftest import engine_of
from tests.support.apps import nothing_left
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass.core.errors import SchemaMismatch, SettingsError, StoreError, StoreUnavailable
from windlass.core.redaction import redact_url
from windlass.stores.addresses import store_at
from windlass.stores.contract import Created, Filter
from windlass.stores.sqlite.engine import Clock, Engine, Place, file_system, refuse_network
from windlass.stores.sqlite.schema import check_sqlite
from windlass.stores.sqlite.store import SqliteStore

WRITER = """
import asyncio, sys
from tests.support.drafts import draft
from windlass.stores.sqlite.store import SqliteStore
async def main(path, n):
    store = SqliteStore(path, synchronous="OFF")
    await store.open()
    for _ in range(int(n)):
        await store.jobs.insert([draft()])
    await store.close()
asyncio.run(main(*sys.argv[1:]))
"""


def python(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": f"{root}:{root / 'src'}"}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=env)


@pytest.mark.parametrize(("asked", "level"), [("FULL", 2), ("NORMAL", 1), ("OFF", 0)])
def test_every_connection_has_windlasss_settings(path: Path, asked: Any, level: int) -> None:
    engine = Engine(Place(path=str(path), synchronous=asked))
    for _ in range(2):
        with closing(engine.connect()) as db:
            found = {
                name: db.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "temp_store", "journal_size_limit", "mmap_size")
            }
        assert found == {
            "journal_mode": "wal",
            "synchronous": level,
            "temp_store": 2,
            "journal_size_limit": 67_108_864,
            "mmap_size": 0,
        }


def test_a_write_is_synchronous_unless_asked_otherwise(path: Path) -> None:
    assert Place(path=str(path)).synchronous == "FULL"
    for url, words in ((f"sqlite:///{path}", "=FULL"), (f"sqlite:///{path}?synchronous=normal", "=NORMAL")):
        assert words in store_at(url).capabilities.durability


async def test_processes_that_write_at_once_wait_for_each_other(file: SqliteStore, path: Path) -> None:
    others = [python(WRITER, path, 150) for _ in range(2)]
    written = 0
    while any(other.poll() is None for other in others):
        await file.jobs.insert([draft()])
        written += 1
    assert [other.wait() for other in others] == [0, 0]
    assert (await file.views.count(Filter())).n == 300 + written


async def test_a_lock_that_is_held_too_long_is_a_typed_error_and_passes(path: Path) -> None:
    async with nothing_left():
        store = SqliteStore(path, timeout=0.1)
        await store.open()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            with pytest.raises(StoreUnavailable, match="locked") as caught:
                await store.jobs.insert([draft()])
            assert 0.1 <= time.monotonic() - began < 2
            assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
            assert (await store.views.count(Filter())).n == 0, "readers are not held up"
            other.execute("ROLLBACK")
        assert await store.jobs.insert([one := draft()]) == [Created(one.id)]
        await store.close()


async def test_one_failing_operation_does_not_take_its_neighbours_down(file: SqliteStore, path: Path) -> None:
    def broken(db: sqlite3.Connection, now: int) -> None:
        db.execute("INSERT INTO windlass_queues (name) VALUES ('from the broken one')")
        raise ValueError("mine alone")

    def refused(db: sqlite3.Connection, now: int) -> None:
        db.execute("INSERT INTO nowhere VALUES (1)")

    engine = engine_of(file)
    good = [draft() for _ in range(5)]
    answers = await asyncio.gather(
        *(file.jobs.insert([one]) for one in good[:3]),
        engine.write(broken),
        engine.write(refused),
        *(file.jobs.insert([one]) for one in good[3:]),
        return_exceptions=True,
    )
    assert [type(one) for one in answers] == [list, list, list, ValueError, SchemaMismatch, list, list]
    assert (await file.views.count(Filter())).n == 5
    assert {one.name for one in await file.queues.list()} == {"default"}, "nothing of the broken one is left"


@pytest.mark.parametrize("error", [ValueError, OverflowError, KeyError, sqlite3.IntegrityError])
async def test_the_writer_survives_whatever_an_operation_raises_alone(
    file: SqliteStore, error: type[Exception]
) -> None:
    def broken(db: sqlite3.Connection, now: int) -> None:
        raise error("alone")

    with pytest.raises((error, StoreError)):
        await asyncio.wait_for(engine_of(file).write(broken), 5)
    with pytest.raises((error, StoreError)):
        await asyncio.wait_for(engine_of(file).read(broken), 5)
    assert len(await asyncio.wait_for(file.jobs.insert([draft()]), 5)) == 1


async def test_a_full_disk_is_a_typed_error_that_loses_nothing_and_passes(file: SqliteStore) -> None:
    kept = [draft() for _ in range(10)]
    await file.jobs.insert(kept)
    claimed = await file.jobs.claim(want(n=1))

    def limit(db: sqlite3.Connection, pages: int) -> None:
        db.execute(f"PRAGMA max_page_count = {pages}")

    await engine_of(file).write(lambda db, _: limit(db, db.execute("PRAGMA page_count").fetchone()[0]))
    big = [draft(payload='{"x":"' + "x" * 100_000 + '"}') for _ in range(5)]
    with pytest.raises(StoreUnavailable, match="full"):
        await file.jobs.insert(big)
    assert (await file.views.count(Filter())).n == 10
    assert (await file.views.get([claimed[0].id]))[0] == claimed[0]
    await engine_of(file).write(lambda db, _: limit(db, 1_000_000))
    assert await file.jobs.insert(big) == [Created(one.id) for one in big]
    [check] = await engine_of(file).read(lambda db, _: db.execute("PRAGMA integrity_check").fetchone())
    assert check == "ok"


async def _refusal(path: object, **options: Any) -> StoreError:
    async with nothing_left():
        store = SqliteStore(str(path), timeout=0.1, **options)
        with pytest.raises(StoreError):
            await asyncio.wait_for(store.open(), 5)
        # A refusal leaves nothing behind that would make the next try hang.
        with pytest.raises(StoreError) as caught:
            await asyncio.wait_for(store.open(), 5)
        with pytest.raises(StoreError, match="not open"):
            await store.jobs.insert([draft()])
    return caught.value


async def test_a_missing_folder_is_told_of(tmp_path: Path) -> None:
    assert "folder exists" in str(await _refusal(tmp_path / "nowhere" / "jobs.db"))


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    assert isinstance(await _refusal(tmp_path), StoreUnavailable)


async def test_a_file_that_is_no_database_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, " * 100)
    assert "not an SQLite database" in str(await _refusal(tmp_path / "notes.txt"))
    assert (tmp_path / "notes.txt").read_text() == "not a database, " * 100


READ_ONLY = """
import asyncio, os, sys
from windlass.core.errors import StoreUnavailable
from windlass.stores.sqlite.store import SqliteStore
async def main():
    os.setgid(65534); os.setuid(65534)
    try:
        store = SqliteStore(sys.argv[1], timeout=0.1)
        await store.open()
    except StoreUnavailable as error:
        sys.exit(7 if "permissions" in str(error) or "opened" in str(error) else 1)
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not")
@pytest.mark.parametrize("mode", [0o444, 0o000])
async def test_a_file_that_may_not_be_read_or_written_is_told_of(mode: int) -> None:
    # Not under tmp_path, which others may not even look into.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "jobs.db"
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE t (x)")
        path.chmod(mode)
        done = python(READ_ONLY, path)
        assert await asyncio.to_thread(done.wait, 20) == 7


async def test_a_newer_schema_is_refused_with_what_to_do(file: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE windlass_meta SET value = 99 WHERE key = 'schema'")
    error = await _refusal(path)
    assert isinstance(error, SchemaMismatch)
    assert "99" in str(error)
    assert "upgrade" in str(error)


async def test_verify_names_what_was_taken_away_or_changed(file: SqliteStore, path: Path) -> None:
    assert await file.schema.verify() == []
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP INDEX windlass_jobs_claim")
        db.execute("ALTER TABLE windlass_queues ADD COLUMN colour TEXT")
    assert await file.schema.verify() == [
        "index windlass_jobs_claim is missing",
        "table windlass_queues differs from what windlass made",
    ]


async def test_an_sqlite_with_a_known_fault_is_warned_of(file: SqliteStore) -> None:
    warned = check_sqlite()
    assert file.capabilities.warnings == warned
    assert bool(warned) == (sqlite3.sqlite_version_info < (3, 51, 3))
    for text in warned:
        assert sqlite3.sqlite_version in text
        assert "upgrade SQLite" in text


async def test_namespaces_in_one_file_do_not_see_each_other(path: Path) -> None:
    async with nothing_left():
        ours, theirs = SqliteStore(path, namespace="shop"), SqliteStore(path, namespace="shop_b")
        for store in (ours, theirs):
            await store.open()
        await ours.jobs.insert([draft(queue="a"), draft(queue="a")])
        await theirs.jobs.insert([draft(queue="b")])
        assert len(await theirs.jobs.claim(want())) == 1
        assert (await ours.views.count(Filter())).n == 2
        assert [one.name for one in await ours.queues.list()] == ["a"]
        assert await ours.schema.verify() == []
        for store in (ours, theirs):
            await store.close()


async def test_a_store_in_memory_is_shared_with_its_siblings_and_gone_at_the_end() -> None:
    async with nothing_left():
        store = SqliteStore(":memory:")
        await store.open()
        sibling = store.sibling()
        await sibling.open()
        await store.jobs.insert([one := draft()])
        assert (await sibling.views.get([one.id]))[0] is not None
        await store.close()
        assert (await sibling.views.get([one.id]))[0] is not None, "until the last has closed it"
        await sibling.close()
        await store.open()
        assert (await store.views.get([one.id]))[0] is None
        await store.close()


async def test_a_commit_of_another_process_wakes_listeners(file: SqliteStore, path: Path) -> None:
    woken: list[float] = []
    async with file.notices.subscribe(lambda _: woken.append(time.monotonic())):
        await until(lambda: file.notices.healthy and woken, "the watcher to have looked")
        woken.clear()
        other = python(WRITER, path, 1)
        await until(lambda: woken, "a wake-up", within=15)
        assert await asyncio.to_thread(other.wait, 15) == 0


def test_the_clock_never_goes_back() -> None:
    wall, monotonic = [1000.0], [5.0]
    clock = Clock(lambda: wall[0], lambda: monotonic[0])
    assert clock() == 1_000_000
    wall[0], monotonic[0] = 400.0, 6.0  # set back by ten minutes, a second later
    assert clock() == 1_001_000
    wall[0], monotonic[0] = 2000.0, 7.0  # set forward
    assert clock() == 2_000_000
    wall[0], monotonic[0] = 2000.5, 7.5
    assert clock() == 2_000_500


def test_the_clock_is_not_fast_for_ever_after_a_pause_between_its_two_readings() -> None:
    host = [1000.0]
    pauses = [0.0, 0.0, 5.0, 0.0, 0.0, 0.0]  # after each reading; the first two are of its making

    def read() -> float:
        shown = host[0]
        host[0] += pauses.pop(0)
        return shown

    clock = Clock(read, read)
    clock()
    assert clock() == 1_005_000, "as the host's, and as any other process's"


MOUNTS = r"""
/dev/sda1 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /mnt/share nfs4 rw 0 0
/dev/sdb1 /mnt/share/local ext4 rw 0 0
//host/x /mnt/with\040space cifs rw 0 0
tmpfs /mnt/twice tmpfs rw 0 0
host:/y /mnt/twice fuse.sshfs rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/a/b", "nfs4"),
        ("/mnt/share/local/a", "ext4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/with space/a", "cifs"),
        ("/mnt/twice", "fuse.sshfs"),
    ],
)
def test_the_kind_of_file_system_is_that_of_the_deepest_mount(folder: str, kind: str) -> None:
    assert file_system(PurePosixPath(folder), MOUNTS) == kind


def test_local_disks_and_memory_are_not_refused(path: Path) -> None:
    refuse_network(Place(path=str(path)))
    refuse_network(Place(path=":memory:"))


@pytest.mark.parametrize(
    "wrong",
    [
        "sqlite://host/jobs.db",
        "sqlite:jobs.db",
        "sqlite:///jobs.db?colour=red",
        "sqlite:///jobs.db?synchronous=EXTRA",
        "sqlite:///jobs.db?timeout=-1",
        "sqlite:///jobs.db?timeout=nan",
        "mysql://user:secret@host/db",
        "http://[bad",
        "",
    ],
)
def test_an_address_that_makes_no_sense_is_refused_without_its_secrets(wrong: str) -> None:
    with pytest.raises(SettingsError) as caught:
        store_at(wrong)
    assert "secret" not in str(caught.value)


def test_addresses_are_read_as_they_are_written() -> None:
    assert store_at("sqlite:///jobs.db").address == "sqlite:///jobs.db"
    assert store_at("sqlite:////var/a%20b.db?timeout=3").address == "sqlite:////var/a b.db"
    assert store_at("sqlite://").address == "sqlite:///:memory:"
    assert redact_url("postgresql://u:p@ss@host/db") == "postgresql://host/db"
    assert redact_url("u:p@host") == "host"


async def test_what_takes_long_is_read_beside_the_others(file: SqliteStore) -> None:
    engine, go = engine_of(file), threading.Event()

    def slow(db: sqlite3.Connection, _: int) -> int:
        go.wait(20)
        return int(db.execute("SELECT 7").fetchone()[0])

    reading = asyncio.create_task(engine.read_apart(slow))
    assert await engine.read(lambda db, _: db.execute("SELECT 3").fetchone()[0]) == 3
    assert not reading.done()
    go.set()
    assert await reading == 7


async def test_what_is_given_up_does_not_go_on(file: SqliteStore) -> None:
    begun, ended = threading.Event(), threading.Event()
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    def forever(db: sqlite3.Connection, _: int) -> None:
        begun.set()
        try:
            db.execute(endless)
        finally:
            ended.set()

    reading = asyncio.create_task(engine_of(file).read_apart(forever))
    await until(begun.is_set, "the read to begin")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await until(ended.is_set, "it to end")
