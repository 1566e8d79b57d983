"""`explain`: one true sentence on why a job is not running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.looking import live_workers
from windlass.cli.words import clock, milliseconds, span
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.core.job import Job
    from windlass.stores.contract import WorkerInfo

_MOST_LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, as one word for machines and one sentence for people, and the job in the way if there is one."""

    why: str
    sentence: str
    holders: tuple[str, ...] = ()


def explain(ctx: typer.Context, id: Annotated[str, typer.Argument(metavar="ID", help="The job's whole id.")]) -> None:
    """Say why a job is not running, in one sentence."""

    async def work(desk: Desk) -> None:
        job = await desk.app.jobs.get(id)
        reason = await why(desk, job)
        if desk.screen.as_json:
            facts = {"id": job.id, "status": job.status.value, "why": reason.why, "sentence": reason.sentence}
            desk.screen.fact({**facts, "holders": list(reason.holders)})
        else:
            desk.screen.line(reason.sentence)

    at_desk(ctx, work)


async def why(desk: Desk, job: Job) -> Reason:
    """The reason a job stands where it stands, as the store shows it now."""
    now = await desk.store.now()
    match job.status:
        case Status.SUCCEEDED | Status.FAILED | Status.CANCELLED:
            return _finished(job)
        case Status.PROCESSING:
            return await _running(desk, job, now)
        case Status.SCHEDULED | Status.RETRYING:
            return await _later(desk, job, now)
        case Status.BLOCKED:
            return await _blocked(desk, job)
        case Status.QUEUED:
            return await _queued(desk, job)


def _finished(job: Job) -> Reason:
    verb = "was cancelled" if job.status is Status.CANCELLED else job.status.value
    when = f"{clock(job.finished_at)} UTC after {job.attempts} of {job.max_attempts} attempts"
    ended = f"It is finished: it {verb} at {when}"
    if job.status is Status.SUCCEEDED:
        return Reason("finished", f"{ended}, in {milliseconds(job.duration_ms)}.")
    told = f" ({job.error.type}: {job.error.message})" if job.error is not None and job.status is Status.FAILED else ""
    return Reason("finished", f'{ended}{told}; "windlass retry {job.id}" would queue it again.')


async def _running(desk: Desk, job: Job, now: datetime) -> Reason:
    since = "" if job.started_at is None else f" for {span(now - job.started_at)}"
    if job.lease_expires_at is not None and job.lease_expires_at < now:
        over = span(now - job.lease_expires_at)
        if not await live_workers(desk):
            return Reason(
                "lease_expired",
                f"Its worker {job.worker_id} let its lease expire {over} ago,"
                " and no worker is alive to rescue it: start one.",
            )
        return Reason(
            "lease_expired",
            f"Its worker {job.worker_id} let its lease expire {over} ago; the next rescue hands it back.",
        )
    if job.cancel_requested_at is not None:
        return Reason(
            "cancelling",
            f"It is running on {job.worker_id}{since} and was asked to stop at {clock(job.cancel_requested_at)} UTC.",
        )
    return Reason("running", f"It is running on {job.worker_id}{since}, attempt {job.attempts} of {job.max_attempts}.")


async def _later(desk: Desk, job: Job, now: datetime) -> Reason:
    left = (job.run_at - now).total_seconds()
    if left <= 0:
        if not await live_workers(desk):
            return Reason(
                "no_worker",
                f"It has been due since {clock(job.run_at)} UTC, but no worker is alive to queue it: start one.",
            )
        return Reason("due", f"It came due at {clock(job.run_at)} UTC and is about to be queued.")
    if job.status is Status.RETRYING:
        told = f" with {job.error.type}: {job.error.message}" if job.error is not None else ""
        return Reason(
            "retrying",
            f"Attempt {job.attempts} of {job.max_attempts} failed{told};"
            f" it is tried again in {span(left)}, at {clock(job.run_at)} UTC.",
        )
    return Reason("scheduled", f"It is scheduled for {clock(job.run_at)} UTC, in {span(left)}.")


async def _blocked(desk: Desk, job: Job) -> Reason:
    kind, _, key = (job.blocked_by or "").partition(":")
    holders = await _holders(desk, job, kind, key)
    who = ", ".join(f"{one.id} on {one.worker_id}" for one in holders)
    ids = tuple(one.id for one in holders)
    if not holders:
        return Reason(
            "blocked",
            f"It waited for {job.blocked_by}, which nobody holds any more: the next look by a worker queues it.",
        )
    if kind == "limit":
        return Reason("limit", f"At most {job.limit} of {key!r} may run at once, and running are {who}.", ids)
    return Reason("running_key", f"The running key {key!r} is held by {who}; it starts when that has ended.", ids)


async def _holders(desk: Desk, job: Job, kind: str, key: str) -> Sequence[Job]:
    """The jobs that hold what this one waits for: no view lists jobs by key, so the running are looked through."""
    found: list[Job] = []
    after: str | None = None
    for _ in range(_MOST_LOOKED_AT // 1000):
        page = await desk.app.jobs.find(status=Status.PROCESSING, limit=1000, after=after)
        found += [one for one in page.jobs if (one.limit_key if kind == "limit" else one.unique_key) == key]
        after = page.next
        if after is None:
            break
    if not found and kind == "unique":
        # A key may also be held by a job that waits for its next attempt.
        for status in (Status.RETRYING, Status.SCHEDULED, Status.QUEUED):
            page = await desk.app.jobs.find(status=status, type=job.type, limit=1000)
            found += [one for one in page.jobs if one.unique_key == key and one.id != job.id]
    return found


async def _queued(desk: Desk, job: Job) -> Reason:
    queues = {one.name: one for one in await desk.app.queues.list()}
    queue = queues.get(job.queue)
    if queue is not None and queue.paused_at is not None:
        return Reason(
            "paused",
            f"Its queue {job.queue!r} has been paused since {clock(queue.paused_at)} UTC:"
            f' "windlass queues resume {job.queue}" lets it go on.',
        )
    workers = await live_workers(desk)
    if not workers:
        return Reason("no_worker", "No worker is alive: start one with windlass worker MODULE:APP.")
    able = [one for one in workers if job.type in one.types]
    if not able:
        return Reason(
            "no_handler",
            f"None of the {len(workers)} live workers has a handler for the type {job.type!r}:"
            " deploy one that does, or check the name.",
        )
    consuming = [one for one in able if not one.queues or job.queue in one.queues]
    if not consuming:
        return Reason(
            "no_consumer",
            f"No live worker that handles {job.type!r} consumes the queue {job.queue!r}:"
            f" start one with -q {job.queue}.",
        )
    return await _in_line(desk, job, consuming)


async def _in_line(desk: Desk, job: Job, workers: Sequence[WorkerInfo]) -> Reason:
    slots, running = sum(one.slots for one in workers), sum(one.running for one in workers)
    depth = await desk.app.jobs.count(status=Status.QUEUED, queue=job.queue)
    if running >= slots:
        return Reason(
            "busy",
            f"All {slots} slots of the workers that could run it are busy; {depth.n:,} jobs wait in {job.queue!r}.",
        )
    return Reason(
        "in_line",
        f"It is about to be claimed: {slots - running} of {slots} slots are free,"
        f" and {depth.n:,} jobs wait in {job.queue!r}.",
    )
