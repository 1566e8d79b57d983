"""Rehearsing: what a replay of failed jobs would meet, found out without doing it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.client.dead_letters import Skipped
from windlass.core.status import WAITING, Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.client.client import Client
    from windlass.client.jobs import JobsRoom
    from windlass.client.searching import Search
    from windlass.core.job import Job

LOOKED_AT = 200
"""so many of the newest that match are looked at one by one"""
_LATER = 1000
"""among so many of the newest jobs of a type its replays are looked for"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """How many would be replayed, and which of those looked at would be skipped, and why."""

    matched: int
    exact: bool
    looked_at: int
    skipped: Mapping[Skipped, Sequence[str]] = field(default_factory=dict[Skipped, "Sequence[str]"])
    """the ids of failed jobs"""


async def rehearse(client: Client, jobs: JobsRoom, search: Search, limit: int | None) -> Rehearsal:
    """What a replay of these would meet now. By the time it is done some of it may have changed."""
    wanted: Search = {**search, "status": Status.FAILED}
    count = await jobs.count(**wanted)
    matched = count.n if limit is None else min(count.n, limit)
    page = await jobs.find(limit=LOOKED_AT, **wanted)
    sample = page.jobs[:limit]
    skipped: defaultdict[Skipped, list[str]] = defaultdict(list)
    again = await _replayed(jobs, sample)
    held: set[str] = set()
    room = await _room(client, jobs, sample)
    for job in sample:
        key = job.unique_queued
        if job.id in again:
            skipped[Skipped.ALREADY_REPLAYED].append(job.id)
        elif key is not None and (key in held or await _is_held(jobs, key)):
            skipped[Skipped.KEY_HELD].append(job.id)
        elif room.get(job.queue, 1) <= 0:
            skipped[Skipped.QUEUE_FULL].append(job.id)
        else:
            held |= set() if key is None else {key}
            if job.queue in room:
                room[job.queue] -= 1
    exact = count.exact or (limit is not None and limit <= count.n)
    return Rehearsal(matched=matched, exact=exact, looked_at=len(sample), skipped=dict(skipped))


async def _replayed(jobs: JobsRoom, sample: Sequence[Job]) -> set[str]:
    """Those whose last ending was replayed: the replay is a job of their type, and was made after it."""
    ended = {job.id: job.finished_at for job in sample}
    found: set[str] = set()
    for type_ in sorted({job.type for job in sample}):
        for later in (await jobs.find(type=type_, limit=_LATER)).jobs:
            before = ended.get(later.replay_of or "")
            if before is not None and later.created_at >= before:
                found.add(later.replay_of or "")
    return found


async def _is_held(jobs: JobsRoom, key: str) -> bool:
    return bool((await jobs.find(unique_key=key, limit=1)).jobs)


async def _room(client: Client, jobs: JobsRoom, sample: Sequence[Job]) -> dict[str, int]:
    """How many more each of their queues takes, where that is bounded."""
    wanted = {job.queue for job in sample}
    queues = [one for one in await (await client.ready()).queues.list() if one.name in wanted]
    bounded = {one.name: one.max_depth for one in queues if one.max_depth is not None}
    return {name: most - (await jobs.count(queue=name, status=WAITING)).n for name, most in bounded.items()}
