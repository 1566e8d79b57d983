"""The connections of the Redis store: a few per opened store, with deadlines, and errors in windlass's words.

Everything that changes something is one script: it happens as a whole or not at all. A script that the server has
forgotten, after a restart or a failover, is sent again with its text.

In a cluster the node that has the keys is found and followed. While they are on their way from one node to another
(ASK), nothing may be done to them on either, because a script needs them all: it waits until they have arrived. The one
key that scripts name is never written, so that neither node takes them for complete.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from redis import exceptions as rd
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from windlass.core.errors import SettingsError, StoreError, StoreUnavailable, ValueRefused, WindlassError
from windlass.core.redaction import why_not
from windlass.stores.guarding import guarding
from windlass.stores.patience import Patience
from windlass.stores.redis.cluster import Nodes
from windlass.stores.redis.exchange import Exchange
from windlass.stores.redis.scripting import script

Value: TypeAlias = str | bytes | int
Client: TypeAlias = Any
"""redis.asyncio.Redis: half of its methods have no types"""
Answer: TypeAlias = Any
"""what a script returned: bytes, numbers and lists of them"""

OLDEST = (6, 2)
"""with effects replication by default, and ZRANGE as scripts use it"""
_MOST = 8  # connections of one opened store: a claim, a settlement, enqueues, chores and views at the same time
_READ = 256 * 1024  # bytes read at once: the answer to a claim is a long one
_CONNECT = 5.0  # seconds to make one; less than an operation may take, so that it can try again

_LOST = (rd.ConnectionError, rd.TimeoutError, OSError)
"""the connection is gone, and with it the knowledge whether what was asked has happened"""
_DENIED = (rd.AuthenticationError, rd.AuthorizationError, rd.NoPermissionError)
_CLUSTER = frozenset({"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"})
_AGAIN = _CLUSTER | {"READONLY", "LOADING", "BUSY", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED"}
"""nothing has happened, and in a moment it may"""
# Before 7.0, a refusal inside a script comes wrapped: "Error running script (…): @user_script: 12: -OOM …".
_INSIDE = re.compile(r"@user_script: ?\d+: -?([A-Z]+) ")
_PREFIXES: dict[type[Exception], str] = {
    rd.ReadOnlyError: "READONLY",
    rd.OutOfMemoryError: "OOM",
    rd.BusyLoadingError: "LOADING",
    rd.TryAgainError: "TRYAGAIN",
    rd.MasterDownError: "MASTERDOWN",
    rd.ClusterDownError: "CLUSTERDOWN",
    rd.AskError: "ASK",
    rd.MovedError: "MOVED",
}
"""for these the driver cuts the word off"""


def word_of(error: Exception) -> str:
    """The word that a server's error begins with, wherever it stands."""
    known = _PREFIXES.get(type(error))
    if known:
        return known
    inside = _INSIDE.search(str(error))
    return inside[1] if inside else str(error).partition(" ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the keys are."""

    url: str
    address: str
    """the same without secrets"""
    namespace: str = "windlass"
    timeout: float = 10.0
    """seconds an operation may take in all, waiting for a connection included"""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """what else the driver is told when it connects: taken over from a client"""
    most: int | None = None
    """at most so many connections for commands, if fewer than windlass would make"""


class Link:
    """One opened store: its connections. Belongs to the loop that opened it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.prefix = f"{{{place.namespace}}}:"
        self.nodes = Nodes(place.url)
        self._exchanges: dict[str, Exchange] = {}
        """one for every node that was asked; outside of a cluster there is one"""
        self._open = False
        self._most = _MOST if place.most is None else max(1, min(place.most, _MOST))
        self._room = asyncio.Semaphore(self._most)
        self._loop: asyncio.AbstractEventLoop | None = None

    def connect(self) -> Client:
        """A client of its own, not yet connected."""
        driver: Client = Redis
        try:
            return driver.from_url(
                self.nodes.at,
                **self.place.settings,
                socket_connect_timeout=min(_CONNECT, self.place.timeout),
                # What may take how long is said in `_surely`. The driver's own way makes a task of every command, in
                # which Python 3.11 loses a cancellation that meets its end: a worker would then never stop.
                socket_timeout=None,
                socket_read_size=_READ,
                # The driver must not repeat by itself: what may be repeated is said here, and how often.
                retry=Retry(NoBackoff(), 0),
                client_name="windlass",
                protocol=2,
            )
        except ValueError as error:
            why = why_not(self.place.url, error)
            raise SettingsError(f"the store URL {self.place.address} cannot be used: {why}") from None

    async def start(self) -> None:
        """Make the client; the first command connects it."""
        if not self._open:
            self._renew()
            self._at_hand()

    async def stop(self) -> None:
        """Close the connections."""
        exchanges, self._exchanges, self._open = self._exchanges, {}, False
        if self._loop is asyncio.get_running_loop():
            for exchange in exchanges.values():
                await exchange.client.aclose()

    def _renew(self) -> None:
        self._open, self._exchanges = True, {}
        self._loop, self._room = asyncio.get_running_loop(), asyncio.Semaphore(self._most)

    def _at_hand(self) -> Exchange:
        if not self._open:
            raise StoreError(f"the store {self.place.address} is not open: use it inside 'async with app:'")
        if self._loop is not asyncio.get_running_loop():
            self._renew()  # an earlier loop has ended with its connections
        exchange = self._exchanges.get(self.nodes.at)
        if exchange is None:
            exchange = self._exchanges[self.nodes.at] = Exchange(self.connect())
        return exchange

    def key(self, name: str) -> str:
        """A key of this namespace."""
        return self.prefix + name

    async def command(self, *words: Value) -> Answer:
        """One command that may safely be done twice."""
        return await self._surely(lambda exchange, _: exchange.client.execute_command(*words))

    async def locate(self) -> None:
        """Find the node of a cluster that has the keys: what names no key is answered by any."""
        await self.command("EXISTS", self.key("meta"))

    async def learn(self) -> None:
        """Ask for the other nodes, in case that this one goes away."""
        with suppress(rd.RedisError, OSError):  # only a help: a user may be forbidden to ask
            async with asyncio.timeout(_CONNECT):
                self.nodes.learn(await self._at_hand().client.execute_command("CLUSTER", "SLOTS"))

    async def run(self, name: str, values: Sequence[Value] = ()) -> Answer:
        """One script that may safely be run twice: its writes are fenced by tokens or known by ids."""
        return await self._surely(lambda exchange, _: self._eval(exchange, name, values))

    async def ask(self, name: str, values: Callable[[bool], Sequence[Value]]) -> Answer:
        """The same for a script that has to know whether it is asked again, because an answer was lost."""
        return await self._surely(lambda exchange, again: self._eval(exchange, name, values(again)))

    async def once(self, name: str, values: Sequence[Value]) -> Answer:
        """One script that would answer otherwise if it were run again: it is told, and answers as the first time."""
        mark = secrets.token_hex(8)
        return await self.ask(name, lambda again: [*values, mark, int(again)])

    async def _eval(self, exchange: Exchange, name: str, values: Sequence[Value]) -> Answer:
        text, digest = script(name)
        try:
            return await exchange.ask(("EVALSHA", digest, 1, self.prefix, *values))
        except rd.NoScriptError:
            return await exchange.ask(("EVAL", text, 1, self.prefix, *values))

    async def _surely(self, work: Callable[[Exchange, bool], Coroutine[Any, Any, Answer]]) -> Answer:
        """Work until it is done or the time is over, again after every lost connection.

        A command that is cancelled or takes too long ends its connection: the driver closes it, so that a late answer
        is never taken for another's.
        """
        loop = asyncio.get_running_loop()
        deadline, again, hops = loop.time() + self.place.timeout, False, 0
        refusal: Exception | None = None
        patience = Patience()
        while True:
            exchange, asked = self._at_hand(), self.nodes.at
            try:
                async with asyncio.timeout_at(deadline), self._room:
                    return await work(exchange, again)
            except _DENIED:
                raise
            except (rd.RedisError, OSError) as error:
                word = word_of(error)
                lost = isinstance(error, _LOST) and word not in _AGAIN  # for the driver, LOADING is a lost connection
                if not (lost or word in _AGAIN) or not self._open:
                    raise
                over = loop.time() >= deadline
                if lost and (again or over):  # not at the first loss: a connection alone may have been cut
                    self.nodes.turn_from(asked)
                if over:
                    raise refusal or error from None  # what was refused all the time says more than that time is over
                if isinstance(error, rd.MovedError):
                    hops += 1
                    if self.nodes.moved(str(error)):
                        await self.learn()
                    if hops == 1:
                        continue
                elif not lost:
                    refusal = error
                again = again or lost
                if word == "READONLY":
                    # Its server has become a replica: the name may lead to another one by now.
                    await exchange.hang_up()
            await patience.pause()


class Room:
    """A part of the store that talks through the link."""

    def __init__(self, link: Link) -> None:
        self.link = link


def translate(error: Exception, place: Place) -> WindlassError:
    """The driver's error in windlass's words, without the driver's view of the world."""
    where, word = place.address, word_of(error)
    if isinstance(error, UnicodeEncodeError):
        return ValueRefused(f"Redis cannot keep a value of this job: {str(error)[:200]}")
    if "exceeds maximum allowed size" in str(error):
        return ValueRefused(f"Redis cannot keep a value of this job: {str(error)[:200]}")
    if isinstance(error, _DENIED) or word in ("NOAUTH", "WRONGPASS", "NOPERM"):
        return StoreUnavailable(f"{where} refused the user, the password or a command: check them in the URL and ACL")
    if word == "OOM":
        return StoreUnavailable(
            f"{where} has reached its maxmemory: nothing was written; raise it, or prune what has ended, and try again"
        )
    if word == "READONLY":
        return StoreUnavailable(f"{where} is a read-only replica: give the address of the primary")
    if word == "MISCONF":
        return StoreUnavailable(f"{where} cannot write its own file and takes no changes: look at its log and its disk")
    if word == "SELECT":
        return SettingsError(f"{where} is a node of a cluster, which has database 0 only: let the URL end with /0")
    if word in ("ASK", "TRYAGAIN"):
        return StoreUnavailable(f"{where} is moving the keys from one node to another: try again when that is over")
    if word in _AGAIN:
        return StoreUnavailable(f"{where} could not do it now ({word}): try again")
    if isinstance(error, (TimeoutError, rd.TimeoutError)):
        return StoreUnavailable(f"{where} did not answer within {place.timeout:g} s: try again")
    if isinstance(error, _LOST):
        return StoreUnavailable(
            f"no Redis answers at {where}, or the connection was lost: check that it runs and can be reached, then"
            " try again"
        )
    return StoreError(f"Redis refused: {str(error).partition(chr(10))[0][:200]}")


guarded = guarding((rd.RedisError, OSError, UnicodeError), translate)
"""Let no driver error out of a room's method."""
