"""Keeping: what running jobs remember, written in batches: steps that end at the same moment share one write."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.errors import LeaseLost, StoreUnavailable
from windlass.core.kept import SAVED, size_of
from windlass.stores.contract import Keep, Lease, Verdict
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from windlass.core.events import Hub
    from windlass.stores.contract import Store
    from windlass.worker.slots import Running, Slots

MOST_AT_ONCE = 500
MOST_BYTES = 4 * 1024 * 1024
_HELD = 0.2  # seconds until what somebody holds is tried again, at most


class Wish(NamedTuple):
    """A value that a running job waits to have kept."""

    running: Running
    keep: Keep
    done: asyncio.Future[None]

    def grant(self) -> None:
        """It is durable."""
        if not self.done.done():
            self.done.set_result(None)

    def refuse(self, error: Exception) -> None:
        """It is not, and will not be."""
        if not self.done.done():
            self.done.set_exception(error)


class Keeping:
    """Writes kept values, one batch at a time; what comes meanwhile makes the next batch.

    A step of the only job that runs has nobody to share with: it is written in the handler's own task, while nothing
    else is. A task that wrote for it would cost it a turn of the loop on the way there and one on the way back.

    A store that is away is waited for as long as the job's lease lasts. A caller that no longer waits, because its
    handler was stopped, has its value written all the same: what was done is remembered.
    """

    def __init__(self, store: Store, hub: Hub, slots: Slots) -> None:
        self._store, self._slots = store, slots
        self._steady = Steady(hub, "keep what jobs remember")
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Wish] = []
        self._writing: list[Wish] = []
        self._held: list[Wish] = []
        self._some = asyncio.Event()
        self._over = False

    async def keep(self, running: Running, name: str, text: str) -> None:
        """Return when the value is durable; LeaseLost when the job is no longer this worker's."""
        if self._over:
            raise lost(running)
        keep = Keep(Lease(running.job.id, running.job.lease_token), name, text)
        wish = Wish(running, keep, self._loop.create_future())
        if self._may_go_straight(name):
            await self._write_alone(wish)
        else:
            self._waiting.append(wish)
            self._some.set()
        await wish.done

    def _may_go_straight(self, name: str) -> bool:
        # Not the cursor: a write that is broken off with its handler may still arrive after those that follow it, which
        # changes nothing for a step, whose value stays the same, and would set the cursor back.
        return self._slots.taken == 1 and name != SAVED and not self._writing and not self._waiting

    async def _write_alone(self, wish: Wish) -> None:
        self._writing = [wish]
        try:
            await self._write(self._writing)
        except BaseException:  # broken off: it is written again
            self._waiting.append(wish)
            raise
        finally:
            self._writing = []
            if self._over:
                wish.refuse(lost(wish.running))
            elif self._waiting:
                self._some.set()

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            while True:
                await self._some.wait()
                self._some.clear()
                while self._waiting and not self._writing:
                    self._writing = self._next()
                    await self._write(self._writing)
                    self._writing = []
        finally:
            self._over = True
            for wish in (*self._writing, *self._waiting, *self._held):
                wish.refuse(lost(wish.running))

    def _next(self) -> list[Wish]:
        """The first that wait, as many as one call may carry."""
        size, n = 0, 0
        for wish in self._waiting[:MOST_AT_ONCE]:
            size += size_of(wish.keep.name, wish.keep.json)
            if n and size > MOST_BYTES:
                break
            n += 1
        batch, self._waiting = self._waiting[:n], self._waiting[n:]
        return batch

    async def _write(self, batch: list[Wish]) -> None:
        live = [wish for wish in batch if not _is_given_up(wish)]
        if not live:
            return
        answer = await self._steady.attempt(lambda: self._sent(live))
        match answer:
            case None:
                self._waiting[:0] = live  # the store is away
            case list():
                self._finish(live, answer)
            case Exception() if len(live) == 1:
                live[0].refuse(answer)
            case Exception():
                for wish in live:  # something in the batch cannot be written: find it, and let the others through
                    await self._write([wish])

    async def _sent(self, batch: list[Wish]) -> list[Verdict] | Exception:
        try:
            return await self._store.jobs.keep([wish.keep for wish in batch])
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # told to the handler whose value it is
            return error

    def _finish(self, batch: list[Wish], verdicts: list[Verdict]) -> None:
        for wish, verdict in zip(batch, verdicts, strict=True):
            match verdict:
                case Verdict.APPLIED:
                    wish.grant()
                case Verdict.HELD:
                    self._set_aside(wish)
                case _:
                    wish.refuse(lost(wish.running))

    def _set_aside(self, wish: Wish) -> None:
        self._held.append(wish)
        self._loop.call_later(random.uniform(0.5, 1) * _HELD, self._again, wish)

    def _again(self, wish: Wish) -> None:
        self._held.remove(wish)
        self._waiting.append(wish)
        self._some.set()


def _is_given_up(wish: Wish) -> bool:
    running = wish.running
    over = running.fenced or running.reason == "fence" or time.monotonic() > running.valid_until
    if over:
        wish.refuse(lost(running))
    return over


def lost(running: Running) -> LeaseLost:
    """The error of a handler whose job is no longer this worker's."""
    job = running.job
    return LeaseLost(
        f"job {job.id} is no longer held by lease {job.lease_token}: nothing that this attempt says counts any more,"
        " another worker goes on from what was kept before"
    )
