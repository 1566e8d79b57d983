"""Enqueue: drafts to the store. Single enqueues awaited at the same moment share one insert."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from typing import TYPE_CHECKING

from windlass.core.draft import make_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from windlass.core.draft import Draft
    from windlass.stores.contract import Inserted

_MOST_AT_ONCE = 1000
_COUNTER_BITS = 26
_RANDOM_BITS = 48


class Ids:
    """Job ids of one process: each sorts after the one before, so that jobs enqueued in order run in order."""

    __slots__ = ("_clock", "_count", "_lock", "_ms", "_random")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # of callers without an event loop there are many at once
        self._ms = 0
        self._count = 0
        self._random = secrets.randbits(_RANDOM_BITS)

    def __call__(self) -> str:
        ms = int(self._clock() * 1000)
        with self._lock:
            if ms > self._ms:
                self._ms = ms
                self._count = 0
                self._random = secrets.randbits(_RANDOM_BITS)
            else:
                # The same millisecond, or a clock set back: count on from the latest id.
                self._count += 1
                if self._count >> _COUNTER_BITS:
                    self._ms += 1
                    self._count = 0
            return make_id(self._ms, self._count << _RANDOM_BITS | self._random)


class Coalescer:
    """Gathers what is enqueued singly in one loop into shared inserts; each caller waits for its own to be durable."""

    def __init__(self, insert: Callable[[Sequence[Draft]], Awaitable[list[Inserted]]]) -> None:
        self._insert = insert
        self._waiting: list[tuple[Draft, asyncio.Future[Inserted]]] = []
        self._flusher: asyncio.Task[None] | None = None

    def put(self, draft: Draft) -> asyncio.Future[Inserted]:
        """Insert one draft together with whatever else is being enqueued now; to be awaited."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Inserted] = loop.create_future()
        self._waiting.append((draft, answer))
        if self._flusher is None or self._flusher.done():
            self._flusher = loop.create_task(self._flush(), name="windlass-enqueue")
        return answer

    async def close(self) -> None:
        """Wait until everything handed in has been written."""
        if self._flusher is not None and not self._flusher.done():
            await self._flusher

    async def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
            try:
                verdicts = await self._insert([draft for draft, _ in batch])
            except Exception as error:  # noqa: BLE001  # handed to each caller, who awaits it
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, answer), verdict in zip(batch, verdicts, strict=True):
                if not answer.done():
                    answer.set_result(verdict)
