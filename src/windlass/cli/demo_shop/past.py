"""The past of the demo's shop: its jobs of the last hours, which the store itself inserted, leased and ended then.

An SQLite file takes its time from the process that opens it. So the hours before now are gone through on a clock of
their own: jobs are inserted, claimed and ended by the calls that workers use, and what becomes of each is decided by
the law. How long they took and which failed is made up, and no handler is called; how it is kept, counted and shown is
not. Other stores have the clock of their server, and begin with the present.
"""

from __future__ import annotations

import heapq
import json
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from windlass import __version__
from windlass.cli.demo_shop import orders, trouble
from windlass.cli.demo_shop.jobs import app
from windlass.client.enqueueing import Ids
from windlass.client.gauges import gauges_text, look
from windlass.client.rolling import SAMPLED
from windlass.client.stepping import MINUTE
from windlass.core.events import Hub
from windlass.core.outcome import Failed, Outcome, Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Lease, Want, WorkerInfo
from windlass.stores.sqlite.store import SqliteStore
from windlass.worker.chores.scheduling import Scheduling
from windlass.worker.execution import described

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from windlass.client.flows import Bound
    from windlass.core.job import Job
    from windlass.stores.contract import Store

_LEASE = timedelta(minutes=10)
_SLOTS = 20
_CRASH = timedelta(minutes=14)
"""so long ago a worker vanished with what it ran"""
_INCIDENT = timedelta(hours=2, minutes=40), timedelta(hours=2, minutes=5)
"""when the mail server was busy"""
_QUIET, _BUSY = 0.7, 3.0
"""how busy the shop was at first, and how busy it is as the present begins"""
_ABSENCE = timedelta(minutes=19), timedelta(minutes=11)
"""when nobody looked at schedules"""
_SECOND = 1000
_MINUTE = 60 * _SECOND


@dataclass(frozen=True)
class Work:
    """One kind of job, and how it went."""

    make: Callable[[int], Bound[Any]] | None
    per_minute: float
    takes: float
    """seconds, as usual"""
    troubles: tuple[tuple[float, Callable[[], None]], ...] = ()
    """which share of attempts ends how"""


WORK = {
    "send_receipt": Work(orders.receipt, 2.4, 0.3, ((0.03, trouble.mail_busy), (0.008, trouble.mail_away))),
    "charge_card": Work(orders.charge, 1.8, 1.1, ((0.03, trouble.declined),)),
    "render_thumbnail": Work(orders.thumbnail, 1.6, 1.4, ((0.03, trouble.no_picture),)),
    "refresh_price": Work(orders.price, 0.9, 0.5, ((0.07, trouble.garbled),)),
    "pick_items": Work(orders.picking, 0.8, 1.6),
    "book_courier": Work(orders.parcel, 0.8, 1.5),
    "count_stock": Work(orders.stock, 0.08, 7.0, ((0.2, trouble.miscounted),)),
    "build_report": Work(orders.report, 0.06, 24.0),
    "import_customers": Work(orders.customers, 0.05, 55.0, ((0.15, trouble.missing_column),)),
}
TICKING = {
    "recount": Work(None, 0, 16.0, ((0.06, trouble.miscounted),)),
    "look_for_bounces": Work(None, 0, 0.6),
    "morning_report": Work(None, 0, 3.0),
    "close_day": Work(None, 0, 4.0),
}
"""what schedules make"""
_KNOWN = {**WORK, **TICKING}


async def live_through(path: Path, namespace: str, hours: float) -> int:
    """Go through the last hours in an SQLite file; gives how many jobs there were."""
    past = _Past(path, namespace, int(hours * 60) * _MINUTE)
    usual, app.client.ids = app.client.ids, past.ids
    await past.store.open()
    try:
        return await past.live()
    finally:
        app.client.ids = usual
        await past.store.close()


class _Past:
    """What happens next, by the clock of the past."""

    def __init__(self, path: Path, namespace: str, span: int) -> None:
        self.end = int(time.time() * 1000)
        self.now = self.start = self.end - span
        self.ids = Ids(lambda: self.now / 1000)
        self.store: Store = SqliteStore(path, namespace=namespace, synchronous="OFF", clock=lambda: self.now)
        self._events: list[tuple[int, int, Callable[[], Awaitable[None]]]] = []
        self._order = count()
        self._chance = random.Random(42)  # the same past each time
        self._running: dict[str, Job] = {}
        self._claims_at: int | None = None
        self._made = 0
        # As this very process calls itself, but gone.
        self._scheduling = Scheduling(self.store, Hub(), app.registry, app.defaults, 5.0, lambda: None, self.ids)
        self._workers = ["web-1/2107/5e0c11", "web-2/1290/a7d3f0"]

    async def live(self) -> int:
        await self._scheduling.declare()
        for kind in WORK.values():
            self._next_arrival(kind)
        self._at(self.start, self._minute)
        self._at(self.end - _ms(_CRASH), self._crash)
        while self._events and self._events[0][0] <= self.end:
            at, _, act = heapq.heappop(self._events)
            self.now = max(self.now, at)
            await act()
        self.now = self.end
        for job in [*self._running.values()]:
            await self._ended(job, Succeeded("null"))
        await self.store.workers.forget(self._workers)
        return self._made

    def _at(self, at: int, act: Callable[[], Awaitable[None]]) -> None:
        heapq.heappush(self._events, (at, next(self._order), act))

    # Jobs come.

    def _next_arrival(self, work: Work) -> None:
        gone = (self.now - self.start) / (self.end - self.start)
        wait = self._chance.expovariate(work.per_minute * (_QUIET + (_BUSY - _QUIET) * gone**3)) * _MINUTE
        if self.now + wait < self.end - 5 * _SECOND:
            self._at(self.now + int(wait), lambda: self._arrive(work))

    async def _arrive(self, work: Work) -> None:
        self._made += 1
        if work.make is not None:
            await self.store.jobs.insert([work.make(1000 + self._made).draft()])
            self._claim_soon(self._chance.randint(15, 300))
        self._next_arrival(work)

    # Jobs are taken.

    def _claim_soon(self, ms: int) -> None:
        at = self.now + ms
        if self._claims_at is None or at < self._claims_at:
            self._claims_at = at
            self._at(at, self._claim)

    async def _claim(self) -> None:
        self._claims_at = None
        free = _SLOTS - len(self._running)
        if free <= 0:
            return
        worker = self._chance.choice(self._workers)
        types = frozenset(_KNOWN)
        for job in await self.store.jobs.claim(Want(worker_id=worker, n=free, lease=_LEASE, types=types)):
            self._running[job.id] = job
            takes = self._chance.lognormvariate(0.0, 0.6) * _KNOWN[job.type].takes
            # Like many services, this one answers either from its cache or after a while.
            takes *= 5 if job.type == "send_receipt" and self._chance.random() < 0.2 else 1
            self._at(self.now + max(3, int(takes * _SECOND)), partial(self._end, job))

    # Jobs end.

    async def _end(self, job: Job) -> None:
        if job.id in self._running:
            await self._ended(job, self._outcome(job))

    def _outcome(self, job: Job) -> Outcome:
        left, troubles = self._chance.random(), _KNOWN[job.type].troubles
        ago = timedelta(milliseconds=self.end - self.now)
        if job.type == "send_receipt" and _INCIDENT[1] < ago < _INCIDENT[0]:
            troubles = ((0.75, trouble.mail_busy),)
        for share, cause in troubles:
            left -= share
            if left < 0:
                error = trouble.raised_by(cause)
                return Failed(described(error), again=app.registry.get(job.type).policy.allows(error))
        return Succeeded(_result(job))

    async def _ended(self, job: Job, outcome: Outcome) -> None:
        del self._running[job.id]
        policy = app.registry.get(job.type).policy
        change = decide(job, outcome, policy, self._chance.random())
        await self.store.jobs.apply([change])
        self._claim_soon(5)
        if change.to is Status.RETRYING and change.delay is not None:
            self._at(self.now + _ms(change.delay) + 50, self._promote)

    async def _promote(self) -> None:
        await self.store.jobs.promote(100)
        self._claim_soon(10)

    async def _minute(self) -> None:
        await self._promote()
        if not _ABSENCE[1] < timedelta(milliseconds=self.end - self.now) < _ABSENCE[0]:
            while await self._scheduling.once() == 0.0:
                self._claim_soon(20)
        for worker in self._workers:
            await self.store.workers.beat(self._described(worker))
        at = datetime.fromtimestamp(self.now / _MINUTE // 1 * 60, UTC)
        await self.store.series.put(SAMPLED.series(MINUTE), at, gauges_text(await look(self.store)))
        self._at(self.now + _MINUTE, self._minute)

    def _described(self, worker: str) -> WorkerInfo:
        host, pid, _ = worker.split("/")
        return WorkerInfo(
            id=worker,
            host=host,
            pid=int(pid),
            version=__version__,
            queues=(),
            types=tuple(_KNOWN),
            slots=_SLOTS // 2,
            running=sum(job.worker_id == worker for job in self._running.values()),
            memory_mb=94.0 + self._chance.random() * 12,
            loop_lag_ms=1.0 + self._chance.random() * 3,
            started_at=datetime.fromtimestamp(self.start / 1000, UTC),
        )

    # A worker vanishes.

    async def _crash(self) -> None:
        gone = self._workers.pop()
        held = [job for job in self._running.values() if job.worker_id == gone]
        await self.store.jobs.extend(gone, [Lease(job.id, job.lease_token) for job in held], timedelta(seconds=30))
        for job in held:
            del self._running[job.id]
        self._at(self.now + 33 * _SECOND, self._rescue)

    async def _rescue(self) -> None:
        await self.store.jobs.rescue(100)
        self._claim_soon(20)


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)


def _result(job: Job) -> str:
    """What its handler would have returned."""
    given = job.payload
    match job.type:
        case "send_receipt":
            result: Any = f"receipt for {given['order_id']} sent"
        case "charge_card":
            result = {"order_id": given["order_id"], "charged": given["cents"]}
        case "render_thumbnail":
            result = f"{given['path']}@{given['width']}"
        case "import_customers":
            result = {"rows": given["rows"], "inserted": given["rows"] - 3, "refused": 3, "columns": 3}
        case _:
            result = None
    return json.dumps(result)
