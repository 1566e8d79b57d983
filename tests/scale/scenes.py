"""What may stand aside or be kept in a store, in any number, and one plain job's life beside it, counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.contract.steps import DONE, HOUR, NEVER_AGAIN, running
from tests.support.drafts import draft, want
from tests.support.work import Meter, Work
from windlass.core.draft import Draft
from windlass.core.job import Job
from windlass.core.limit import Limit
from windlass.core.outcome import Outcome, Waiting
from windlass.core.rate import Rate
from windlass.core.schedule import cron
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Created, Filter, Granted, Lease, Retention, Schedule, Store, WorkerInfo

BATCH = 500
SLOTS = 20
AT_ONCE = 500
"""what the chores of a worker ask for"""
PLAIN, HELD, RETIRED = "plain", "held", "retired"
HANDLED = frozenset({PLAIN, HELD})
"""the types that the claiming worker has a handler for"""

Fill = Callable[[Store, range], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scene:
    """Something of which there may be many, and how so many are made."""

    name: str
    fill: Fill
    looks: frozenset[str] = frozenset()
    """the calls that may look once at each of them"""
    lives: int = 3
    """how many plain jobs live beside them: where calls look at each, one is enough"""

    def most(self, call: str, few: Work, n: int, meter: Meter, growth: float) -> float:
        """What a call that cost so much beside few may cost beside n more."""
        return few.total * growth + meter.slack + (meter.look * n if call in self.looks else 0)

    def __str__(self) -> str:
        return self.name


def parts(numbers: range) -> Iterator[range]:
    return (numbers[at : at + BATCH] for at in range(0, len(numbers), BATCH))


async def insert(store: Store, drafts: Sequence[Draft]) -> None:
    for at in range(0, len(drafts), BATCH):
        some = drafts[at : at + BATCH]
        assert await store.jobs.insert(some) == [Created(made.id) for made in some]


async def claim_all(store: Store, types: frozenset[str] = HANDLED) -> list[Job]:
    """Claim until nothing of these types is queued any more: what could not be claimed was put aside."""
    claimed: list[Job] = []
    while True:
        claimed += await store.jobs.claim(want(BATCH, worker="holder", types=types))
        queued = [await store.views.count(Filter(status=Status.QUEUED, type=type_)) for type_ in types]
        if not any(count.n for count in queued):
            return claimed


async def end(store: Store, jobs: Sequence[Job], outcome: Outcome = DONE) -> None:
    for at in range(0, len(jobs), BATCH):
        await store.jobs.apply([decide(job, outcome) for job in jobs[at : at + BATCH]])


async def limit_lines(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        for _ in range(2):
            await insert(store, [draft(HELD, limit=Limit(f"limit {n}")) for n in some])
            await claim_all(store)


async def unique_lines(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        for _ in range(2):
            await insert(store, [draft(HELD, unique=running(f"key {n}")) for n in some])
            await claim_all(store)


async def spent_rates(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        for _ in range(2):
            await insert(store, [draft(HELD, rate=Rate(1, HOUR, f"rate {n}")) for n in some])
            await end(store, await claim_all(store))


async def blocked_flows(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        last = [draft(HELD, awaits="success") for _ in some]
        await insert(store, last)
        await insert(store, [draft(HELD, next_id=waiting.id, delay=HOUR) for waiting in last])


async def empty_queues(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        await insert(store, [draft(HELD, queue=f"queue {n}") for n in some])
        await end(store, await claim_all(store))


async def finished_jobs(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        await insert(store, [draft(HELD) for _ in some])
        jobs = await claim_all(store)
        await end(store, jobs[::5], NEVER_AGAIN)
        await end(store, [job for at, job in enumerate(jobs) if at % 5])


async def later_jobs(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        await insert(store, [draft(HELD, delay=HOUR) for _ in some])


async def running_jobs(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        await insert(store, [draft(HELD) for _ in some])
        await claim_all(store)


async def retired_jobs(store: Store, numbers: range) -> None:
    """In the plain jobs' own queue, before them."""
    for some in parts(numbers):
        await insert(store, [draft(RETIRED, queue=PLAIN) for _ in some])


async def fair_jobs(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        await insert(store, [draft(RETIRED, queue=PLAIN, fair_by="user_id", user_id=f"u{n}") for n in some])


async def retired_queues(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        await insert(store, [draft(RETIRED, queue=f"queue {n}") for n in some])


async def paused_queues(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        await insert(store, [draft(HELD, queue=f"queue {n}") for n in some])
        await store.queues.pause([f"queue {n}" for n in some])


async def idempotency_keys(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        made = [draft(HELD, idempotency_window=HOUR, payload=f'{{"n":{n}}}') for n in some]
        await insert(store, made)
        await end(store, await claim_all(store))


async def held_locks(store: Store, numbers: range) -> None:
    for n in numbers:
        assert isinstance(await store.locks.acquire(f"lock {n}", "holder", HOUR), Granted)


async def schedules_to_come(store: Store, numbers: range) -> None:
    tick = await store.now() + HOUR
    for some in parts(numbers):
        await store.schedules.put(
            [
                Schedule(
                    name=f"schedule {n}",
                    cron=cron("0 3 * * *"),
                    type=HELD,
                    payload_json="{}",
                    queue=PLAIN,
                    next_tick=tick + timedelta(seconds=n),
                )
                for n in some
            ]
        )


async def waits_for_signals(store: Store, numbers: range) -> None:
    for some in parts(numbers):
        await insert(store, [draft(HELD) for _ in some])
        jobs = await claim_all(store)
        await store.jobs.apply([decide(job, Waiting(f"signal {n}", HOUR)) for job, n in zip(jobs, some, strict=True)])


async def expires_later(store: Store, numbers: range) -> None:
    """Of a type that nobody handles, so that they stay."""
    for some in parts(numbers):
        await insert(store, [draft(RETIRED, queue=RETIRED, expires=HOUR) for _ in some])


CLAIMS = frozenset({"claim", "claim of a named queue"})
# What runs is looked through for lost leases: there are no more than all workers have slots, one of them does it for
# all, and an index on the expiry would be written by every heartbeat.
RUNNING = frozenset({"rescue"})
# Most stores learn how many are kept only by counting them.
KEPT = frozenset({"prune to a number"})
# Nobody tells that there is room in a rate again: a store may have to look at its line, at a thousand of them at most.
SPENT = KEPT | {"promote"}
# A type that nobody handles any more is passed over job by job, by the index alone (on PostgreSQL from 17 on); `doctor`
# names it.
RETIRED_JOBS = CLAIMS
# A queue is looked at for what has ended or waits there, however little it is, and for whether it is paused; a
# promotion may look after a hundred of them.
QUEUES = frozenset({*CLAIMS, "insert", "prune", "age", "promote"})

SCENES = (
    Scene("limit keys with a holder and a waiter", limit_lines, RUNNING),
    Scene("unique keys with a holder and a waiter", unique_lines, RUNNING),
    Scene("spent rates with a waiter", spent_rates, SPENT),
    Scene("flows that wait", blocked_flows),
    Scene("empty queues", empty_queues, KEPT | {"prune"}),
    Scene("finished jobs", finished_jobs, KEPT),
    Scene("scheduled jobs", later_jobs),
    Scene("running jobs", running_jobs, RUNNING),
    Scene("jobs of a retired type", retired_jobs, RETIRED_JOBS),
    Scene("fair keys", fair_jobs, RETIRED_JOBS),
    Scene("idempotency keys", idempotency_keys, KEPT),
    Scene("queues of a retired type", retired_queues, QUEUES, 1),
    Scene("paused queues", paused_queues, QUEUES, 1),
    Scene("jobs that wait for a signal", waits_for_signals),
    Scene("jobs that expire later", expires_later, RETIRED_JOBS),
    Scene("schedules to come", schedules_to_come),
    Scene("locks", held_locks),
)

ME = WorkerInfo(id="w1", host="here", pid=1, version="1", queues=(), types=tuple(HANDLED), slots=SLOTS, running=0)


class Life:
    """A plain job from its insert to its end, the chores beside it, and what each call of these cost."""

    def __init__(self, store: Store, meter: Meter) -> None:
        self._store, self._meter = store, meter
        self.costs: dict[str, list[Work]] = {}

    async def lead(self) -> None:
        await self._one("claim")
        await self._one("claim of a named queue", queues={PLAIN: SLOTS})
        await self._chores()

    async def _one(self, name: str, **asked: Any) -> None:
        store, made = self._store, draft(PLAIN, queue=PLAIN)
        await self._count("insert", lambda: store.jobs.insert([made]))
        claimed = await self._count(name, lambda: store.jobs.claim(want(SLOTS, types=HANDLED, **asked)))
        [job] = claimed
        assert job.id == made.id
        await self._count("extend", lambda: store.jobs.extend("w1", [Lease(job.id, job.lease_token)], HOUR))
        await self._count("apply", lambda: store.jobs.apply([decide(job, DONE)]))

    async def _chores(self) -> None:
        store = self._store
        await self._count("cancels", lambda: store.jobs.cancels("w1"))
        await self._count("promote", lambda: store.jobs.promote(AT_ONCE))
        await self._count("rescue", lambda: store.jobs.rescue(AT_ONCE))
        await self._count("prune", lambda: store.jobs.prune(Retention(), AT_ONCE))
        await self._count("prune to a number", lambda: store.jobs.prune(Retention(most=10**7), AT_ONCE))
        await self._count("age", lambda: store.jobs.age(HOUR, 50, AT_ONCE))
        await self._count("due schedules", lambda: store.schedules.due(AT_ONCE))
        await self._count("beat", lambda: store.workers.beat(ME))

    async def _count(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        work, answer = await self._meter.during(call)
        self.costs.setdefault(name, []).append(work)
        return answer


async def costs(store: Store, meter: Meter, lives: int) -> dict[str, Work]:
    """What each call costs now: the dearest of several, because a sweep may be made only now and then."""
    await meter.settle()
    if meter.plans:
        await Life(store, meter).lead()
    life = Life(store, meter)
    for _ in range(lives):
        await life.lead()
    return {name: max(works, key=lambda work: work.total) for name, works in life.costs.items()}
