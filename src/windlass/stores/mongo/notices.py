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
_GATHER = 0.002  # many changes at once are one wake-up

_UPDATED = "updateDescription.updatedFields"
# What can make a job claimable, ended or to be stopped. That somebody claimed one is no news to anybody.
WORTH_WAKING: Doc = {
    "$or": [
        {"operationType": {"$nin": ["update", "delete"]}},
        {f"{_UPDATED}.status": {"$exists": True, "$ne": "processing"}},
        {f"{_UPDATED}.cancel_requested_at": {"$exists": True}},
        {f"{_UPDATED}.progress": {"$exists": True}},
    ]
}


class MongoNotices(Room):
    """See `contract.Notices` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._listeners: list[tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = []
        self._watcher: asyncio.Task[None] | None = None
        self._healthy = False

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
        while True:
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
        stages: list[Doc] = [{"$match": WORTH_WAKING}, {"$project": {"_id": 1}}]
        async with await self.link.jobs.watch(stages, max_await_time_ms=_AWAIT_MS) as stream:
            self._healthy = True
            self.tell()
            while stream.alive:
                if await stream.try_next() is not None:
                    self.tell()
                    await asyncio.sleep(_GATHER)
