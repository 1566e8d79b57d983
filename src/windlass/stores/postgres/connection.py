"""The connections of the PostgreSQL store: a few per opened store, with deadlines, and errors in windlass's words.

Nothing here leaves state on a connection: no session locks, no settings, no temporary tables. So everything also works
where a pooler hands out another server connection with every transaction.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import asyncpg
from asyncpg import exceptions as pg

from windlass.core.errors import SchemaMismatch, SettingsError, StoreError, StoreUnavailable, ValueRefused
from windlass.core.redaction import why_not
from windlass.stores.guarding import guarding
from windlass.stores.patience import Patience

if TYPE_CHECKING:
    from windlass.stores.contract import Notice

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Rows: TypeAlias = Sequence[Any]
"""each read by position"""
T = TypeVar("T")
Steps: TypeAlias = Generator[tuple[str, tuple[Any, ...]], Rows, T]
"""statements with their values, each answered with its rows, that any driver can carry"""

OLDEST = 130_000
"""PostgreSQL 13: gen_random_uuid() without an extension"""
_MOST = 5  # connections of one opened store: a claim, a settlement, enqueues, chores and views at the same time
OF_A_WORKER = _MOST + 3
"""connections of a busy worker: its store's, the one that listens, and those of the store that extends its leases"""
_CONNECT = 5.0  # seconds to make one; less than an operation may take, so that it can try again
FIRST_TOKEN = "first_token()"
"""in a statement: tokens of this server begin above it"""
# A server that takes another's place does not know of every token that was handed out there. But it is on a timeline of
# its own, and so it begins far above what is reached by counting on the one before.
_EACH_TIMELINE = 1_000_000_000
_TIMELINE = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint"
_TELLS_TIMELINE = f"SELECT CASE WHEN NOT pg_is_in_recovery() THEN {_TIMELINE} END"  # while it recovers it has none
_TABLE = re.compile(r"(?<![\w\"'])windlass_(\w+)")
_INDEX = re.compile(r"(?<!DROP )\bINDEX (CONCURRENTLY )?windlass_(\w+)")

# Every statement here is written for an index. Plans are made once per connection, maybe while the tables are still
# empty and reading them whole looks cheap: without these they would stay so while a million jobs arrive.
_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # A row that is found by its key costs less than a page of others, however few pages there are as yet.
    "random_page_cost": "1.1",
    # So little that it never decides: of two indexes that cost the same the one is taken that has the order asked for.
    "cpu_operator_cost": "0.0001",
    "jit": "off",
}

_PATIENT: dict[str, str] = dict.fromkeys(
    ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"), "0"
)

_LOST = (
    pg.ConnectionDoesNotExistError,
    pg.ConnectionFailureError,
    pg.PostgresConnectionError,
    pg.AdminShutdownError,
    pg.CrashShutdownError,
    pg.CannotConnectNowError,
    pg.DatabaseDroppedError,
    pg.IdleSessionTimeoutError,
    pg.InternalClientError,
    ConnectionError,
)
"""the connection is gone, and with it the knowledge whether what was asked has happened"""
_GONE = (pg.AdminShutdownError, pg.CrashShutdownError, pg.IdleSessionTimeoutError)
"""the server process itself has said that it ends: nothing is done any more"""
DRIVER = (pg.PostgresError, pg.InterfaceError, pg.InternalClientError, OSError)
"""all that the driver raises when something fails; an internal error comes when a server shuts down under a call"""
_RIVALS = (pg.DeadlockDetectedError, pg.SerializationError)
"""nothing has happened: another transaction came first"""


def in_doubt(error: BaseException) -> bool:
    """Whether what was asked may have been done all the same: the server has not said that it was not."""
    return not isinstance(error, pg.PostgresError) or isinstance(error, _LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the tables are."""

    url: str | None
    """None: all is in the settings"""
    address: str
    """the same without secrets"""
    schema: str | None = None
    """None: the first of the user's search path"""
    namespace: str = "windlass"
    timeout: float = 10.0
    """seconds an operation may take in all, waiting for a connection included"""
    pooler: bool | None = None
    """whether a pooler stands between; None: found out when the store is opened"""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """what else the driver is told when it connects: taken over from a pool"""
    connect: Callable[..., Awaitable[Any]] | None = None
    """how connections are made, if otherwise than by the driver: taken over from a pool"""
    most: int | None = None
    """at most so many connections for statements, if fewer than windlass would make"""


@lru_cache(maxsize=1024)
def named(sql: str, namespace: str, schema: str | None, *, timelines: bool = False) -> str:
    """The one place where names enter SQL: `windlass_…` becomes the namespace's own table in its schema, quoted."""
    sql = sql.replace(FIRST_TOKEN, f"(({_TIMELINE} - 1) * {_EACH_TIMELINE})" if timelines else "0")
    indexed = _INDEX.sub(lambda found: f'INDEX {found[1] or ""}"{namespace}_{found[2]}"', sql)
    where = "" if schema is None else f"{quoted(schema)}."
    return _TABLE.sub(lambda found: f'{where}"{namespace}_{found[1]}"', indexed)


def quoted(name: str) -> str:
    """A name as an identifier, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _nobody(*_: Notice) -> None:
    return


END_THESE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = ANY ($1::int[]) AND application_name = 'windlass' AND pid <> pg_backend_pid()
"""


class Link:
    """One opened store: its connections, and what was learnt of the server. Belongs to the loop that opened it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.schema = place.schema
        self.pooled = bool(place.pooler)
        self.identity: str | None = None
        """what tells this installation from any other, for transactions that are the caller's own"""
        self.read_only = False
        self.timelines = False
        """whether the server tells its timeline"""
        self.changed: Callable[..., None] = _nobody
        """given the notices of every change, after it"""
        self.look_again: Callable[[], None] = _nobody
        """wakes the listeners of this store, and no others"""
        self._pids: dict[Connection, int] = {}
        self._left: set[int] = set()
        """server processes whose connections were given up in the middle of something"""
        self._open = False
        self._idle: list[Connection] = []
        self._most = _MOST if place.most is None else max(1, min(place.most, _MOST))
        self._room = asyncio.Semaphore(self._most)
        self._loop: asyncio.AbstractEventLoop | None = None

    def sql(self, text: str) -> str:
        """The statement with this store's own names."""
        return named(text, self.place.namespace, self.schema, timelines=self.timelines)

    @property
    def scope(self) -> str:
        """What locks and the channel of this installation begin with."""
        return f"{self.schema}.{self.place.namespace}"

    async def start(self) -> None:
        """Connect, and learn what kind of server this is."""
        if self._open:
            return
        self._open, self._loop = True, asyncio.get_running_loop()
        self._room = asyncio.Semaphore(self._most)
        try:
            await self.surely(self._look)
        except BaseException:
            await self.stop()
            raise

    async def _look(self) -> None:
        async with asyncio.timeout(self.place.timeout):
            connection = await self.connect(cached=False)
            try:
                pid = connection.get_server_pid()
                async with connection.transaction():
                    row = await connection.fetchrow(
                        "SELECT pg_backend_pid(), current_setting('server_version_num')::int, current_schema(),"
                        " pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'"
                    )
                self.timelines = await _tells_timeline(connection)
            finally:
                self.drop(connection)
        if row is None:
            raise StoreUnavailable(f"{self.place.address} did not answer: try again")
        if row[1] < OLDEST:
            raise StoreError(f"the PostgreSQL at {self.place.address} is older than 13, which windlass needs")
        # A pooler answers with a process number of its own when a client connects.
        pooled = pid != row[0]
        self.pooled = pooled if self.place.pooler is None else self.place.pooler
        self.read_only = row[3]
        if self.place.schema is None:
            if row[2] is None:
                raise SettingsError(
                    f"the user's search path on {self.place.address} has no schema that exists: add ?schema= to the URL"
                )
            self.schema = row[2]

    async def connect(self, *, cached: bool | None = None, patient: bool = False) -> Connection:
        """A new connection; a patient one is for what may take very long."""
        keep = not self.pooled if cached is None else cached
        settings: dict[str, str] = self._settings() if keep else {}
        if patient and not self.pooled:
            settings = _PATIENT
        given = dict(self.place.settings)
        of_server = {**given.pop("server_settings", {}), "application_name": "windlass", **settings}
        connect = cast("Callable[..., Awaitable[Connection]]", self.place.connect or asyncpg.connect)
        try:
            connection = await connect(
                self.place.url,
                **given,
                timeout=min(_CONNECT, self.place.timeout),
                statement_cache_size=200 if keep else 0,
                # Plans are made for good, so no statement is prepared again in the middle of the work.
                max_cached_statement_lifetime=0,
                # A pooler refuses settings that it does not know.
                server_settings=of_server,
            )
        except (pg.ClientConfigurationError, ValueError) as error:
            why = why_not(self.place.url or "", error)
            raise SettingsError(f"the store URL {self.place.address} cannot be used: {why}") from None
        self._pids[connection] = connection.get_server_pid()
        return connection

    def _settings(self) -> dict[str, str]:
        # The server ends what takes too long before its caller gives up, so that few answers are missed, and what a
        # caller that stands still has begun: others may be waiting for its locks.
        ms = int(self.place.timeout * 1000)
        limits = {"statement_timeout": f"{ms * 9 // 10}", "idle_in_transaction_session_timeout": f"{ms}"}
        return {**_PLANS, **limits}

    async def end_what_was_left(self) -> None:
        """See to it that nothing is being done any more over connections that were given up.

        What they had begun has ended then, one way or the other, and can be seen. Behind a pooler nobody knows which
        server process worked for whom.
        """
        deadline, patience = time.monotonic() + self.place.timeout, Patience()
        while left := [] if self.pooled else sorted(self._left - set(self._pids.values())):
            if not await self.fetch(END_THESE, left):
                self._left.difference_update(left)
            elif time.monotonic() > deadline:
                raise StoreUnavailable(f"{self.place.address} has not ended what it was asked before: try again")
            else:
                await patience.pause()

    def is_own(self, pid: int) -> bool:
        """Whether this server process works for this store: its notices tell us nothing new."""
        return pid in self._pids.values()

    async def stop(self) -> None:
        """Close the connections."""
        self._open = False
        idle, self._idle = self._idle, []
        self._pids.clear()
        if self._loop is asyncio.get_running_loop():
            await asyncio.gather(*[_close(connection) for connection in idle])

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection, None]:
        """One of the connections, alone; it is given back only if it is known to be whole."""
        if not self._open:
            raise StoreError(f"the store {self.place.address} is not open: use it inside 'async with app:'")
        if self._loop is not asyncio.get_running_loop():
            # An earlier loop has ended with its connections.
            self._loop, self._idle, self._room = asyncio.get_running_loop(), [], asyncio.Semaphore(self._most)
        async with self._room:
            connection = self._idle.pop() if self._idle else await self.connect()
            try:
                yield connection
            except pg.PostgresError as error:
                self._give_back(connection, gone=isinstance(error, _GONE))
                raise
            except (pg.InterfaceError, StoreError, ValueError):
                self._give_back(connection)
                raise
            except BaseException:
                # Cancelled or timed out: the server may still be at it, and its answer would be taken for another's.
                self._leave(connection)
                raise
            self._give_back(connection)

    def _give_back(self, connection: Connection, *, gone: bool = False) -> None:
        if gone:
            self.drop(connection)
        elif connection.is_closed() or connection.is_in_transaction() or not self._open:
            self._leave(connection)
        else:
            self._idle.append(connection)

    def _leave(self, connection: Connection) -> None:
        self._left.add(self._pids.get(connection, 0))
        self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """End a connection at once, whatever it is doing."""
        self._pids.pop(connection, None)
        connection.terminate()

    def _drop_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            self.drop(connection)

    async def surely(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work that may safely be done twice, again after each lost connection, until the timeout.

        After a lost answer nobody knows whether the work was done. Every caller's writes are fenced by tokens or known
        by ids, so that doing them again finds them done.
        """
        deadline, patience = time.monotonic() + self.place.timeout, Patience()
        while True:
            try:
                return await work()
            except (*_LOST, *_RIVALS) as error:
                if isinstance(error, _LOST):
                    self._drop_idle()  # whatever ended this one has ended the others, too
                if time.monotonic() > deadline:
                    raise
            except pg.InterfaceError as error:
                if "closed" not in str(error) or time.monotonic() > deadline:
                    raise
                self._drop_idle()
            await patience.pause()

    async def fetch(self, sql: str, *args: Any) -> Rows:
        """The rows of one statement that is a transaction by itself."""
        return await self.surely(lambda: self.once(sql, *args))

    async def once(self, sql: str, *args: Any) -> Rows:
        """The same, for statements that must not be repeated blindly."""
        async with asyncio.timeout(self.place.timeout), self.connection() as connection:
            if self.pooled:
                # The two halves of a prepared statement must meet the same server.
                async with connection.transaction():
                    return await connection.fetch(self.sql(sql), *args)
            return await connection.fetch(self.sql(sql), *args)

    async def transaction(self, work: Callable[[Ask], Awaitable[T]], *, again: bool = True) -> T:
        """Several statements in one transaction, from the start again if another came first or the connection went.

        Unless `again`, a lost connection is an error: the caller has to find out what has happened.
        """

        async def attempt() -> T:
            async with asyncio.timeout(self.place.timeout), self.connection() as connection, connection.transaction():

                async def ask(sql: str, *args: Any) -> Rows:
                    return await connection.fetch(self.sql(sql), *args)

                return await work(ask)

        return await self.surely(attempt) if again else await attempt()


async def _tells_timeline(connection: Connection) -> bool:
    try:
        async with connection.transaction():
            await connection.fetchval(_TELLS_TIMELINE)
    except pg.PostgresError as error:
        if isinstance(error, _LOST):
            raise
        return False  # its users may not ask, or it is made otherwise than PostgreSQL
    return True


Ask: TypeAlias = Callable[..., Awaitable[Rows]]
"""Run one statement inside a transaction: its text, then its values."""


async def carry(ask: Ask, steps: Steps[T]) -> T:
    """Take these steps inside a transaction of this store's own."""
    try:
        sql, values = next(steps)
        while True:
            sql, values = steps.send(await ask(sql, *values))
    except StopIteration as done:
        value: T = done.value
        return value


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=1)
    except DRIVER:
        connection.terminate()


class Room:
    """A part of the store that talks through the link."""

    def __init__(self, link: Link) -> None:
        self.link = link


def translate(error: Exception, place: Place) -> StoreError:
    """The driver's error in windlass's words, without the driver's view of the world."""
    if isinstance(error, (UnicodeError, OverflowError)):
        return ValueRefused(f"PostgreSQL cannot keep a value of this job: {str(error)[:200]}")
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{place.address} did not answer within {place.timeout:g} s: try again")
    if isinstance(error, (*_LOST, OSError)):
        return StoreUnavailable(
            f"no PostgreSQL answers at {place.address}, or the connection was lost: check that it runs and can be"
            " reached, then try again"
        )
    if isinstance(error, pg.PostgresError):
        return refused(error.sqlstate or "", error.args[0] if error.args else "", place)
    if isinstance(error, pg.DataError):
        return ValueRefused(f"PostgreSQL cannot keep a value of this job: {_first_line(error)}")
    return StoreUnavailable(f"the connection to {place.address} was lost: try again")


_BUSY = {"40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03", "53300", "53400", "25P03"}


def refused(state: str, said: object, place: Place) -> StoreError:
    """The error of a state that the SQL standard or PostgreSQL gave it, whichever driver brought it."""
    where = place.address
    if state.startswith("28"):
        return StoreUnavailable(f"{where} refused the user or password: check them in the URL, and pg_hba.conf there")
    if state == "3D000":
        return StoreUnavailable(f"there is no such database at {where}: create it, or correct the URL")
    if state == "42501":
        return StoreUnavailable(
            f"the user is not allowed to do this on {where}: grant it the tables, and CREATE on the schema to migrate"
        )
    if state == "25006":
        return StoreUnavailable(f"{where} is read-only, a standby for one: give the URL of the primary")
    if state in {"42P01", "42703", "3F000"}:  # no such table, column, schema
        return SchemaMismatch(f"{where} does not have windlass's tables: run 'windlass migrate'")
    if state in _BUSY or state.startswith(("08", "58")):  # the connection, or the disk below the server
        return StoreUnavailable(f"{where} could not do it now (SQLSTATE {state}): try again")
    if state.startswith("53"):  # out of disk, memory
        return StoreUnavailable(f"{where} is out of room (SQLSTATE {state}): nothing was written; free some, try again")
    if state == "25P02":
        return StoreError("an earlier statement in this transaction has failed: roll it back and begin again")
    if state.startswith("22") or state == "54000":  # a value out of bounds, or larger than there can be
        return ValueRefused(f"PostgreSQL cannot keep a value of this job: {_first_line(said)}")
    return StoreError(f"PostgreSQL refused (SQLSTATE {state}): {_first_line(said)}")


def _first_line(said: object) -> str:
    return str(said).partition("\n")[0][:200]


guarded = guarding((*DRIVER, UnicodeError, OverflowError), translate)
"""Let no driver error out of a room's method."""
