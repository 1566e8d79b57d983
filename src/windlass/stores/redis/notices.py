"""Wake-ups on Redis: scripts publish to a channel, which a connection of its own listens to.

A notice says what it is about (`contract.Notice`). That of a single job goes to the channel of its lane, and so only to
those who follow it. The listener never gives up: after any fault it wakes everybody
once, because something may have been missed, and connects anew with a capped pause. At first, and whenever it has heard
nothing for a while, it publishes a word to itself: if that does not come back, push is not healthy and polling takes
over. An answer to a ping would not do: it shows that the connection lives, not that notices pass.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from windlass.core.errors import WindlassError
from windlass.stores.contract import ANYTHING, About, Notice
from windlass.stores.listeners import Listeners
from windlass.stores.redis.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from windlass.stores.redis.connection import Link

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_QUIET = 10.0  # seconds without a notice after which one is sent to oneself
_HEARD = 2.0  # seconds in which it has to be sent, and as many in which it has to come back
_PROBE = "?"
_GATHER = 0.002  # seconds: what comes so soon after a wake-up is told together
_MOST_DRAWS = 16  # notices of something claimable that are told one by one
_FAULTS = (RedisError, OSError, WindlassError)


class RedisNotices(Room):
    """See `contract.Notices` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._listeners = Listeners()
        self._watcher: asyncio.Task[None] | None = None
        self._healthy = False
        self._gathering = False
        self._gathered: list[Notice] = []

    @property
    def healthy(self) -> bool:
        """Whether the channel is open and has answered."""
        return self._healthy

    @guarded
    async def publish(self, notice: Notice = ANYTHING) -> None:
        """Tell every listener."""
        await self.link.command("PUBLISH", self._channel(notice.lane), notice.text())

    @asynccontextmanager
    async def subscribe(self, wake: Callable[[Notice], None]) -> AsyncGenerator[None, None]:
        """Call `wake` after changes, until left."""
        try:
            with self._listeners.joined(wake):
                if self._watcher is None:
                    self._watcher = asyncio.create_task(self._watch(), name="windlass-redis-notices")
                yield
        finally:
            if not self._listeners:
                await self.close()

    def follow(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        """Follow only these lanes from the next moment on."""
        self._listeners.lanes.follow(wake, lanes)

    async def close(self) -> None:
        """Stop listening."""
        watcher, self._watcher = self._watcher, None
        self._healthy = False
        if watcher is not None and watcher.get_loop() is asyncio.get_running_loop():
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while self._wanted():
            with suppress(*_FAULTS):
                if await self._follow():
                    pause = _FIRST_PAUSE
            self._healthy = False
            self._listeners.tell(ANYTHING)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _wanted(self) -> bool:
        # A driver may swallow a cancellation that meets an answer on its way: being asked to end is not enough.
        return self._watcher is asyncio.current_task()

    async def _follow(self) -> bool:
        """Listen until the connection fails; returns whether it ever worked."""
        if self.link.nodes.clustered:
            await self.link.locate()  # every node tells what is published on any; this one answers
        client = self.link.connect()
        channel = client.pubsub()
        try:
            async with asyncio.timeout(self.link.place.timeout):
                await channel.subscribe(self._channel(None))
            async with self._listeners.lanes.kept(partial(self._follow_lanes, channel), _FAULTS):
                return await self._hear(channel)
        finally:
            self._healthy = False
            await channel.aclose()
            await client.aclose()

    async def _hear(self, channel: Any) -> bool:
        worked = False
        while self._wanted():
            message = await _next(channel, _QUIET) if worked else None
            if message is None:
                message = await self._probe(channel)
                if message is None:
                    break
            if not worked:
                self._healthy = worked = True
                self._listeners.tell(ANYTHING)
            elif message["data"] != _PROBE.encode():  # another's, which is as good as our own, but no news
                await self._ring_soon(Notice.of(message["data"].decode(errors="replace")))
        return worked

    async def _follow_lanes(self, channel: Any, more: list[int], less: list[int]) -> None:
        if more:
            await channel.subscribe(*map(self._channel, more))
        if less:
            await channel.unsubscribe(*map(self._channel, less))

    def _channel(self, lane: int | None) -> str:
        return self.link.key("notices") if lane is None else self.link.key(f"notices:{lane}")

    async def _probe(self, channel: Any) -> Any:
        """The notice that came after one was sent to oneself; None if none did."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEARD):
                await self.link.command("PUBLISH", self._channel(None), _PROBE)
        return await _next(channel, _HEARD)

    async def _ring_soon(self, notice: Notice) -> None:
        """Ring at once, and for all that comes in the next moment together at its end."""
        if self._gathering:
            self._gathered.append(notice)
            return
        self._gathering = True
        self._listeners.tell(notice)
        asyncio.get_running_loop().call_later(_GATHER, self._tell_gathered)
        # Subscribers run first, with one turn of the loop to hear of it and one to follow: a claim is on its way then
        # before this connection is asked for the next notice.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _tell_gathered(self) -> None:
        self._gathering = False
        gathered, self._gathered = self._gathered, []
        for notice in coalesced(gathered):
            self._listeners.tell(notice)
        if gathered:
            self._gathering = True
            asyncio.get_running_loop().call_later(_GATHER, self._tell_gathered)


async def _next(channel: Any, within: float) -> Any:
    """The next notice; None if none came in time."""
    over = time.monotonic() + within
    while (left := over - time.monotonic()) > 0:
        message = await channel.get_message(timeout=left)
        if message is None or message["type"] == "message":  # and no answer to a subscription
            return message
    return None


def coalesced(notices: Sequence[Notice]) -> list[Notice]:
    """What is told of a moment: of what is not claimable once is enough, and so for much that is.

    Each draw is kept as long as there are few: listeners that put others together would choose among themselves by
    different draws.
    """
    claimable = [notice for notice in notices if notice.about is About.CLAIMABLE]
    if len(claimable) > _MOST_DRAWS:
        queues = {notice.queue for notice in claimable}
        queue = queues.pop() if len(queues) == 1 else None
        claimable = [replace(claimable[-1], queue=queue, n=sum(notice.n for notice in claimable))]
    others = {notice.about: notice for notice in notices if notice.about is not About.CLAIMABLE}
    return [*claimable, *others.values()]
