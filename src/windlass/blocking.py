"""The one synchronous door: calls of code without an event loop run in one loop in one thread."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.client.client import Client

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class Door:
    """Runs calls of a client for synchronous callers, on a store of its own; started at first use."""

    def __init__(self, client: Client) -> None:
        self._outside = client
        self._behind = Client(
            client.store.sibling(), client.registry, client.hub, client.defaults, lambda: self, client.seals
        )
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine in the door's loop and wait for what it gives; who is interrupted waiting cancels it."""
        context = copy_context()
        context.run(self._outside.behind.set, self._behind)
        running = context.run(asyncio.run_coroutine_threadsafe, call, self._started())
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def close(self) -> None:
        """Close the store and end the thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(self._behind.close(), loop).result()
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
