"""Wake-ups on SQLite: at once from this process, by `PRAGMA data_version` from others.

The pragma costs microseconds and changes whenever another connection commits. A thread of its own asks every few
milliseconds while somebody listens, so a blocked event loop or a long write does not delay it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from windlass.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from windlass.stores.sqlite.engine import Engine

INTERVAL = 0.005
_AFTER_FAULT = 1.0


class SqliteNotices:
    """See `contract.Notices` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._listeners: list[tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = []
        self._watcher: threading.Thread | None = None
        self._stop = threading.Event()
        self._healthy = True

    @property
    def healthy(self) -> bool:
        """Whether the watcher could look at the file the last time it tried."""
        return self._healthy

    async def publish(self) -> None:
        """Wake whoever listens in this process; others see the commits themselves."""
        self.tell()

    def tell(self) -> None:
        """Wake every listener, from any thread."""
        with self._lock:
            listeners = tuple(self._listeners)
        for loop, wake in listeners:
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:
                continue  # its loop has closed; it will be removed by whoever leaves subscribe()

    @asynccontextmanager
    async def subscribe(self, wake: Callable[[], None]) -> AsyncGenerator[None, None]:
        """Call `wake` after changes, until left."""
        listener = (asyncio.get_running_loop(), wake)
        with self._lock:
            self._listeners.append(listener)
        self._watch()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)
                last = not self._listeners
            if last:
                await self.close()

    async def close(self) -> None:
        """Stop watching."""
        watcher, self._watcher = self._watcher, None
        self._stop.set()
        if watcher is not None:
            await asyncio.to_thread(watcher.join)

    def _watch(self) -> None:
        if self._watcher is None and not self._engine.place.in_memory:
            self._stop = threading.Event()
            self._watcher = threading.Thread(
                target=self._run, args=(self._stop,), name="windlass-sqlite-notices", daemon=True
            )
            self._watcher.start()

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                db = self._engine.connect()
            except StoreError:
                self._healthy = False
                stop.wait(_AFTER_FAULT)
                continue
            try:
                self._poll(db, stop)
            except sqlite3.Error:
                self._healthy = False
                stop.wait(_AFTER_FAULT)
            finally:
                db.close()

    def _poll(self, db: sqlite3.Connection, stop: threading.Event) -> None:
        seen = -1
        cursor = db.cursor()
        # A plain sleep and one cursor: this runs two hundred times a second in a worker that has nothing else to do.
        while not stop.is_set():
            time.sleep(INTERVAL)
            (version,) = cursor.execute("PRAGMA data_version").fetchone()
            self._healthy = True
            if version != seen:
                seen = version
                self.tell()
