"""The connection of the MongoDB store: one client per opened store, the server's clock, errors in windlass's words."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar, cast

from bson.codec_options import CodecOptions
from bson.errors import BSONError
from pymongo import AsyncMongoClient, ReadPreference
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from pymongo.write_concern import WriteConcern

from windlass.core.errors import SchemaMismatch, SettingsError, StoreError, StoreUnavailable, ValueRefused
from windlass.core.redaction import why_not
from windlass.stores.contract import Notice
from windlass.stores.guarding import guarding
from windlass.stores.patience import Patience

Doc: TypeAlias = dict[str, Any]
Jobs: TypeAlias = AsyncCollection[Doc]
T = TypeVar("T")
U = TypeVar("U")

OPTIONS: CodecOptions[Doc] = CodecOptions(tz_aware=True, tzinfo=UTC)
QUICK: CodecOptions[Doc] = CodecOptions()
"""without time zones, which take three quarters of a document's decoding: `records.in_utc` puts them on"""
DURABLE = WriteConcern(w="majority", j=True)
AT_ONCE = WriteConcern(w=1)
OLDEST_WIRE = 17  # MongoDB 6.0: `$in` in partial indexes
DUPLICATE_KEY = 11000
_PART = 500  # how many jobs go into one command; this measured best
BY_ID = "_id_"
"""the index for writes that name their jobs: without it the server tries that of the status as well, each time"""
_SILENT_MS = 3000
_HEARTBEAT_MS = 1000
_MOST = 32
"""connections: the driver makes two at a time, so that its own hundred come too slowly when as many calls do at once"""
_OPEN_FOR = 1.0  # seconds after which a largest depth that another process set is obeyed
_MOST_HELD = 20_000
_FRESH = 2.0  # seconds after which the server's clock is looked at again
_CUT = 0.002  # seconds by which a reading may lie below what the server's clock really was
_AUTH = frozenset({18, 11, 334})  # AuthenticationFailed, UserNotFound, MechanismUnavailable
_FORBIDDEN = frozenset({13, 8000})  # Unauthorized, AtlasError
_TOO_LARGE = frozenset({10334, 17419, 17420})  # BSONObjectTooLarge, and what an update would make so
_BUSY = frozenset({50, 89, 91, 112, 189, 251, 262, 10107, 11600, 11602, 13435, 13436})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the collections are."""

    url: str
    address: str
    """the same without secrets"""
    database: str = "windlass"
    namespace: str = "windlass"
    timeout: float = 10.0
    """seconds an operation may take in all, the search for a primary included"""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """what the driver is told in place of a URL: taken over from a client"""


class Clock:
    """The server's clock, as far as replies have told: never ahead of it, and never behind what it has shown here.

    A reply shows an instant that has passed when it arrives, so each reading is a lower bound, and the largest is the
    best. It had not passed when the question was sent: where the best says more than that, the server's clock was set
    back, or there is a new primary, and the reading is believed. Old readings are dropped in any case.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ahead: float | None = None
        self._seen = 0.0

    def see(self, shown: datetime, sent: float) -> None:
        """Take a reading: the server's clock showed this a moment ago, in answer to a question sent then."""
        at = self._monotonic()
        ahead = shown.timestamp() - at
        # It is cut to milliseconds: without one more, every quick answer would look like a step back.
        set_back = self._ahead is not None and self._ahead > shown.timestamp() + _CUT - sent
        if self._ahead is None or set_back or ahead > self._ahead or at - self._seen > _FRESH:
            self._ahead, self._seen = ahead, at

    @property
    def fresh(self) -> bool:
        """Whether the last reading is young enough to count on."""
        return self._ahead is not None and self._monotonic() - self._seen < _FRESH

    def __call__(self) -> datetime:
        """The server's time now, in whole milliseconds as it keeps them."""
        assert self._ahead is not None, "the clock has not been looked at"  # noqa: S101  # the caller looks first
        ms = int((self._monotonic() + self._ahead) * 1000 + 1e-3)
        return datetime.fromtimestamp(ms // 1000, UTC) + timedelta(milliseconds=ms % 1000)


def _nothing(_: Notice) -> None:
    return


APART = "\x1f"
"""between the notices that one write carries, and before the first"""
LANE = "\x1e"
"""before the lane of a single notice, which ends it"""


class Link:
    """One opened store: its client, its collections and the server's clock. Belongs to the loop that opened it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.clock = Clock()
        self.on_change: Callable[[Notice], None] = _nothing
        self.standalone = self.routed = False
        """whether it is one server without a replica set, or a router before several"""
        self.turns: dict[str, asyncio.Lock] = {}
        """of each queue with a largest depth: callers of this store wait for each other here, not at the server"""
        self.name_of_news = secrets.token_hex(6)
        self._news = 0
        self.written = 0
        """jobs changed here since somebody last asked"""
        self._open: dict[str, float] = {}
        self.fair: dict[str, datetime] = {}
        """queues where jobs take turns, and since when: there those that take no part are told from them"""
        self.aged_to = ""
        """behind which queue the next look for what has stood long begins"""
        self.tell_apart_from: dict[str, float] = {}
        """of these: when to look again for what somebody queued who had not heard of it, by the monotonic clock"""
        self.held: dict[str, Doc] = {}
        """jobs as they were claimed here, so that their end can be written without reading them: only hints"""
        self.swept: dict[str, str] = {}
        """of each kind of line, where the last promotion stopped looking: only hints"""
        self.pruned: dict[tuple[str, str], tuple[datetime, int]] = {}
        """of each status and queue, behind which of those that must stay the last pruning stopped: only hints"""
        self.pruned_to = ""
        """up to which queue the last pruning looked: only a hint"""
        self.flows_rest_until = 0.0
        """by the monotonic clock: many that await others are not all asked about at every promotion"""
        self._client: AsyncMongoClient[Doc] | None = None
        self._collections: dict[str, AsyncCollection[Doc]] = {}

    @property
    def client(self) -> AsyncMongoClient[Doc]:
        """The driver's client; only while the store is open."""
        if self._client is None:
            raise StoreError(f"the store {self.place.address} is not open: use it inside 'async with app:'")
        return self._client

    def name(self, of: str) -> str:
        """The collection's name in the database: the one place where the namespace enters one."""
        return f"{self.place.namespace}_{of}"

    def collection(self, of: str) -> AsyncCollection[Doc]:
        """A collection of this store, with windlass's own settings whatever the URL says."""
        client = self.client
        if of not in self._collections:
            database = client.get_database(self.place.database, codec_options=OPTIONS, write_concern=DURABLE)
            self._collections[of] = database.get_collection(
                self.name(of), codec_options=OPTIONS, write_concern=DURABLE, read_preference=ReadPreference.PRIMARY
            )
        return self._collections[of]

    def news(self, notices: Sequence[Notice], *, known: bool = True) -> str:
        """The next value of `wake`, the field by which a write wakes the listeners, and says what about.

        One document of a batch carries it, so that a thousand changes are one piece of news. It names this store, whose
        own listeners are told by `tell`, unless nobody here knows when it will come true: in a caller's transaction.
        """
        self._news += 1
        name = f"{self.name_of_news if known else ''}{self._news:x}"
        said = APART.join([name, *[notice.text() for notice in notices]])
        lane = notices[0].lane if len(notices) == 1 else None
        return said if lane is None else f"{said}{LANE}{lane}"

    def tell(self, notices: Sequence[Notice]) -> None:
        """Tell this store's own listeners of what has been written."""
        for notice in notices:
            self.on_change(notice)

    @property
    def jobs(self) -> Jobs:
        """The jobs."""
        return self.collection("jobs")

    async def start(self) -> None:
        """Connect, learn what kind of server this is, and refuse one that is too old."""
        if self._client is not None:
            return
        self._client = self._connect(retry=True)
        try:
            hello = await self._hello()
            self.routed = hello.get("msg") == "isdbgrid"
            self.standalone = "setName" not in hello and not self.routed
            if hello.get("maxWireVersion", 0) < OLDEST_WIRE:
                raise StoreError(f"the MongoDB at {self.place.address} is older than 6.0, which windlass needs")
            if self.standalone:
                # A standalone server refuses the transaction numbers that retryable writes carry.
                await self.stop()
                self._client = self._connect(retry=False)
        except BaseException:
            await self.stop()
            raise

    def _connect(self, *, retry: bool) -> AsyncMongoClient[Doc]:
        limit = max(1, int(self.place.timeout * 1000))
        given = dict(self.place.settings or {"host": self.place.url})
        if "maxpoolsize=" not in str(given.get("host")).lower() and not any(n.lower() == "maxpoolsize" for n in given):
            given["maxPoolSize"] = _MOST
        try:
            return AsyncMongoClient(
                **given,
                appname="windlass",
                # Half of it for each try: one that meets a member which has just frozen, while it connects, is not
                # ended by anything else, and must leave time for another.
                timeoutMS=max(1, limit // 2),
                serverSelectionTimeoutMS=limit,
                # A primary that is frozen or cut off says nothing at all: it counts as gone when it has not answered a
                # question for the sum of these two, and calls that wait for it are then made to the new one.
                connectTimeoutMS=min(limit, _SILENT_MS),
                heartbeatFrequencyMS=_HEARTBEAT_MS,
                retryWrites=retry,
                retryReads=True,
                tz_aware=True,
            )
        except (ValueError, ConfigurationError, InvalidURI) as error:
            why = why_not(self.place.url, error)
            raise SettingsError(f"the store URL {self.place.address} cannot be used: {why}") from None

    async def stop(self) -> None:
        """Close the client."""
        client, self._client = self._client, None
        self._collections.clear()
        self.turns.clear()
        self.held.clear()
        self._open.clear()
        if client is not None:
            await client.close()
            await asyncio.sleep(0)  # its sockets are closed by the loop's next turn, which may be its last

    async def _hello(self) -> Doc:
        sent = time.monotonic()
        hello: Doc = await self.client.get_database("admin", codec_options=OPTIONS).command("hello")
        self.clock.see(hello["localTime"], sent)
        return hello

    async def look(self) -> datetime:
        """Read the server's clock."""
        await self._hello()
        return self.clock()

    async def now(self) -> datetime:
        """The server's clock, asked only if it has not shown itself for a while."""
        return self.clock() if self.clock.fresh else await self.look()

    async def surely(self, write: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Make a write that may safely be made twice, again after each lost connection, until the timeout.

        The driver does not repeat writes to many documents by itself. After a lost reply nobody knows whether they were
        made; the callers' writes are conditional, so a second one finds nothing left to do, and who made the change is
        read back by its mark.
        """
        deadline, patience = time.monotonic() + self.place.timeout, Patience()
        while True:
            try:
                return await write()
            except PyMongoError as error:
                passing = isinstance(error, AutoReconnect) or error.timeout
                # In a transaction of the store's own: another one came first, or its fate is not known.
                passing = passing or error.has_error_label("TransientTransactionError")
                if not passing or time.monotonic() > deadline:
                    raise
                await patience.pause()

    def are_open(self, queues: set[str]) -> bool:
        """Whether these queues are known and, not long ago, had no largest depth: an insert need not ask again."""
        seen = time.monotonic() - _OPEN_FOR
        return all(self._open.get(queue, 0.0) > seen for queue in queues)

    def saw_open(self, queues: set[str]) -> None:
        """Remember that these are."""
        self._open.update(dict.fromkeys(queues, time.monotonic()))

    def forget_open(self, queue: str) -> None:
        """Its largest depth was set here: look again."""
        self._open.pop(queue, None)

    def hold(self, doc: Doc) -> None:
        """Remember a claimed job until its end; the oldest are forgotten when somebody never says how they ended."""
        self.held[doc["_id"]] = doc
        if len(self.held) > _MOST_HELD:
            del self.held[next(iter(self.held))]

    async def last_write_endures(self) -> None:
        """Wait until all that a read can have shown by now is held by a majority, and cannot be rolled back."""
        # An update that changes nothing is acknowledged when the server's own last change is.
        await self.surely(lambda: self.collection("meta").update_one({"_id": ""}, {"$set": {"n": 0}}))

    async def count(self, asked: Doc, most: int | None = None, hint: str | None = None) -> int:
        """How many jobs match, counted no further than `most`.

        By the command of that name, which walks the index and does nothing else: the aggregation that the driver would
        send takes ten times as long. Without any filter it would answer with a figure that a crash can leave wrong.
        """
        command: Doc = {"count": self.name("jobs"), "query": asked or {"_id": {"$gte": ""}}}
        command |= {} if most is None else {"limit": most}
        command |= {} if hint is None else {"hint": hint}
        answer = await self.surely(lambda: self.jobs.database.command(command))
        return int(answer["n"])

    async def update_many(self, found: Doc, update: Doc | list[Doc]) -> int:
        """Change all of the jobs named by their ids that match, surely; returns how many the last try changed."""
        done = (await self.surely(lambda: self.jobs.update_many(found, update, hint=BY_ID))).modified_count
        self.written += done
        return done


async def in_parts(items: Sequence[T], work: Callable[[Sequence[T]], Coroutine[Any, Any, U]]) -> list[U]:
    """Do one thing to all of these, in equal parts at the same time: one command is one thread of the server.

    Also, while the server is busy with the first parts the later ones are made ready here.
    """
    if len(items) <= _PART:
        return [await work(items)] if items else []
    size = -(-len(items) // -(-len(items) // _PART))
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    done = await asyncio.gather(*map(work, parts), return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return cast("list[U]", done)  # no error among them


async def beside(work: Coroutine[Any, Any, T], prepare: Callable[[], U]) -> tuple[T, U]:
    """Carry out both: what comes after the server's work is made ready while it is at work."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.sleep(0)  # it is sent
        prepared = prepare()
        return await working, prepared
    finally:
        working.cancel()  # if it has not ended


class Room:
    """A part of the store that talks through the link."""

    def __init__(self, link: Link) -> None:
        self.link = link


def translate(error: Exception, place: Place) -> StoreError:
    """The driver's error in windlass's words, without the driver's view of the world."""
    where = place.address
    if isinstance(error, (BSONError, OverflowError, UnicodeError)):
        return ValueRefused(f"MongoDB cannot keep a value of this job: {str(error)[:200]}")
    if isinstance(error, (InvalidURI, ConfigurationError)):
        return StoreError(f"the settings for {where} do not fit the server or are wrong: {str(error)[:200]}")
    alone = isinstance(error, BulkWriteError) and not error.details.get("writeErrors")
    if alone or isinstance(error, WriteConcernError):
        return StoreUnavailable(f"{where} wrote, but could not tell that a majority has it: try again")
    if isinstance(error, OperationFailure):
        return _refused(error, where)
    if isinstance(error, ServerSelectionTimeoutError):
        return StoreUnavailable(
            f"no MongoDB server at {where} that takes writes answered within {place.timeout:g} s: check that it runs,"
            " can be reached, and has a primary"
        )
    if isinstance(error, ConnectionFailure) or getattr(error, "timeout", False):
        return StoreUnavailable(f"the connection to {where} was lost or too slow ({place.timeout:g} s): try again")
    return StoreError(f"the MongoDB driver could not carry this out on {where}: {type(error).__name__}")


def _refused(error: OperationFailure, where: str) -> StoreError:
    code = error.code or 0
    if code in _AUTH:
        return StoreUnavailable(f"{where} refused the user or password: check them, and authSource in the URL")
    if code in _FORBIDDEN:
        return StoreUnavailable(f"the user is not allowed to do this on {where}: give it the role readWrite there")
    if code in _BUSY or error.has_error_label("RetryableWriteError") or error.timeout:
        return StoreUnavailable(f"{where} could not do it now (error {code}): try again")
    if error.has_error_label("TransientTransactionError"):
        return StoreUnavailable(f"another transaction on {where} came first: abort this one and run it again")
    if code in _TOO_LARGE:
        return ValueRefused(f"MongoDB cannot keep a value of this job: it would be too large (error {code})")
    if code in (26, 27):  # NamespaceNotFound, IndexNotFound
        return SchemaMismatch(f"{where} does not have windlass's collections and indexes: run 'windlass migrate'")
    said = str((error.details or {}).get("errmsg", ""))[:200]
    return StoreError(f"MongoDB refused (error {code}): {said}")


guarded = guarding((PyMongoError, BSONError, OverflowError, UnicodeError), translate)
"""Let no driver error out of a room's method."""
