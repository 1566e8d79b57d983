"""Settling: the ends of attempts, decided and written in batches while the next jobs are being claimed."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

from windlass.core.errors import StoreUnavailable
from windlass.core.events import Hub, JobEnded, ResultRefused
from windlass.core.job import Error
from windlass.core.outcome import Failed
from windlass.core.transition import decide
from windlass.stores.contract import Verdict
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from windlass.core.outcome import Outcome
    from windlass.core.transition import Transition
    from windlass.stores.contract import Store
    from windlass.worker.slots import Running, Slots

MOST_AT_ONCE = 500


class Settling:
    """Writes transitions, one batch at a time; what ends meanwhile makes the next batch."""

    def __init__(self, store: Store, slots: Slots, hub: Hub) -> None:
        self._store, self._slots, self._hub = store, slots, hub
        self._steady = Steady(hub, "settle")
        self._waiting: list[tuple[Running, Transition, float]] = []
        self._some = asyncio.Event()
        self._closing = False
        self.pending = 0
        self.done = 0
        self.released = 0

    def put(self, running: Running, outcome: Outcome) -> None:
        """Take the end of an attempt; it will be written unless the lease is lost first."""
        transition = decide(running.job, outcome, running.declaration.policy, random.random())
        self._waiting.append((running, transition, time.monotonic()))
        self.pending += 1
        self._some.set()

    def close(self) -> None:
        """Write what is left and end."""
        self._closing = True
        self._some.set()

    async def run(self) -> None:
        """Write until closed and nothing is left."""
        while True:
            await self._some.wait()
            if not self._waiting:
                if self._closing:
                    return
                self._some.clear()
                continue
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            await self._write(batch)

    async def _write(self, batch: list[tuple[Running, Transition, float]]) -> None:
        while batch:
            transitions = [transition for _, transition, _ in batch]
            verdicts = await self._steady.attempt(lambda ts=transitions: self._apply(ts))  # type: ignore[misc]  # bound per turn
            if isinstance(verdicts, Exception):
                await self._write_apart(batch, verdicts)
                return
            if verdicts is not None:
                self._finish(batch, verdicts)
                return
            # The store is away. While a lease holds, nobody else can have the job: keep its end and try again.
            batch = [one for one in batch if self._still_ours(one)]

    async def _apply(self, transitions: list[Transition]) -> list[Verdict] | Exception:
        try:
            return await self._store.jobs.apply(transitions)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # waiting would not help: something in the batch cannot be written
            return error

    async def _write_apart(self, batch: list[tuple[Running, Transition, float]], cause: Exception) -> None:
        """One of the batch is refused by the store: find it, and let the others through."""
        if len(batch) > 1:
            for one in batch:
                await self._write([one])
            return
        [(running, transition, at)] = batch
        if transition.result_json is None:
            self._finish(batch, [Verdict.MISSING])
            return
        error = Error(type="StoreError", message=f"the store refused the result: {cause}")
        instead = decide(running.job, Failed(error, again=False), running.declaration.policy)
        await self._write([(running, instead, at)])

    def _still_ours(self, one: tuple[Running, Transition, float]) -> bool:
        running, transition, _ = one
        if time.monotonic() < running.valid_until:
            return True
        self.pending -= 1
        self._slots.forget(running)
        self._hub.tell(ResultRefused(running.job, transition))
        return False

    def _finish(self, batch: list[tuple[Running, Transition, float]], verdicts: list[Verdict]) -> None:
        silent = self._hub.silent
        for (running, transition, at), verdict in zip(batch, verdicts, strict=True):
            self._slots.forget(running)
            self.pending -= 1
            if verdict is Verdict.APPLIED:
                self.done += 1
                self.released += transition.happened == "released"
                if not silent:
                    self._hub.tell(JobEnded(running.job, transition, at - running.started))
            elif not silent:
                self._hub.tell(ResultRefused(running.job, transition))
