"""Explaining: one true sentence on why a job is where it is, with the facts behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.client.workers import live_workers
from windlass.core.admission import EXPIRED
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.errors import StoreError
from windlass.core.signals import FOR_EVER
from windlass.core.status import Status
from windlass.core.steps import gathered_as
from windlass.core.values import line
from windlass.core.wording import clock, milliseconds, plural, span
from windlass.stores.contract import Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from windlass.client.workers import WorkerState
    from windlass.core.job import Job
    from windlass.stores.contract import QueueInfo, Store

MOST_LOOKED_AT = 5_000
"""no view lists jobs by key or by place in line: so many of the newest are looked through"""
_PAGE = 500
_NAMED = 3
_LONGEST_TOLD = 200


class Why(StrEnum):
    """Why a job is where it is, for machines."""

    FINISHED = "finished"
    RUNNING = "running"
    CANCELLING = "cancelling"
    """it runs and was asked to stop"""
    LEASE_EXPIRED = "lease_expired"
    """its worker has not renewed its lease, and nobody has rescued it yet"""
    SCHEDULED = "scheduled"
    RETRYING = "retrying"
    EXPIRED = "expired"
    """no worker took it in the time it was given; it is cancelled, or about to be"""
    DUE = "due"
    """its time has come; a worker is about to queue it"""
    LIMIT = "limit"
    RUNNING_KEY = "running_key"
    RATE = "rate"
    FLOW = "flow"
    """it waits for other jobs: of its flow, or that it gathers"""
    SIGNAL = "signal"
    """it waits for a signal"""
    PAYLOAD = "payload"
    """no handler could read its payload; it waits for one that can"""
    BLOCKED = "blocked"
    """what it waited for is free; a worker is about to queue it"""
    PAUSED = "paused"
    NO_WORKER = "no_worker"
    NO_HANDLER = "no_handler"
    NO_CONSUMER = "no_consumer"
    BUSY = "busy"
    IN_LINE = "in_line"


@dataclass(frozen=True, slots=True)
class Holder:
    """A job that has what another waits for, and the worker that runs it, if one does."""

    id: str
    worker: str | None

    def __str__(self) -> str:
        return self.id if self.worker is None else f"{self.id} on {self.worker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job is where it is, as the store showed it at one moment: a word, a sentence and the facts in it."""

    job_id: str
    status: Status
    why: Why
    text: str
    since: datetime | None = None
    """since when: it runs, its queue is paused, its lease has expired, it has ended"""
    until: datetime | None = None
    """when it goes on, where that is known"""
    worker: str | None = None
    holders: tuple[Holder, ...] = ()
    """the jobs in its way, at most three"""
    ahead: int | None = None
    """how many jobs of its queue come before it"""
    exact: bool = True
    """false when there was more to look through than was looked through: figures are then lower bounds"""

    @property
    def holder(self) -> str | None:
        """The id of the job in its way, or of one of them."""
        return self.holders[0].id if self.holders else None


async def explained(store: Store, job: Job) -> Explanation:
    """The reason a job is where it is."""
    return await _Look(store, job, await store.now()).explain()


async def explained_to_its_user(store: Store, job: Job) -> Explanation:
    """The same without a word of other jobs, of workers, or of what only operators can do."""
    now = await store.now()
    why, text = _to_its_user(job, now)
    until = job.run_at if job.run_at > now and why in (Why.SCHEDULED, Why.RETRYING, Why.SIGNAL) else None
    return Explanation(job_id=job.id, status=job.status, why=why, text=text, until=until)


def _to_its_user(job: Job, now: datetime) -> tuple[Why, str]:
    match job.status:
        case Status.SUCCEEDED | Status.FAILED | Status.CANCELLED:
            verb = "was cancelled" if job.status is Status.CANCELLED else job.status.value
            return Why.FINISHED, f"It is finished: it {verb} at {clock(job.finished_at)} UTC."
        case Status.PROCESSING if job.cancel_requested_at is not None:
            return Why.CANCELLING, "It is running and was asked to stop."
        case Status.PROCESSING:
            return Why.RUNNING, f"It is running, attempt {job.attempts} of {job.max_attempts}."
        case Status.SCHEDULED:
            return Why.SCHEDULED, f"It is scheduled for {clock(job.run_at)} UTC."
        case Status.RETRYING:
            return Why.RETRYING, f"Attempt {_of(job)} failed; it is tried again at {clock(job.run_at)} UTC."
        case Status.BLOCKED:
            by = _blocked_by(job)
            if by is not None and by.kind is Kind.SIGNAL:
                last = "" if job.run_at - now > FOR_EVER else f" until {clock(job.run_at)} UTC"
                return Why.SIGNAL, f"It waits for the signal {by.key}{last}."
            return Why.BLOCKED, "It waits for something that other jobs use or have to do first."
        case Status.QUEUED:
            return Why.IN_LINE, "It waits for its turn."


class _Look:
    """One look at one job."""

    def __init__(self, store: Store, job: Job, now: datetime) -> None:
        self._store, self._job, self._now = store, job, now

    async def explain(self) -> Explanation:
        job = self._job
        if job.expires_at is None or job.lease_token or job.status.finished:
            return await self._where()
        if job.expires_at <= self._now:
            text = (
                f"It expired at {clock(job.expires_at)} UTC, not taken by any worker: the next look by one cancels it."
            )
            return self._because(Why.EXPIRED, text, since=job.expires_at)
        found = await self._where()
        left = f"in {span(job.expires_at - self._now)}, at {clock(job.expires_at)} UTC"
        return replace(found, text=f"{found.text} It expires {left}, unless a worker has taken it by then.")

    async def _where(self) -> Explanation:
        match self._job.status:
            case Status.SUCCEEDED | Status.FAILED | Status.CANCELLED:
                return await self._finished()
            case Status.PROCESSING:
                return await self._running()
            case Status.SCHEDULED | Status.RETRYING:
                return await self._later()
            case Status.BLOCKED:
                return await self._blocked()
            case Status.QUEUED:
                return await self._queued()

    def _because(
        self,
        why: Why,
        text: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        worker: str | None = None,
        holders: Sequence[Holder] = (),
        ahead: int | None = None,
        exact: bool = True,
    ) -> Explanation:
        return Explanation(
            job_id=self._job.id,
            status=self._job.status,
            why=why,
            text=text,
            since=since,
            until=until,
            worker=worker,
            holders=tuple(holders[:_NAMED]),
            ahead=ahead,
            exact=exact,
        )

    # Ended, running, waiting for its time.

    async def _finished(self) -> Explanation:
        job = self._job
        if job.status is Status.CANCELLED and await self._has_expired():
            given = "" if job.expires_at is None else f", {span(job.expires_at - job.created_at)} after it was enqueued"
            text = f"It expired{given}: no worker had taken it by then"
            text += f'; "windlass retry {job.id}" would queue it again, without a time to begin by.'
            return self._because(Why.EXPIRED, text, since=job.finished_at)
        verb = "was cancelled" if job.status is Status.CANCELLED else job.status.value
        ended = f"It is finished: it {verb} at {clock(job.finished_at)} UTC after {_tries(job)}"
        if job.status is Status.SUCCEEDED:
            return self._because(Why.FINISHED, f"{ended}, in {milliseconds(job.duration_ms)}.", since=job.finished_at)
        told = f" ({_error(job)})" if job.error is not None and job.status is Status.FAILED else ""
        text = f'{ended}{told}; "windlass retry {job.id}" would queue it again.'
        return self._because(Why.FINISHED, text, since=job.finished_at)

    async def _has_expired(self) -> bool:
        if self._job.expires_at is None:
            return False
        history = await self._store.views.history(self._job.id)
        return bool(history) and history[-1].note == EXPIRED

    async def _running(self) -> Explanation:
        job, expires = self._job, self._job.lease_expires_at
        if expires is not None and expires < self._now:
            over = f"Its worker {job.worker_id} let its lease expire {span(self._now - expires)} ago"
            alive = await live_workers(self._store)
            then = "; the next rescue hands it back" if alive else ", and no worker is alive to rescue it: start one"
            return self._because(Why.LEASE_EXPIRED, f"{over}{then}.", since=expires, worker=job.worker_id)
        lasting = "" if job.started_at is None else f" since {clock(job.started_at)} UTC"
        running = f"It is running on {job.worker_id}{lasting}"
        if job.cancel_requested_at is not None:
            text = f"{running} and was asked to stop at {clock(job.cancel_requested_at)} UTC; it has not stopped yet."
            return self._because(Why.CANCELLING, text, since=job.cancel_requested_at, worker=job.worker_id)
        text = f"{running}, attempt {job.attempts} of {job.max_attempts}."
        return self._because(Why.RUNNING, text, since=job.started_at, worker=job.worker_id)

    async def _later(self) -> Explanation:
        job = self._job
        due = f"{clock(job.run_at)} UTC"
        if job.run_at <= self._now:
            if not await live_workers(self._store):
                text = f"It has been due since {due}, but no worker is alive to queue it: start one."
                return self._because(Why.NO_WORKER, text, since=job.run_at)
            return self._because(Why.DUE, f"It came due at {due} and is about to be queued.", since=job.run_at)
        left, paused = span(job.run_at - self._now), await self._pause()
        if job.status is Status.RETRYING:
            told = f" with {_error(job)}" if job.error is not None else ""
            text = f"Attempt {_of(job)} failed{told}; it is tried again in {left}, at {due}{paused}."
            return self._because(Why.RETRYING, text, until=job.run_at)
        return self._because(Why.SCHEDULED, f"It is scheduled for {due}, in {left}{paused}.", until=job.run_at)

    async def _pause(self) -> str:
        """What a sentence on a job that waits for something else ends with where its queue is paused besides."""
        queue = await self._queue()
        return "" if queue is None or queue.paused_at is None else f", but its queue {queue.name!r} is paused"

    # Blocked.

    async def _blocked(self) -> Explanation:
        match _blocked_by(self._job):
            case BlockedBy(Kind.LIMIT, key):
                return await self._limited(key)
            case BlockedBy(Kind.UNIQUE, key):
                return await self._excluded(key)
            case BlockedBy(Kind.RATE, key):
                return await self._rated(key)
            case BlockedBy(Kind.FLOW):
                return await self._following()
            case BlockedBy(Kind.PAYLOAD):
                return self._parked()
            case BlockedBy(Kind.SIGNAL, name):
                return await self._waiting(name)
            case _:
                return self._free(f"It waits for {self._job.blocked_by or 'something that has no name'}")

    async def _limited(self, key: str) -> Explanation:
        job = self._job
        found, complete = await self._looked_through([Status.PROCESSING], lambda one: one.limit_key == key)
        most = f"At most {job.limit} of {key!r} may run at once"
        if complete and len(found) < (job.limit or 1):
            return self._free(f"{most}, and {len(found) or 'none'} of them {'runs' if len(found) == 1 else 'run'} now")
        if not found:
            text = f"{most}, and those that do are not among the newest {MOST_LOOKED_AT:,} running jobs."
            return self._because(Why.LIMIT, text, exact=False)
        named = _listed(found, complete=complete)
        return self._because(Why.LIMIT, f"{most}, and running are {named}.", holders=_holders(found), exact=complete)

    async def _excluded(self, key: str) -> Explanation:
        # A key may also be held by a job that waits: for its next attempt, or handed back by a worker that stopped.
        statuses = [Status.PROCESSING, Status.RETRYING, Status.SCHEDULED, Status.QUEUED]
        found, complete = await self._looked_through(
            statuses, lambda one: one.unique_key == key and one.id != self._job.id, enough=1
        )
        if found:
            holder = found[0]
            state = "" if holder.status is Status.PROCESSING else f", which is {_state(holder)}"
            text = f"The running key {key!r} is held by {_holder(holder)}{state}; it starts when that has ended."
            return self._because(Why.RUNNING_KEY, text, holders=_holders(found))
        if complete:
            return self._free(f"It waited for the running key {key!r}, which nobody holds any more")
        text = f"The running key {key!r} is held, by none of the newest {MOST_LOOKED_AT:,} jobs of any status."
        return self._because(Why.RUNNING_KEY, text, exact=False)

    async def _rated(self, key: str) -> Explanation:
        job = self._job
        most = f"At most {job.rate_n} of {key!r} start within {milliseconds(job.rate_ms)}"
        text = f"{most}, and that many have started; it starts in its turn when there is room{await self._pause()}."
        return self._because(Why.RATE, text)

    def _parked(self) -> Explanation:
        reason = "" if self._job.error is None else f": {line(self._job.error.message, _LONGEST_TOLD)}"
        text = (
            f"Its payload does not fit the handler of {self._job.type} that met it{reason}; it is queued again by the"
            f' first worker that can read it, or by "windlass retry {self._job.id}".'
        )
        return self._because(Why.PAYLOAD, text)

    async def _waiting(self, name: str) -> Explanation:
        job, ends = self._job, self._job.run_at
        if ends <= self._now:
            return self._free(f"The signal {name} did not come by {clock(ends)} UTC")
        last = "" if ends - self._now > FOR_EVER else f" until {clock(ends)} UTC"
        text = f'It waits for the signal {name}{last}; "windlass signal {job.id} {name}" sends it{await self._pause()}.'
        return self._because(Why.SIGNAL, text, until=ends if last else None)

    async def _following(self) -> Explanation:
        page = await self._store.views.find(Filter(next_id=self._job.id), _PAGE)
        live = [one for one in reversed(page.jobs) if not one.status.finished]
        if not live:
            return self._free("The jobs that it waited for have ended")
        first, exact = live[0], page.next is None
        named = f"job {first.id} ({first.type}), which is {_state(first)}"
        least, gathered = "" if exact else "at least ", gathered_as(self._job, first.id)
        many = f"{least}{len(live):,} jobs to end, the first of them {named}"
        text = f"It waits for {named if len(live) == 1 else many}."
        if gathered is not None:
            name, n = gathered
            text = f"It waits for what it gathers as {name}: {least}{len(live):,} of {n:,} left, the first {named}."
        return self._because(Why.FLOW, text, holders=_holders(live), exact=exact)

    def _free(self, told: str) -> Explanation:
        return self._because(Why.BLOCKED, f"{told}: the next look by a worker queues it.")

    async def _looked_through(
        self, statuses: Sequence[Status], wanted: Callable[[Job], bool], enough: int | None = None
    ) -> tuple[list[Job], bool]:
        found: list[Job] = []
        complete = True
        for status in statuses:
            after: str | None = None
            for _ in range(MOST_LOOKED_AT // _PAGE):
                page = await self._store.views.find(Filter(status=status), _PAGE, after)
                found += [one for one in page.jobs if wanted(one)]
                after = page.next
                if after is None or (enough is not None and len(found) >= enough):
                    break
            complete = complete and after is None
            if enough is not None and len(found) >= enough:
                break
        return found, complete

    # Queued.

    async def _queued(self) -> Explanation:
        job, queue = self._job, await self._queue()
        if queue is not None and queue.paused_at is not None:
            text = (
                f"Its queue {job.queue!r} has been paused since {clock(queue.paused_at)} UTC:"
                f' "windlass queues resume {job.queue}" lets it go on.'
            )
            return self._because(Why.PAUSED, text, since=queue.paused_at)
        workers = await live_workers(self._store)
        if not workers:
            return self._because(Why.NO_WORKER, "No worker is alive: start one with windlass worker MODULE:APP.")
        able = [one for one in workers if job.type in one.types]
        if not able:
            who = (
                "The one live worker has no" if len(workers) == 1 else f"None of the {len(workers)} live workers has a"
            )
            text = f"{who} handler for the type {job.type!r}: deploy one that does, or check the name."
            return self._because(Why.NO_HANDLER, text)
        consuming = [one for one in able if not one.queues or job.queue in one.queues]
        if not consuming:
            text = (
                f"No live worker that handles {job.type!r} consumes the queue {job.queue!r}:"
                f" start one with -q {job.queue}."
            )
            return self._because(Why.NO_CONSUMER, text)
        return await self._in_line(consuming)

    async def _in_line(self, workers: Sequence[WorkerState]) -> Explanation:
        slots, running = sum(one.slots for one in workers), sum(one.running for one in workers)
        ahead, exact = await self._ahead()
        before = f"{'' if exact else 'at least '}{plural(ahead, 'job')} of {self._job.queue!r}"
        before += " is ahead of it" if ahead == 1 and exact else " are ahead of it"
        if running >= slots:
            which = "The one slot" if slots == 1 else f"All {slots} slots"
            text = f"{which} of the workers that could run it {'is' if slots == 1 else 'are'} busy, and {before}."
            return self._because(Why.BUSY, text, ahead=ahead, exact=exact)
        text = f"It waits to be claimed: {slots - running} of {plural(slots, 'slot')} were free lately, and {before}."
        return self._because(Why.IN_LINE, text, ahead=ahead, exact=exact)

    async def _ahead(self) -> tuple[int, bool]:
        """How many are claimed before it, as far as was looked: by priority, then by time, then by id."""
        job, ahead, after = self._job, 0, None
        place = (job.priority, job.run_at, job.id)
        for _ in range(MOST_LOOKED_AT // _PAGE):
            page = await self._store.views.find(Filter(status=Status.QUEUED, queue=job.queue), _PAGE, after)
            ahead += sum((one.priority, one.run_at, one.id) < place for one in page.jobs)
            after = page.next
            if after is None:
                return ahead, True
        return ahead, False

    async def _queue(self) -> QueueInfo | None:
        return next((one for one in await self._store.queues.list() if one.name == self._job.queue), None)


def _blocked_by(job: Job) -> BlockedBy | None:
    """What blocks a job; None if nothing does, or something that only a newer windlass knows."""
    try:
        return None if job.blocked_by is None else BlockedBy.of(job.blocked_by)
    except StoreError:
        return None


def _error(job: Job) -> str:
    return "" if job.error is None else line(f"{job.error.type}: {job.error.message}", _LONGEST_TOLD)


def _of(job: Job) -> str:
    return f"{job.attempts} of {job.max_attempts}"


def _tries(job: Job) -> str:
    return f"{_of(job)} attempts"


def _state(job: Job) -> str:
    match job.status:
        case Status.PROCESSING:
            return f"running on {job.worker_id}"
        case Status.RETRYING | Status.SCHEDULED:
            return f"{job.status} for {clock(job.run_at)} UTC"
        case _:
            return job.status.value


def _holder(job: Job) -> Holder:
    return Holder(job.id, job.worker_id if job.status is Status.PROCESSING else None)


def _holders(jobs: Sequence[Job]) -> list[Holder]:
    return [_holder(one) for one in jobs[:_NAMED]]


def _listed(jobs: Sequence[Job], *, complete: bool) -> str:
    named = ", ".join(str(one) for one in _holders(jobs))
    more = len(jobs) - _NAMED
    if more > 0:
        return f"{named} and {'' if complete else 'at least '}{more:,} more"
    return named if complete else f"at least {named}"
