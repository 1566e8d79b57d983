"""The one synchronous door: code without an event loop enqueues through one loop in one thread."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.client.client import Client
from windlass.client.locks import Lock, lock

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from contextlib import AbstractAsyncContextManager
    from datetime import timedelta

    from windlass.client.handle import Handle
    from windlass.core.draft import Draft
    from windlass.core.payload import Codec

T = TypeVar("T")


class Door:
    """Runs client calls for synchronous callers, on a store of its own; started at first use."""

    def __init__(self, client: Client) -> None:
        self._client = Client(client.store.sibling(), client.registry, client.hub, client.defaults)
        self._outside = client
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def enqueue(self, draft: Draft, codec: Codec | None) -> Handle[Any]:
        """Enqueue and wait until it is durable; the handle given is for the caller's own loop."""
        made = self.run(self._client.enqueue(draft, codec))
        return type(made)(self._outside, made.id, created=made.created, codec=codec)

    def lock(
        self, name: str, ttl: float | timedelta, wait: float | timedelta | None
    ) -> AbstractAsyncContextManager[Lock]:
        """A lock to enter and leave with `run`."""
        return lock(self._client, name, ttl, wait)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine in the door's loop and wait for what it gives."""
        return asyncio.run_coroutine_threadsafe(call, self._started()).result()

    def close(self) -> None:
        """Close the store and end the thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(self._client.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="windlass-blocking", daemon=True)
                self._thread.start()
            return self._loop
