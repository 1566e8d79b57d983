"""Promoting: jobs that are due go to their queues, as close to their time as the store tells; others expire."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.core.events import Hub, JobExpired, JobsPromoted, JobsUnblocked
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.stores.contract import Promoted, Store

AT_ONCE = 500
_LEAST = 0.05  # seconds between two looks, however many notices come


class Promoting:
    """The loop that wakes for the next due time."""

    def __init__(self, store: Store, hub: Hub, poll: float, promoted: Callable[[], None]) -> None:
        self._store, self._hub, self._poll, self._promoted = store, hub, poll, promoted
        self._steady = Steady(hub, "promote")
        self.wake = asyncio.Event()

    async def run(self, on_duty: Callable[[], Awaitable[None]]) -> None:
        """Promote until cancelled."""
        while True:
            await on_duty()
            self.wake.clear()
            await self._wait(await self.once())

    async def once(self) -> float:
        """Promote what is due; how long until something may be due again."""
        done = await self._steady.attempt(lambda: self.promote(AT_ONCE))
        if done is None:
            return 0.0
        if max(done.promoted, len(done.expired)) >= AT_ONCE:
            return 0.0
        if done.next_due is None:
            return self._poll
        moved = done.promoted or done.unblocked or done.expired
        # What is due and was left is held by somebody, a transaction that stays open for one.
        least = 0.0 if moved or done.next_due else _LEAST
        return max(least, min(self._poll, done.next_due.total_seconds()))

    async def promote(self, n: int) -> Promoted:
        """Promote at most `n`, tell of them and let them be claimed."""
        done = await self._store.jobs.promote(n)
        if done.promoted:
            self._hub.tell(JobsPromoted(done.promoted, done.queues))
        if done.unblocked:
            self._hub.tell(JobsUnblocked(done.unblocked))
        for job_id in done.expired:
            self._hub.tell(JobExpired(job_id))
        if done.promoted or done.unblocked:
            self._promoted()
        return done

    async def _wait(self, seconds: float) -> None:
        least = min(seconds, _LEAST)
        await asyncio.sleep(least)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds - least):
                await self.wake.wait()
