"""The engine room of the SQLite store: connections, the one writer thread, the reader thread, busy retry, errors.

Every write goes through one thread that owns the write connection. What waits for it at the same moment shares one
transaction, and so one fsync; each caller is answered only after the commit.
"""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from queue import Empty, SimpleQueue
from typing import Any, Literal, TypeAlias, TypeVar

from windlass.core.errors import SchemaMismatch, StoreError, StoreUnavailable, ValueRefused
from windlass.stores.sqlite.news import CLOCK, FAR, NOTHING, News, Told, record

T = TypeVar("T")
U = TypeVar("U")
Operation: TypeAlias = Callable[[sqlite3.Connection, int], T]
Telling: TypeAlias = Callable[[T, int], News]
Synchronous: TypeAlias = Literal["FULL", "NORMAL", "OFF"]
MEMORY = ":memory:"
_LONG = 0.25  # seconds for which the file may be locked before those who wait for it count as held up
GRACE = 0.5
"""seconds that are given to those who could not extend their leases, before these are taken for lost"""
_PAUSES = 5
_MOST_SHARED = 256
_STEPS = 100_000  # of SQLite's machine, about a millisecond, after which a long read looks whether it was given up
_CLOCK_KEPT = 1000  # milliseconds after which the file's clock is written again, with whatever is written then
_MOST_ALLOWED = 60_000  # milliseconds for which those who were behind are allowed for
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "sshfs", "9p", "afs", "ceph", "glusterfs", "s3fs"})
_PREFIX = "windlass_"
_OCTAL = re.compile(r"\\([0-7]{3})")  # how a space in a mount's path is written


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the file is and how it is opened."""

    path: str
    namespace: str = "windlass"
    synchronous: Synchronous = "FULL"
    timeout: float = 10.0
    """seconds a write waits for other processes before StoreUnavailable"""

    @property
    def in_memory(self) -> bool:
        """Whether the jobs live and die with this process."""
        return self.path == MEMORY


class Clock:
    """The host's clock in milliseconds, held from going backwards while this process lives, and behind no other's."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._latest = (wall(), monotonic())
        self._read_wall, self._read_monotonic = wall, monotonic
        self._asked = threading.RLock()  # writer, reader and joiners ask at once: none may undo what one followed

    def __call__(self) -> int:
        with self._asked:
            return self._ask()

    def _ask(self) -> int:
        # When the wall clock is set back, time goes on from the latest it showed; leases must not live longer for it.
        # The wall is read first: held up between the two readings, this clock would else be fast by that ever after.
        shown, at = self._latest
        wall = self._read_wall()
        monotonic = self._read_monotonic()
        now = max(wall, shown + monotonic - at)
        self._latest = (now, monotonic)
        return int(now * 1000)

    def follow(self, seen: int) -> None:
        """Do not fall behind an instant that another process has seen, unless that is far from what this host shows."""
        with self._asked:
            if self._ask() < seen < int(self._read_wall() * 1000) + FAR:
                self._latest = (seen / 1000, self._read_monotonic())

    @property
    def ahead(self) -> int:
        """Milliseconds by which the host's is behind: it was set back, or somebody was followed who had seen more."""
        return self() - int(self._read_wall() * 1000)


@lru_cache(maxsize=512)
def named(sql: str, namespace: str) -> str:
    """The one place where a name enters SQL: tables are written `windlass_…` and carry the namespace instead.

    The namespace has been checked to be a plain identifier by `settings`.
    """
    return sql if namespace == "windlass" else sql.replace(_PREFIX, f"{namespace}_")


@dataclass(slots=True)
class _Order:
    run: Operation[Any]
    answer: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    tell: Telling[Any] | None = None
    then: Callable[[Any], Any] | None = None
    first: bool = False
    result: Any = None
    error: BaseException | None = None

    def deliver(self) -> None:
        if self.answer.cancelled():
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.result)


class Engine:
    """One opened file. Safe to call from any event loop; its last user closes it."""

    def __init__(self, place: Place, clock: Callable[[], int] | None = None) -> None:
        self.place = place
        self.clock = clock or Clock()
        self.on_news: Callable[[Told], None] = _nothing
        self.held_up_at = float("-inf")
        """when, by the monotonic clock, this writer last came out of a wait or a transaction that was long"""
        self._clock_written = 0
        self._allowed = (0, 0)  # how far others may be behind this clock, and until when that is allowed for
        self._users = 0
        self._counting = threading.Lock()  # a store in memory is opened and closed from several threads
        self._writes: SimpleQueue[_Order | None] = SimpleQueue()
        self._reads: SimpleQueue[_Order | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def sql(self, text: str) -> str:
        """The statement with this store's own table names."""
        return named(text, self.place.namespace)

    def start(self) -> None:
        """Open the connections and start the threads; once per user."""
        with self._counting:
            if self._users == 0:
                self._start()
            self._users += 1

    def _start(self) -> None:
        refuse_network(self.place)
        writer = self.connect()
        if not self.place.in_memory:
            try:
                reader = self.connect()
            except BaseException:
                writer.close()
                raise
            self._launch("reader", lambda: self._serve_reads(reader))
        self._launch("writer", lambda: self._serve_writes(writer))

    async def stop(self) -> None:
        """Finish what was asked and close, when the last user stops."""
        with self._counting:
            self._users = max(0, self._users - 1)
            if self._users > 0 or not self._threads:
                return
        self._writes.put(None)
        self._reads.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._threads.clear()

    async def write(self, run: Operation[T], *, tell: Telling[T] | None = None, first: bool = False) -> T:
        """Run `run(connection, now)` in a transaction; returns after it is durable.

        `tell(result, now)` says what others hear of it. What comes `first` goes before everything else that waits.
        """
        order = _Order(run, self._future(), asyncio.get_running_loop(), tell, first=first)
        result: T = await self._ask(self._writes, order)
        return result

    async def write_then(self, run: Operation[T], then: Callable[[T], U]) -> U:
        """The same, answered by `then(result)` after the commit: what needs only Python does not lock the file."""
        order = _Order(run, self._future(), asyncio.get_running_loop(), then=then)
        result: U = await self._ask(self._writes, order)
        return result

    async def read(self, run: Operation[T]) -> T:
        """Run `run(connection, now)` on one snapshot."""
        lane = self._writes if self.place.in_memory else self._reads
        result: T = await self._ask(lane, _Order(run, self._future(), asyncio.get_running_loop()))
        return result

    async def read_apart(self, run: Operation[T]) -> T:
        """The same of what takes long, on a connection and in a thread of its own: other reads go on meanwhile."""
        if self.place.in_memory:
            return await self.read(run)
        order = _Order(run, self._future(), asyncio.get_running_loop())
        given_up = threading.Event()
        try:
            await asyncio.to_thread(self._read_apart, order, given_up)
        finally:
            given_up.set()
        result: T = order.result
        return result

    def _read_apart(self, order: _Order, given_up: threading.Event) -> None:
        db = self.connect()
        db.set_progress_handler(given_up.is_set, _STEPS)
        try:
            self._read_one(db, order)
        except Exception as error:
            raise translated(error, self.place) from error
        finally:
            db.close()

    async def let_others_write(self) -> None:
        """Return some time after the file was seen free: those who waited for it then have had their turn."""
        if self.place.in_memory:
            return  # nobody else is there, and what this process has to extend comes first
        for _ in range(_PAUSES):
            await self.write(_untouched)
            free = time.monotonic()
            await asyncio.sleep(GRACE)
            if time.monotonic() - free < GRACE + _LONG:
                return  # else this process itself stood still, and its own leases want their turn now

    @property
    def calm(self) -> bool:
        """Whether the file was not kept locked lately, as far as this writer saw. For operations of the writer."""
        return time.monotonic() - self.held_up_at > GRACE / 2

    def over_for_all(self, now: int) -> int:
        """The instant up to which leases are over by anybody's clock. For operations of the writer."""
        behind, until = self._allowed
        return now - behind if now < until else now

    def now(self, db: sqlite3.Connection) -> int:
        """What the clock shows, not behind the one of the file."""
        self._follow(db)
        return self.clock()

    def connect(self) -> sqlite3.Connection:
        """A connection with windlass's settings: they belong to a connection, not to the file."""
        try:
            db = sqlite3.connect(
                self.place.path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=512
            )
        except sqlite3.Error as error:
            raise translate(error, self.place) from error
        try:
            self._prepare(db)
        except sqlite3.Error as error:
            db.close()
            raise translate(error, self.place) from error
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self.place.timeout
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={self.place.synchronous}",
            "temp_store=MEMORY",
            "cache_size=-16000",
            "journal_size_limit=67108864",
            # Pages that change in several transactions are copied back once: fewer, larger checkpoints.
            "wal_autocheckpoint=4000",
        ):
            _patiently(lambda pragma=pragma: db.execute(f"PRAGMA {pragma}"), deadline, self.place)  # type: ignore[misc]  # bound per turn

    def _launch(self, name: str, serve: Callable[[], None]) -> None:
        thread = threading.Thread(target=serve, name=f"windlass-sqlite-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _future(self) -> asyncio.Future[Any]:
        if self._users < 1:
            raise StoreError(f"the store {self.place.path} is not open: use it inside 'async with app:'")
        return asyncio.get_running_loop().create_future()

    async def _ask(self, lane: SimpleQueue[_Order | None], order: _Order) -> Any:
        lane.put(order)
        return await order.answer

    def _serve_writes(self, db: sqlite3.Connection) -> None:
        while (batch := _waiting(self._writes)) is not None:
            batch.sort(key=lambda order: not order.first)
            if not self._carried_out(db, batch) and len(batch) > 1:
                # Nothing of it was committed. One of them is at fault: each gets a transaction of its own.
                for order in batch:
                    self._carried_out(db, [order])
            _deliver(batch)
        db.close()

    def _carried_out(self, db: sqlite3.Connection, batch: list[_Order]) -> bool:
        try:
            told = self._transact(db, batch)
        except Exception as error:  # noqa: BLE001  # whatever it is belongs to the callers; this thread must live on
            _abandon(db)
            for order in batch:
                order.error = translated(error, self.place)
            return False
        for order in batch:
            order.error = None
            if order.then is not None:
                order.result = order.then(order.result)
        if told is not None:
            self.on_news(told)
        return True

    def _transact(self, db: sqlite3.Connection, batch: list[_Order]) -> Told | None:
        asked = time.monotonic()
        _patiently(lambda: db.execute("BEGIN IMMEDIATE"), asked + self.place.timeout, self.place)
        began = time.monotonic()
        if began - asked > _LONG:
            self.held_up_at = began
        shown = self._follow(db)
        now = self.clock()
        behind = self._allow(shown, now)
        news, before = NOTHING, db.total_changes
        for order in batch:
            order.result = order.run(db, now)
            if order.tell is not None:
                news = news.joined(order.tell(order.result, now))
        told = self._record(db, news, now, changed=behind or db.total_changes > before)
        db.execute("COMMIT")
        ended = time.monotonic()
        if ended - began > _LONG:
            self.held_up_at = ended
        return told

    def _follow(self, db: sqlite3.Connection) -> int | None:
        if isinstance(self.clock, Clock) and not self.place.in_memory:
            with suppress(sqlite3.OperationalError):  # before the first migration there is no clock to follow
                shown: int = db.execute(self.sql(CLOCK)).fetchone()[0]
                self.clock.follow(shown)
                return shown
        return None

    def _allow(self, shown: int | None, now: int) -> bool:
        """Note how far the processes that follow the file's clock are behind; whether they must be told of this one."""
        # As long as all processes go by the host's clock none is behind. Else a process that began after the last write
        # goes on from there. It learns of this clock by its next write, the next extension at the latest: until then
        # leases that are over by this clock, and not by that process's, are left alone.
        if shown is None or not isinstance(self.clock, Clock) or self.clock.ahead <= _CLOCK_KEPT:
            return False
        behind = now - shown
        allowed, until = self._allowed
        if behind > _CLOCK_KEPT and (behind >= allowed or now >= until):
            self._allowed = (behind, now + min(behind, _MOST_ALLOWED))
        return behind > _CLOCK_KEPT

    def _record(self, db: sqlite3.Connection, news: News, now: int, *, changed: bool) -> Told | None:
        if news:
            self._clock_written = now
            return record(db, self.sql, news, now)
        # What changed nothing must leave no trace: a commit wakes every process on this file.
        if changed and now - self._clock_written > _CLOCK_KEPT:
            self._clock_written = now
            with suppress(sqlite3.OperationalError):  # the tables may just have been removed
                record(db, self.sql, NOTHING, now)
        return None

    def _serve_reads(self, db: sqlite3.Connection) -> None:
        while (batch := _waiting(self._reads)) is not None:
            for order in batch:
                try:
                    self._read_one(db, order)
                except Exception as error:  # noqa: BLE001  # handed to the caller, who awaits it
                    order.error = translated(error, self.place)
                _abandon(db)
            _deliver(batch)
        db.close()

    def _read_one(self, db: sqlite3.Connection, order: _Order) -> None:
        def once() -> None:
            _abandon(db)
            db.execute("BEGIN")
            order.result = order.run(db, self.now(db))

        # A reader has to wait, too, while another process recovers or resets the log.
        _patiently(once, time.monotonic() + self.place.timeout, self.place)


def _nothing(_: Told) -> None:
    return


def _untouched(_db: sqlite3.Connection, _now: int) -> None:
    return


def _waiting(lane: SimpleQueue[_Order | None]) -> list[_Order] | None:
    order = lane.get()
    if order is None:
        return None
    batch = [order]
    while len(batch) < _MOST_SHARED:
        try:
            more = lane.get_nowait()
        except Empty:
            break
        if more is None:
            lane.put(None)
            break
        batch.append(more)
    return batch


def _deliver(batch: list[_Order]) -> None:
    loops = {id(order.loop): order.loop for order in batch}
    for key, loop in loops.items():
        mine = [order for order in batch if id(order.loop) == key]
        try:
            loop.call_soon_threadsafe(_deliver_all, mine)
        except RuntimeError:
            continue  # the loop has closed: nobody waits there any more


def _deliver_all(orders: list[_Order]) -> None:
    for order in orders:
        order.deliver()


def _abandon(db: sqlite3.Connection) -> None:
    if db.in_transaction:
        with suppress(sqlite3.Error):  # after an I/O error there may be nothing left to roll back
            db.execute("ROLLBACK")


def _patiently(run: Callable[[], object], deadline: float, place: Place) -> None:
    # SQLite's own busy handler backs off so far that one process can starve; short random waits do not.
    while True:
        try:
            run()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"{place.path} stayed locked by another process for {place.timeout:g} s: look for a long write"
                    " transaction on this file"
                ) from error
            time.sleep(random.uniform(0.0003, 0.001))  # jitter, not a secret
        else:
            return


def translated(error: Exception, place: Place) -> Exception:
    """Whatever an operation raised, in windlass's words if it is SQLite's or the driver's."""
    if isinstance(error, (UnicodeEncodeError, OverflowError)):
        return ValueRefused(f"SQLite cannot keep a value: {error}")
    return translate(error, place) if isinstance(error, sqlite3.Error) else error


def translate(error: sqlite3.Error, place: Place) -> StoreError:
    """SQLite's error in windlass's words."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    said = str(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(f"{place.path} is locked by another process: try again")
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"the disk that holds {place.path} is full: nothing was written; free space, try again")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreUnavailable(f"{place.path} cannot be opened: check that its folder exists and may be written to")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreUnavailable(f"{place.path} cannot be written to: check the permissions of the file and its folder")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreError(f"{place.path} is not an SQLite database, or is damaged ({said}): restore it or use another")
    if code == sqlite3.SQLITE_IOERR:
        return StoreUnavailable(f"{place.path} could not be read or written ({said}): check the disk")
    if code == sqlite3.SQLITE_TOOBIG or isinstance(error, sqlite3.DataError):
        return ValueRefused(f"SQLite cannot keep a value: {said}")
    if "no such table" in said or "no such column" in said:
        return SchemaMismatch(f"{place.path} does not have windlass's tables ({said}): run 'windlass migrate'")
    return StoreError(f"SQLite refused: {said}")


def refuse_network(place: Place) -> None:
    """SQLite's locks do not hold on network file systems, so two hosts would destroy the file."""
    mounts = Path("/proc/mounts")
    if place.in_memory or not mounts.exists():
        return
    kind = file_system(Path(place.path).resolve().parent, mounts.read_text(errors="replace"))
    if kind.removeprefix("fuse.") in _NETWORK:
        raise StoreError(
            f"{place.path} is on a network file system ({kind}), where SQLite's locks do not hold: use a local disk,"
            " or a MongoDB, PostgreSQL or Redis store"
        )


def file_system(folder: PurePath, mounts: str) -> str:
    """The kind of file system a folder is on, by the text of /proc/mounts: the deepest mount, of two the last."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:  # what is mounted, where, and its kind
            continue
        at = PurePath(_OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[1]))
        if len(at.parts) >= best and (folder == at or at in folder.parents):
            best, kind = len(at.parts), fields[2]
    return kind
