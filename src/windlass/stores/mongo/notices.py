"""Wake-ups on MongoDB: at once from this store, by a change stream from others.

The stream carries nothing but the fact of a change, and never gives up: after any fault it forgets where it was, wakes
everybody once, because something may have been missed, and opens anew with a capped pause. While it is closed, and on a
standalone server, which has none, only polling finds what others changed; `healthy` says so.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from pymongo.errors import PyMongoError

from windlass.core.errors import StoreError
from windlass.stores.mongo.connection import Room

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from windlass.stores.mongo.connection import Doc, Link

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_AWAIT_MS = 1000  # how long the server holds a question about changes: an answer as often shows that it is there
_GATHER = 0.002  # seconds: what comes so soon after a wake-up is told together

_PER_CHANGE = 0.0003  # seconds not followed for each job changed here meanwhile
_LONGEST_BREAK = 0.25
_MANY = 100  # jobs changed here between two looks: more is not read in the log any more, but passed over

_UPDATED = "updateDescription.updatedFields.wake"
_GONE = ("drop", "rename", "dropDatabase", "invalidate")


def worth_waking(link: Link) -> Doc:
    """Which changes are news: those whose writer said so, by the field `wake`. The server sorts out all others."""
    ours = [link.name(of) for of in ("jobs", "queues", "schedules")]
    return {
        "$or": [
            {"ns.coll": {"$in": ours}, "operationType": "insert", "fullDocument.wake": {"$exists": True}},
            {"ns.coll": {"$in": ours}, "operationType": "update", _UPDATED: {"$exists": True}},
            {"ns.coll": link.name("jobs"), "operationType": {"$in": _GONE[:2]}},
            {"operationType": {"$in": _GONE[2:]}},
        ]
    }


class MongoNotices(Room):
    """See `contract.Notices` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._listeners: list[tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = []
        self._watcher: asyncio.Task[None] | None = None
        self._healthy = False
        self._gathering = self._more = False

    @property
    def healthy(self) -> bool:
        """Whether the change stream is open and answered the last time."""
        return self._healthy

    async def publish(self) -> None:
        """Wake whoever listens on this store; others see the change itself."""
        self.tell()

    def tell(self) -> None:
        """Wake every listener, from any thread."""
        for loop, wake in tuple(self._listeners):
            with suppress(RuntimeError):  # its loop has closed; whoever leaves subscribe() removes it
                loop.call_soon_threadsafe(self._ring, (loop, wake))

    def _ring(self, listener: tuple[asyncio.AbstractEventLoop, Callable[[], None]]) -> None:
        if listener in self._listeners:  # it may have left since
            listener[1]()

    @asynccontextmanager
    async def subscribe(self, wake: Callable[[], None]) -> AsyncGenerator[None, None]:
        """Call `wake` after changes, until left."""
        listener = (asyncio.get_running_loop(), wake)
        self._listeners.append(listener)
        if self._watcher is None and not self.link.standalone:
            self._watcher = asyncio.create_task(self._watch(), name="windlass-mongo-notices")
        try:
            yield
        finally:
            self._listeners.remove(listener)
            if not self._listeners:
                await self.close()

    async def close(self) -> None:
        """Stop watching."""
        watcher, self._watcher = self._watcher, None
        self._healthy = False
        if watcher is not None:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while self._wanted():
            try:
                await self._follow()
                pause = _FIRST_PAUSE
            except (PyMongoError, StoreError):
                pause = min(pause * 2, _LONGEST_PAUSE)
            # Never from where the stream broke off: that place may be gone for good. What was missed, a poll finds.
            self._healthy = False
            self.tell()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    async def _follow(self) -> None:
        known = self.link.name_of_news
        news = {"_id": 1, "operationType": 1, "wake": {"$ifNull": ["$fullDocument.wake", f"${_UPDATED}"]}}
        stages: list[Doc] = [{"$match": worth_waking(self.link)}, {"$project": news}]
        database = self.link.client[self.link.place.database]
        while self._wanted():
            # Following costs the server a wake-up per change in its log, ours among them: a store that writes much
            # finds by itself what there is to do, and follows only now and then, from where the log is by then.
            await self._rest()
            async with await database.watch(stages, max_await_time_ms=_AWAIT_MS) as stream:
                self._healthy = True
                self.tell()  # what was changed before it was open, a poll finds
                while self._wanted() and self.link.written < _MANY:
                    await self._rest()
                    change = await stream.try_next()
                    if not stream.alive or (change is not None and change["operationType"] in _GONE):
                        return
                    if change is not None and not change["wake"].startswith(known):
                        self._tell_soon()  # what this store did it has told already

    async def _rest(self) -> None:
        rest, self.link.written = self.link.written * _PER_CHANGE, 0
        await asyncio.sleep(min(rest, _LONGEST_BREAK))

    def _wanted(self) -> bool:
        # The driver may swallow a cancellation that meets an answer on its way: being asked to end is not enough.
        return self._watcher is asyncio.current_task()

    def _tell_soon(self) -> None:
        """Tell at once, and of all that comes in the next moment together at its end."""
        if self._gathering:
            self._more = True
            return
        self._gathering, self._more = True, False
        self.tell()
        asyncio.get_running_loop().call_later(_GATHER, self._gathered)

    def _gathered(self) -> None:
        self._gathering = False
        if self._more:
            self._tell_soon()
