"""Settling: the ends of attempts, written in batches while the next jobs are being claimed."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.errors import StoreUnavailable, ValueRefused
from windlass.core.events import Hub, ResultRefused, WorkerWarned
from windlass.core.history import Happened
from windlass.core.job import Error
from windlass.core.outcome import Failed
from windlass.core.redaction import redact
from windlass.core.transition import decide, honour_cancel
from windlass.core.wording import plural
from windlass.stores.contract import Verdict
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from windlass.core.gathering import Ended
    from windlass.core.transition import Transition
    from windlass.stores.contract import Store
    from windlass.worker.progress import Reporting
    from windlass.worker.slots import Running, Slots

MOST_AT_ONCE = 500
PATIENCE = 5.0
"""seconds that a worker which stops goes on trying to write what is left while its store is away"""
_FIRST, _LONGEST = 0.1, 2.0  # seconds until what somebody holds is tried again


class End(NamedTuple):
    """How an attempt ended, until the store has said what becomes of it."""

    running: Running
    transition: Transition
    at: float


class Settling:
    """Writes transitions, one batch at a time; what ends meanwhile makes the next batch.

    An end is kept until the store has given a verdict, however late: a job that is another's by then is refused by its
    token, and that it came at all shows that this worker lives. Where somebody's transaction holds the job, the end is
    tried again apart from the others, which do not wait for it.
    """

    def __init__(self, store: Store, slots: Slots, hub: Hub, worker_id: str, progress: Reporting) -> None:
        self._store, self._slots, self._hub, self._worker_id = store, slots, hub, worker_id
        self._progress = progress
        self._steady = Steady(hub, "settle")
        self._waiting: list[End] = []
        self._held: list[End] = []
        self._held_until = 0.0
        self._pause = _FIRST
        self._some = asyncio.Event()
        self._most = MOST_AT_ONCE
        self._puzzled = False
        self._closing: float | None = None
        self.pending = 0
        self.done = 0
        self.released = 0

    def put(self, running: Running, transition: Transition) -> None:
        """Take the end of an attempt; it will be written, or refused because the lease is another's by then."""
        self._waiting.append(End(running, transition, time.monotonic()))
        self.pending += 1
        self._some.set()

    def close(self) -> None:
        """Write what is left and end; soon, even if the store does not answer."""
        self._closing = time.monotonic()
        self._some.set()

    async def run(self) -> None:
        """Write until closed and nothing is left."""
        while True:
            batch = self._next()
            if batch:
                answered = await self._write(batch)
                if self._is_late() and (not answered or (self._held and not self._waiting)):
                    self._give_up()
            elif self._closing is not None and not self._held:
                return
            else:
                await self._until_due()

    def _is_late(self) -> bool:
        return self._closing is not None and time.monotonic() > self._closing + PATIENCE

    def _next(self) -> list[End]:
        if self._held and time.monotonic() >= self._held_until:
            batch, self._held = self._held[: self._most], self._held[self._most :]
        else:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        return batch

    async def _until_due(self) -> None:
        self._some.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._held_until - time.monotonic()) if self._held else None):
                await self._some.wait()

    async def _write(self, batch: list[End]) -> bool:
        """Whether the store has answered; what it has not said the fate of waits on."""
        answer = await self._steady.attempt(lambda: self._apply(batch))
        match answer:
            case None:
                self._keep(batch)
                return False
            case list():
                self._most = min(MOST_AT_ONCE, self._most * 2)
                self._finish(batch, answer)
                return True
            case ValueRefused() if len(batch) > 1:
                return await self._write_each(batch)
            case ValueRefused():
                return await self._refused(batch[0], answer)

    async def _write_each(self, batch: list[End]) -> bool:
        """Something in the batch cannot be written: find it, and let the others through while the store answers."""
        for at, end in enumerate(batch, 1):
            if not await self._write([end]):
                self._waiting[1:1] = batch[at:]
                return False
        return True

    async def _apply(self, batch: list[End]) -> list[Verdict] | ValueRefused:
        await self._progress.write_last([end.running for end in batch])
        try:
            return await self._store.jobs.apply([end.transition for end in batch])
        except ValueRefused as refused:
            return refused
        except StoreUnavailable:
            raise
        except Exception:
            self._puzzled = True
            raise

    def _keep(self, batch: list[End]) -> None:
        if not self._puzzled:  # the store is away: all the same to it
            self._waiting[:0] = batch
            return
        # None of the known troubles: others may well go through, in smaller batches, before these are tried again.
        self._puzzled = False
        self._most = max(1, len(batch) // 2)
        self._waiting += batch

    async def _refused(self, end: End, cause: ValueRefused) -> bool:
        if end.transition.result_json is None:
            self._finish([end], [Verdict.MISSING])
            return True
        error = Error(type="StoreError", message=redact(f"the store refused the result: {cause}"))
        instead = decide(end.running.job, Failed(error, again=False), end.running.declaration.policy)
        return await self._write([end._replace(transition=instead)])

    def _give_up(self) -> None:
        left = [*self._waiting, *self._held]
        why = "the store did not answer" if self._waiting else "somebody's open transaction holds them"
        for end in left:
            self._slots.forget(end.running)
        self._waiting, self._held = [], []
        self.pending = 0
        count = plural(len(left), "end")
        text = f"stopped without having written {count} of jobs, which run again once their leases are over"
        self._hub.tell(WorkerWarned(self._worker_id, "results", f"{text}: {why}"))

    def _set_aside(self, held: list[End], *, all_of_them: bool) -> None:
        self._pause = min(self._pause * 2, _LONGEST) if all_of_them else _FIRST
        self._held += held
        self._held_until = time.monotonic() + random.uniform(0.5, 1) * self._pause

    def _finish(self, batch: list[End], verdicts: list[Verdict]) -> None:
        ends: list[Ended] = []
        heard = not self._hub.silent
        held = [end for end, verdict in zip(batch, verdicts, strict=True) if verdict is Verdict.HELD]
        if held:
            self._set_aside(held, all_of_them=len(held) == len(batch))
        for (running, transition, at), verdict in zip(batch, verdicts, strict=True):
            if verdict is Verdict.HELD:
                continue
            self._slots.forget(running)
            self.pending -= 1
            raised, running.raised = running.raised, None  # its frames lead back here
            if verdict in (Verdict.APPLIED, Verdict.CANCELLED):
                self.done += 1
                if verdict is Verdict.CANCELLED:
                    transition = honour_cancel(transition)  # noqa: PLW2901  # what the store has written
                self.released += transition.happened is Happened.RELEASED
                if heard or transition.happened is not Happened.SUCCEEDED:
                    ends.append((running.job, transition, at - running.started, raised))
            else:
                self._hub.tell(ResultRefused(running.job, transition))
        self._hub.ended(ends)
