"""Orders: what keys do to queues, jobs and failures, as a question beforehand and as words about what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.cli.operating import record_bulk
from windlass.cli.words import count, plural, span
from windlass.core.errors import MoveRefused
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.cli.desk import Desk
    from windlass.cli.top.picture import QueueSeen
    from windlass.client.dead_letters import DeadGroup
    from windlass.client.searching import DeadSearch
    from windlass.core.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Something to do once it is confirmed."""

    question: str
    about: tuple[str, ...]
    """what it will mean, in lines"""
    dangerous: bool
    do: Callable[[], Awaitable[str]]
    """carries it out; answers what became of it"""


def pausing(desk: Desk, queue: QueueSeen) -> Order:
    """Pause a queue, or let it go on."""
    name, info = queue.info.name, queue.info
    waiting = f"{count(info.depth)} waiting, {count(info.processing)} running"

    async def pause() -> str:
        await desk.app.queues.pause(name)
        await desk.record("queue.pause", f"queue:{name}", before={"paused": False}, after={"paused": True})
        return f"queue {name} is paused"

    async def resume() -> str:
        await desk.app.queues.resume(name)
        await desk.record("queue.resume", f"queue:{name}", before={"paused": True}, after={"paused": False})
        return f"queue {name} goes on"

    if info.paused_at is None:
        about = (waiting, "Nothing more is claimed from it; what runs goes on.")
        return Order(question=f"Pause queue {name}?", about=about, dangerous=False, do=pause)
    about = (waiting, "Workers claim from it again.")
    return Order(question=f"Resume queue {name}?", about=about, dangerous=False, do=resume)


async def retry(desk: Desk, job: Job) -> str:
    """Queue a job again."""
    await desk.app.jobs.retry(job.id, actor=desk.actor)
    await desk.record("job.retry", f"job:{job.id}", before={"status": job.status.value})
    return f"job {job.id} is queued again"


def cancelling(desk: Desk, job: Job) -> Order:
    """Cancel a job, or ask its worker to stop it."""
    if job.status.finished:
        raise MoveRefused(job.id, job.status, "cancelled")
    runs = job.status is Status.PROCESSING
    means = "It runs: its worker is asked to stop it." if runs else "It is cancelled at once."

    async def cancel() -> str:
        done = await desk.app.jobs.cancel(job.id, actor=desk.actor)
        before = {"status": job.status.value}
        await desk.record("job.cancel", f"job:{job.id}", before=before, requested=None if done else True)
        return f"job {job.id} is cancelled" if done else f"the worker of job {job.id} was asked to stop it"

    return Order(question="Cancel this job?", about=(*_named(job), means), dangerous=True, do=cancel)


def deleting(desk: Desk, job: Job) -> Order:
    """Delete a job."""
    if job.status is Status.PROCESSING:
        raise MoveRefused(job.id, job.status, "deleted")

    async def delete() -> str:
        await desk.app.jobs.delete(job.id, actor=desk.actor)
        await desk.record("job.delete", f"job:{job.id}", before={"status": job.status.value})
        return f"job {job.id} is deleted"

    means = "It goes with its history. This cannot be undone."
    return Order(question="Delete this job?", about=(*_named(job), means), dangerous=True, do=delete)


async def replaying(desk: Desk, group: DeadGroup, search: DeadSearch) -> Order:
    """Do the work of every failed job of a group again."""
    search = {**search, "fingerprint": group.fingerprint}
    told = await desk.app.dead_letters.replay_all(dry_run=True, **search)

    async def replay() -> str:
        done = await desk.app.dead_letters.replay_all(actor=desk.actor, **search)
        kinds = {why.value: n for why, n in done.skipped.items()}
        await record_bulk(desk, "replay", search, {"replayed": done.replayed, "skipped": kinds or None})
        skipped = sum(kinds.values())
        left = f"; {skipped:,} skipped: replayed before, or their key is held" if skipped else ""
        return f"{plural(done.replayed, 'job')} replayed{left}"

    seen = "" if group.last_seen is None or group.first_seen is None else span(group.last_seen - group.first_seen)
    about = (
        f"{group.type}: {group.error}: {group.message}",
        f"seen over {seen}",
        "Each is enqueued as a new job; one that was replayed before is skipped.",
    )
    question = f"Replay {plural(told.matched, 'failed job')}?"
    return Order(question=question, about=about, dangerous=True, do=replay)


def _named(job: Job) -> tuple[str, ...]:
    return f"{job.type}  {job.status}  queue {job.queue}", job.id
