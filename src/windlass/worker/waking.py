"""Waking: what a notice is about decides which part of a worker looks, and the fleet which worker does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windlass.stores.contract import About, Notice
from windlass.worker.fleet import FEW
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windlass.core.events import Hub
    from windlass.stores.contract import Peer, Store
    from windlass.worker.config import WorkerConfig
    from windlass.worker.fleet import Fleet
    from windlass.worker.slots import Slots

MOST_HOPS = 3
"""so often a notice is passed on by workers without a free slot, each time to more; the last time to all"""
_MORE = 4  # times as many look at a notice that was passed on
# Seconds between two notices that one worker passes on; longer while it never has a slot: then nobody may have one.
_PASS_EVERY, _PASS_LEAST = 0.05, 0.4


class Waking:
    """Hears notices for one worker, and passes on those that it cannot follow."""

    def __init__(self, store: Store, config: WorkerConfig, slots: Slots, hub: Hub, fleet: Fleet) -> None:
        self._store, self._config, self._slots, self._fleet = store, config, slots, fleet
        self._steady = Steady(hub, "pass on a notice")
        self._some = asyncio.Event()
        self._passing: Notice | None = None
        self._later: asyncio.TimerHandle | None = None
        self._leaving = False

    def route(
        self, claim: Callable[[], None], due: Callable[[], None], duty: Callable[[], None], cancels: Callable[[], None]
    ) -> None:
        """Name what to wake for jobs, for what is due, for a free duty, and for cancel requests."""
        self._claim, self._due, self._duty, self._cancels = claim, due, duty, cancels

    def hear(self, notice: Notice) -> None:
        """Wake the parts that have something to do."""
        match notice.about:
            case About.CLAIMABLE:
                self._claimable(notice)
            case About.DUE:
                self._due()
                if notice.hop and self._fleet.turn(notice) == 0.0:
                    self._duty()
            case About.CANCEL:
                self._look_for_cancels()
            case About.CHANGED | About.TYPES:
                pass  # for clients that await a job's end or enqueue by name; what is let in is told as claimable
            case About.ANYTHING:
                self._claim()
                self._due()
                self._look_for_cancels()

    def meet(self, peers: Sequence[Peer]) -> None:
        """Learn which workers have a recent heartbeat, and hear only of what this worker would look at."""
        self._fleet.meet(peers)
        self._store.notices.follow(self.hear, self._fleet.lanes())

    def ramp_up(self, n: int, queue: str | None = None) -> None:
        """Let others look, too: there may be more than this worker has slots for."""
        self._pass_on(Notice.claimable(n, queue))

    async def run(self) -> None:
        """Pass notices on, a few a second, until cancelled."""
        pause = _PASS_EVERY
        while True:
            await self._some.wait()
            self._some.clear()
            notice, self._passing = self._passing, None
            if notice is not None:
                await self._steady.attempt(lambda told=notice: self._store.notices.publish(told))  # type: ignore[misc]  # bound per turn
            await asyncio.sleep(pause)
            busy = self._some.is_set() and self._slots.full()
            pause = min(_PASS_LEAST, pause * 2) if busy else _PASS_EVERY

    def leave(self) -> None:
        """Claim no more: pass notices on to others, which may not know yet that this worker is about to stop."""
        self._leaving = True

    def close(self) -> None:
        """Look no more."""
        if self._later is not None:
            self._later.cancel()

    def _look_for_cancels(self) -> None:
        if self._slots.taken:
            self._cancels()

    def _claimable(self, notice: Notice) -> None:
        queues = self._config.queues
        if queues is not None and notice.queue is not None and notice.queue not in queues:
            return
        after = 0.0 if self._config.drain else self._fleet.turn(notice)
        if after is None:
            return
        if after == 0.0:
            if (self._leaving or self._slots.full(notice.queue)) and self._fleet.leads(notice):
                self._pass_on(notice)
            self._claim()  # also without a slot: then it looks when one is free
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(after, self._look_later)

    def _look_later(self) -> None:
        self._later = None
        self._claim()

    def _pass_on(self, notice: Notice) -> None:
        # Of few workers each has heard it already.
        if self._fleet.size <= FEW or notice.hop >= MOST_HOPS:
            return
        earlier, hop = self._passing, notice.hop + 1
        n = self._fleet.size if hop == MOST_HOPS else _MORE * notice.n
        queue = notice.queue
        if earlier is not None:
            n, hop = n + earlier.n, max(hop, earlier.hop)
            queue = queue if earlier.queue == queue else None
        self._passing = Notice.claimable(min(n, self._fleet.size), queue, hop)
        self._some.set()
