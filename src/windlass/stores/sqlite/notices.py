"""Wake-ups on SQLite: at once from this process, by `PRAGMA data_version` from others.

The pragma costs microseconds and changes whenever another connection commits; what was told is then read from the news.
A thread of its own asks every few milliseconds while somebody listens, so a blocked event loop or a long write does not
delay it. Writer and watcher both say how far the news have come: the first of them tells the news, once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from windlass.core.errors import SchemaMismatch, StoreError
from windlass.stores.contract import ANYTHING, Notice
from windlass.stores.sqlite.news import News, Told, read

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
        self._listeners: list[tuple[asyncio.AbstractEventLoop, Callable[[Notice], None]]] = []
        self._seen: Told | None = None
        self._watcher: threading.Thread | None = None
        self._stop = threading.Event()
        self._healthy = True

    @property
    def healthy(self) -> bool:
        """Whether the watcher could look at the file the last time it tried."""
        return self._healthy

    async def publish(self, notice: Notice = ANYTHING) -> None:
        """Write it down for the listeners on this file; the draw is made anew there."""
        await self._engine.write(_nothing, tell=lambda _result, _now: News.of(notice))

    def learn(self, told: Told) -> None:
        """Tell every listener what is new in this, from any thread."""
        with self._lock:
            seen = self._seen
            if seen is not None and told.length <= seen.length:
                return  # writer or watcher came first with it
            self._seen = told
            if self._listeners:
                self._tell([ANYTHING] if seen is None else told.after(seen))

    def _tell(self, notices: list[Notice]) -> None:
        for loop, wake in self._listeners:
            for notice in notices:
                try:
                    loop.call_soon_threadsafe(wake, notice)
                except RuntimeError:
                    break  # its loop has closed; leaving subscribe() removes it

    @asynccontextmanager
    async def subscribe(self, wake: Callable[[Notice], None]) -> AsyncGenerator[None, None]:
        """Call `wake` after changes, until left."""
        if self._seen is None:
            with suppress(SchemaMismatch):  # nobody has anything to tell there yet
                self._begin(await self._engine.read(lambda db, _: read(db, self._engine.sql)))
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

    def follow(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        """Changes nothing: every listener on the file is woken by every change of it."""

    def _begin(self, told: Told) -> None:
        with self._lock:
            self._seen = self._seen or told

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
            if version == seen:
                continue
            told = read(db, self._engine.sql)
            if seen == -1:
                self._opened()
            seen = version
            self._healthy = True
            self.learn(told)

    def _opened(self) -> None:
        with self._lock:
            self._tell([ANYTHING])  # what happened while nobody watched


def _nothing(_db: sqlite3.Connection, _now: int) -> None:
    return
