"""Any sequence of operations on a store ends as the model says, and keeps what must always hold."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, initialize, invariant, multiple, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from tests.contract.invariants import check, orphans
from tests.contract.model import READY, Model
from tests.contract.places import STORES, open_place
from tests.contract.steps import BOOM, HOUR, get, operate, passed
from tests.support.drafts import INSTANT, LONG, draft, want
from windlass.core.draft import Draft
from windlass.core.history import Entry, Happened
from windlass.core.job import Job, Progress
from windlass.core.kept import Signal, read_kept, signal_name
from windlass.core.limit import Limit
from windlass.core.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Gathering,
    Lost,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    Unfit,
    Waiting,
)
from windlass.core.rate import Rate
from windlass.core.retry import Retry
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.core.unique import OnConflict, Unique
from windlass.stores.contract import Action, Created, Keep, Lease, Operated, Order, Report, Retention, Store, Verdict

T = TypeVar("T")
SLOW = Retry(5, base=3600, cap=3600, jitter=False)
NOTHING_KEPT = Retention(succeeded=timedelta(0), failed=timedelta(0), cancelled=timedelta(0))
ENDS: list[Outcome] = [
    Succeeded("1"),
    Failed(BOOM, after=HOUR),
    Failed(BOOM, after=INSTANT),
    Failed(BOOM, again=False),
    Snoozed(HOUR),
    Snoozed(INSTANT),
    Cancelled("enough"),
    Released("stopping"),
    Crashed("died"),
    Unfit(BOOM),
    Waiting("go", HOUR),
    Waiting("go", INSTANT),
    Waiting("stop", HOUR),
    Gathering("children"),
]
# Keys of waiting only are apart from the others: a waiting job may keep another from running, but is no part of the
# line that an ending frees in the same step.
UNIQUES = [Unique("k", "k"), Unique(running="k"), Unique("q", "k"), Unique("l", "l"), Unique(queued="w")]
LIMITS = [Limit("one", 1), Limit("two", 2)]
RATES = [Rate(1, HOUR, "one"), Rate(3, HOUR, "three")]
Kind: TypeAlias = dict[str, Any]
KINDS: list[Kind] = [
    {},
    *[{"unique": unique} for unique in UNIQUES],
    *[{"limit": limit, "max_crashes": crashes} for limit in LIMITS for crashes in (1, 2)],
    *[{"rate": rate} for rate in RATES],
]
OF_ITS_OWN = ("payload:", "flow:", "signal:")
"""what a job is blocked by that is not a claim's to say"""
CONFLICTS: list[OnConflict] = ["existing", "existing", "replace"]
OUTCOMES = st.sampled_from(ENDS)
QUEUES = st.sampled_from(["a", "b"])
ALLOWANCES = st.sampled_from([None, None, None, {"a": 1}, {"a": 2, "b": 1}, {"b": 5, "c": 5}])


class Machine(RuleBasedStateMachine):
    ids: Bundle[str] = Bundle("ids")
    leases: Bundle[Job] = Bundle("leases")

    store_name: str

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.folder = self.closing.enter_context(tempfile.TemporaryDirectory())
        self.model = Model()
        self.store = self.run(self.open())

    async def open(self) -> Store:
        place = await self.closing.enter_async_context(open_place(self.store_name, Path(self.folder)))
        store = place.store()
        await store.open()
        self.closing.push_async_callback(store.close)
        return store

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def teardown(self) -> None:
        self.run(self.closing.aclose())
        self.runner.close()

    def insert(self, one: Draft, delay: timedelta | None = None) -> str:
        expected = self.model.insert(one, later=delay is not None, due=delay == INSTANT)
        assert self.run(self.store.jobs.insert([one])) == [expected]
        return one.id

    @initialize(target=ids, some=st.lists(st.sampled_from(KINDS), min_size=6, max_size=10))
    def begin(self, some: list[Kind]) -> MultipleResults[str]:
        return multiple(*[self.insert(draft(queue="a", **kind)) for kind in some])

    @rule(
        target=ids,
        queue=QUEUES,
        priority=st.sampled_from([1, 100]),
        delay=st.sampled_from([None, None, INSTANT, HOUR]),
        attempts=st.integers(1, 3),
        crashes=st.integers(1, 2),
    )
    def enqueue(self, queue: str, priority: int, delay: timedelta | None, attempts: int, crashes: int) -> str:
        one = draft(queue=queue, priority=priority, delay=delay, max_attempts=attempts, max_crashes=crashes)
        return self.insert(one, delay)

    @rule(
        target=ids,
        queue=QUEUES,
        unique=st.sampled_from(UNIQUES),
        delay=st.sampled_from([None, None, INSTANT]),
        on_conflict=st.sampled_from(CONFLICTS),
        n=st.integers(1, 9),
    )
    def enqueue_unique(
        self, queue: str, unique: Unique, delay: timedelta | None, on_conflict: OnConflict, n: int
    ) -> str:
        payload = f'{{"n":{n}}}'
        one = draft("noop", payload, queue=queue, unique=unique, delay=delay, on_conflict=on_conflict, priority=n)
        return self.insert(one, delay)

    @rule(target=ids, queue=QUEUES, n=st.integers(1, 3))
    def enqueue_idempotent(self, queue: str, n: int) -> str:
        return self.insert(draft("noop", f'{{"n":{n}}}', queue=queue, idempotency_window=HOUR))

    @rule(target=ids, n=st.integers(1, 2), awaits=st.sampled_from(["success", "end"]), longer=st.booleans())
    def enqueue_flow(self, n: int, awaits: str, longer: bool) -> MultipleResults[str]:
        end = draft(queue="c", awaits="success")
        last = draft(queue="c", awaits=awaits, next_id=end.id if longer else None)
        flow = [*([end] if longer else ()), last, *[draft(queue="c", next_id=last.id) for _ in range(n)]]
        expected = [self.model.insert(one, later=False, due=False) for one in flow]
        assert self.run(self.store.jobs.insert(flow)) == expected
        return multiple(*[one.id for one in flow])

    @rule(
        target=ids,
        queue=QUEUES,
        limit=st.sampled_from([None, *LIMITS, *LIMITS]),
        rate=st.sampled_from([None, None, *RATES]),
        delay=st.sampled_from([None, None, INSTANT]),
    )
    def enqueue_limited(self, queue: str, limit: Limit | None, rate: Rate | None, delay: timedelta | None) -> str:
        return self.insert(draft(queue=queue, limit=limit, rate=rate, delay=delay, max_crashes=1), delay)

    @rule(target=ids, queue=QUEUES, delay=st.sampled_from([None, HOUR]), expires=st.sampled_from([INSTANT, HOUR]))
    def enqueue_expiring(self, queue: str, delay: timedelta | None, expires: timedelta) -> str:
        return self.insert(draft(queue=queue, delay=delay, expires=expires), delay)

    @rule(target=ids, which=st.integers(0, 9), n=st.integers(0, 2), gathers=st.booleans())
    def enqueue_children(self, which: int, n: int, gathers: bool) -> MultipleResults[str]:
        parents = self.running(which)
        children = [self.insert(draft(queue="c", next_id=parent.id)) for parent in parents for _ in range(n)]
        if gathers:
            self.apply(parents, [Gathering("children")] * len(parents))
        return multiple(*children)

    @rule(id_=ids)
    def enqueue_again(self, id_: str) -> None:
        row = self.model.rows.get(id_)
        if row is not None:
            assert self.run(self.store.jobs.insert([row.draft])) == [Created(id_)]

    def take(self, n: int, lease: timedelta = LONG, queues: dict[str, int] | None = None) -> list[Job]:
        jobs = [job for job in self.run(self.store.views.get(list(self.model.rows))) if job]
        order = [job.id for job in sorted(jobs, key=lambda job: (job.priority, job.run_at, job.id))]
        look_from_the_beginning(self.store)
        self.let_expire()
        claimed = self.run(self.store.jobs.claim(want(n, lease=lease, queues=queues)))
        self.model.claim(order, [job.id for job in claimed], n, queues, expired=lease == INSTANT)
        return claimed

    def apply(self, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
        transitions = [decide(job, outcome, SLOW) for job, outcome in zip(jobs, outcomes, strict=False)]
        expected = [self.model.apply(one, due=one.delay == INSTANT) for one in transitions]
        assert self.run(self.store.jobs.apply(transitions)) == expected

    @rule(target=leases, n=st.integers(1, 5), lease=st.sampled_from([LONG, LONG, INSTANT]), queues=ALLOWANCES)
    def claim(self, n: int, lease: timedelta, queues: dict[str, int] | None) -> MultipleResults[Job]:
        return multiple(*self.take(n, lease, queues))

    @rule(target=leases, outcomes=st.lists(OUTCOMES, min_size=1, max_size=3))
    def work(self, outcomes: list[Outcome]) -> MultipleResults[Job]:
        jobs = self.take(len(outcomes))
        self.apply(jobs, outcomes)
        return multiple(*jobs)

    @rule(target=leases, n=st.integers(1, 3))
    def lose(self, n: int) -> MultipleResults[Job]:
        jobs = self.take(n)
        for job in jobs:
            self.extend(job, INSTANT)
        self.rescue(100)
        return multiple(*jobs)

    @rule(jobs=st.lists(leases, min_size=1, max_size=3), outcomes=st.lists(OUTCOMES, min_size=3, max_size=3))
    def settle(self, jobs: list[Job], outcomes: list[Outcome]) -> None:
        self.apply(list({job.id: job for job in jobs}.values()), outcomes)

    @rule(which=st.integers(0, 9), outcome=OUTCOMES, off=st.sampled_from([0, 0, 0, -1, 1]))
    def settle_what_runs(self, which: int, outcome: Outcome, off: int) -> None:
        for job in self.running(which):
            self.apply([job._replace(lease_token=job.lease_token + off)], [outcome])

    @rule(which=st.integers(0, 9), outcome=OUTCOMES)
    def settle_what_was_asked_to_stop(self, which: int, outcome: Outcome) -> None:
        for job in self.running(which):
            self.operate(job.id, Action.CANCEL)
            self.apply([job], [outcome])

    def running(self, which: int) -> list[Job]:
        """One of the jobs that run, if any does."""
        ids = [id_ for id_, row in self.model.rows.items() if row.status is Status.PROCESSING]
        return [self.run(get(self.store, ids[which % len(ids)]))] if ids else []

    @rule(job=leases, lease=st.sampled_from([LONG, INSTANT]))
    def extend(self, job: Job, lease: timedelta) -> None:
        held = Lease(job.id, job.lease_token)
        owned = self.model.owns(held)
        found = self.run(self.store.jobs.extend("w1", [held], lease))
        assert found.lost == (frozenset() if owned else {job.id})
        assert found.cancels == ({job.id} if owned and self.model.rows[job.id].cancel else frozenset())
        if owned:
            row = self.model.rows[job.id]
            row.expired, row.confirmed = lease == INSTANT, row.token

    @rule(job=leases)
    def report(self, job: Job) -> None:
        lease = Lease(job.id, job.lease_token)
        owned = self.model.owns(lease)
        [found] = self.run(self.store.jobs.report([Report(lease, Progress(done=1))]))
        assert (found is Verdict.APPLIED) == owned

    @rule(job=leases, name=st.sampled_from(["step:a", "saved", "signal:go"]), n=st.integers(1, 9))
    def keep(self, job: Job, name: str, n: int) -> None:
        keep = Keep(Lease(job.id, job.lease_token), name, str(n))
        [found] = self.run(self.store.jobs.keep([keep]))
        assert (found is Verdict.APPLIED) == self.model.keep(keep.lease, keep.name, keep.json)

    @rule(id_=ids, name=st.sampled_from(["go", "go", "stop"]), n=st.integers(1, 9))
    def signal(self, id_: str, name: str, n: int) -> None:
        expected = self.model.signal(id_, signal_name(name), str(n))
        order = Order(id=id_, action=Action.SIGNAL, actor="ann", signal=Signal(name, str(n)))
        assert self.run(self.store.jobs.operate([order])) == [expected]

    @rule(which=st.integers(0, 9), n=st.integers(1, 9), timeout=st.sampled_from([HOUR, INSTANT]))
    def signal_what_is_about_to_wait(self, which: int, n: int, timeout: timedelta) -> None:
        for job in self.running(which):
            self.signal(job.id, "go", n)
            self.apply([job], [Waiting("go", timeout)])

    @rule(which=st.integers(0, 9), n=st.integers(1, 9))
    def signal_what_waits(self, which: int, n: int) -> None:
        waits = [(id_, row.waits) for id_, row in self.model.rows.items() if row.waits is not None]
        for id_, line in waits[which % len(waits) :][:1] if waits else ():
            self.signal(id_, line.removeprefix("signal:"), n)

    @rule(id_=ids, action=st.sampled_from([Action.CANCEL, Action.RETRY, Action.DELETE]))
    def operate(self, id_: str, action: Action) -> None:
        expected = self.model.operate(id_, action)
        assert self.run(operate(self.store, id_, action)) == expected

    @rule(n=st.sampled_from([1, 2, 100]))
    def promote(self, n: int) -> None:
        timed = [id_ for id_, row in self.model.rows.items() if row.due]
        for id_ in timed:
            self.run(passed(self.store, self.run(get(self.store, id_)).run_at))
        waited = [id_ for id_ in timed if self.model.rows[id_].waits is not None]
        due = [id_ for id_ in timed if id_ not in waited]
        late = self.let_expire()
        found = self.run(self.store.jobs.promote(n))
        assert (len(found.expired), set(found.expired) <= set(late)) == (min(n, len(late)), True)
        for id_ in found.expired:
            assert self.model.operate(id_, Action.CANCEL).verdict is Operated.DONE
        over = [id_ for id_ in waited if self.run(get(self.store, id_)).status is Status.QUEUED]
        # A store may count both by one measure, or each by its own.
        assert found.promoted <= min(n, len(due))
        assert len(over) <= min(n, len(waited))
        assert found.promoted + len(over) >= min(n, len(due) + len(waited))
        for id_ in over:
            self.model.time_out(self.model.rows[id_])
        for id_ in due:
            job = self.run(get(self.store, id_))
            if job.status is Status.QUEUED:
                row = self.model.rows[id_]
                row.status, row.due = Status.QUEUED, False
                row.told.append(Happened.PROMOTED)
        assert sum(self.model.rows[id_].due for id_ in due) == len(due) - found.promoted

    def let_expire(self) -> list[str]:
        """Those that no worker has taken in time, once it is over."""
        late = [id_ for id_, row in self.model.rows.items() if row.late]
        for id_ in late:
            self.run(passed(self.store, self.run(get(self.store, id_)).expires_at))
        return late

    @rule(n=st.sampled_from([1, 100]))
    def rescue(self, n: int) -> None:
        running = {id_ for id_, row in self.model.rows.items() if row.status is Status.PROCESSING and row.expired}
        jobs = {id_: self.run(get(self.store, id_)) for id_ in running}
        for job in jobs.values():
            self.run(passed(self.store, job.lease_expires_at))
        found = self.run(self.store.jobs.rescue(n))
        assert len(found) == min(n, len(running))
        assert {one.id for one in found} <= running
        for one in found:
            row = self.model.rows[one.id]
            lost = Lost(confirmed=row.confirmed == row.token)
            assert self.model.rescue(decide(jobs[one.id], lost)) is one.to

    @rule()
    def prune(self) -> None:
        old = [id_ for id_, row in self.model.rows.items() if self.model.prunable(row)]
        for id_ in old:
            self.run(passed(self.store, self.run(get(self.store, id_)).finished_at))
        pruned = self.run(self.store.jobs.prune(NOTHING_KEPT, 1_000))
        left = {job.id for job in self.run(self.store.views.get(old)) if job}
        assert left <= set(self.model.known.values())
        assert pruned == len(old) - len(left)
        for id_ in set(old) - left:
            del self.model.rows[id_]

    @rule(queue=QUEUES)
    def pause_or_resume(self, queue: str) -> None:
        if queue in self.model.paused:
            self.run(self.store.queues.resume([queue]))
        else:
            self.run(self.store.queues.pause([queue]))
        self.model.paused ^= {queue}

    @rule(queue=QUEUES, depth=st.sampled_from([None, None, 4, 8]))
    def limit_depth(self, queue: str, depth: int | None) -> None:
        self.run(self.store.queues.limit_depth(queue, depth))
        self.model.depths.pop(queue, None)
        if depth is not None:
            self.model.depths[queue] = depth

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        jobs, histories = self.run(check(self.store))
        assert {job.id for job in jobs} == set(self.model.rows), "I4"
        for job, history in zip(jobs, histories, strict=True):
            self.compare(job, history)
        assert orphans(jobs) == []

    def compare(self, job: Job, history: list[Entry]) -> None:
        row = self.model.rows[job.id]
        waits = row.awaits or row.parked or row.waits is not None or (job.blocked_by or "").startswith(OF_ITS_OWN)
        if {row.status, job.status} <= READY and not waits:
            row.status = job.status
        assert (job.status, job.attempts, job.crashes, job.lease_token, job.unique_key) == (
            *(row.status, row.attempts, row.crashes, row.token, row.held),
        )
        assert (job.payload_json, job.priority) == (row.draft.payload_json, row.draft.options.priority)
        assert (read_kept(job.kept_json), job.expires_at is not None) == (row.kept, row.expires is not None)
        assert row.waits in (None, job.blocked_by)
        assert moves([entry.happened for entry in history]) == moves(row.told)


def look_from_the_beginning(store: Store) -> None:
    """After a slow look, as on a busy machine, PostgreSQL may pass over a better priority for a moment: not here."""
    marks = getattr(getattr(store.jobs, "_claiming", None), "_marks", None)
    if marks is not None:
        marks.forget()


def moves(told: list[Happened]) -> list[Happened]:
    """Without what the model does not know: being blocked, and being asked again to stop."""
    known = [one for one in told if one not in (Happened.BLOCKED, Happened.UNBLOCKED)]
    return [one for one, group in groupby(known) for _ in ([one] if one is Happened.CANCEL_REQUESTED else group)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", STORES)
def test_a_store_does_what_the_model_does(name: str) -> None:
    profile = settings()
    fewer = settings(
        max_examples=max(1, profile.max_examples // 4),
        phases=set(profile.phases) - {Phase.explain},  # it takes minutes and tells little of a sequence
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )

    class Here(Machine):
        store_name = name

    run_machine(Here, settings=fewer)
