"""What holds at every quiet moment, recounted from what the views show. Numbers as in the reliability contract.

I1 an end is final but for an operator. I2 a lease belongs to a processing job only. I3 only the current token ends an
attempt. I5 attempts and crashes stay within their bounds. I6 a unique key has one live holder. I7 no more jobs of a key
run than its limit. I9 history is in order, one entry per move. I12 shown counts are the recounted ones.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

from tests.contract.steps import everything
from windlass.core.history import HISTORY_LIMIT, Entry, Happened
from windlass.core.job import Job
from windlass.core.status import Status, allowed
from windlass.stores.contract import Store

STAYS = {Happened.REFUSED, Happened.CANCEL_REQUESTED, Happened.REPLACED, Happened.AGED}
"""what is told without a move"""
ENDS = {Happened.SUCCEEDED, Happened.RETRYING, Happened.SNOOZED, Happened.RELEASED, Happened.CRASHED}
"""what only the holder of a lease does"""


async def check(store: Store) -> tuple[list[Job], list[list[Entry]]]:
    """Recount everything; returns what was read."""
    jobs = await everything(store)
    histories = await asyncio.gather(*[store.views.history(job.id) for job in jobs])
    for job, history in zip(jobs, histories, strict=True):
        check_record(job)
        check_history(job, history)
    check_keys(jobs)
    check_limits(jobs)
    await check_counts(store, jobs)
    return jobs, histories


def check_record(job: Job) -> None:
    running, told = job.status is Status.PROCESSING, f"{job}"
    assert (job.lease_expires_at is not None) == running, f"I2 {told}"
    assert job.worker_id is not None or not running, f"I2 {told}"
    assert 0 <= job.attempts <= job.max_attempts, f"I5 {told}"
    assert 0 <= job.crashes <= job.max_crashes, f"I5 {told}"
    assert (job.finished_at is not None) == job.status.finished, told
    called = job.status is Status.QUEUED and job.blocked_by == f"rate:{job.rate_key}"
    assert (job.blocked_by is not None) == (job.status is Status.BLOCKED or called), told
    assert job.unique_key is None or not job.status.finished, f"I6 {told}"
    assert job.unique_key in (None, job.unique_queued, job.unique_running), f"I6 {told}"


def check_history(job: Job, history: Sequence[Entry]) -> None:
    told = f"{job.id}: {[(entry.number, entry.happened.value, entry.status.value, entry.token) for entry in history]}"
    assert history, told
    assert len(history) <= HISTORY_LIMIT, told
    assert history[-1].status is job.status, f"I9 {told}"
    if len(history) < HISTORY_LIMIT:
        assert (history[0].number, history[0].happened) == (1, Happened.ENQUEUED), f"I9 {told}"
    token = 0
    for entry in history:
        if entry.happened is Happened.CLAIMED:
            assert entry.token is not None, told
            assert entry.token > token, f"I2 {told}"
            token = entry.token
        if entry.happened in ENDS:
            assert entry.token in (None, token), f"I3 {told}"
    assert token <= job.lease_token, f"I2 {told}"
    for before, after in pairwise(history):
        assert (after.number, after.at >= before.at) == (before.number + 1, True), f"I9 {told}"
        if after.happened in STAYS:
            stays = after.status is before.status or after.happened is Happened.REPLACED
            assert stays, f"I9 {told}"
        else:
            assert allowed(before.status, after.status), f"I9 {told}"
        if before.status.finished and after.status is not before.status:
            assert after.happened is Happened.RETRIED, f"I1 {told}"


def check_keys(jobs: Sequence[Job]) -> None:
    held = Counter(job.unique_key for job in jobs if job.unique_key is not None)
    assert not held or max(held.values()) == 1, f"I6 {held}"


def check_limits(jobs: Sequence[Job]) -> None:
    running = Counter(job.limit_key for job in jobs if job.status is Status.PROCESSING)
    for job in jobs:
        if job.limit_key is not None:
            assert running[job.limit_key] <= (job.limit or 0), f"I7 {running}"


def orphans(jobs: Sequence[Job]) -> list[str]:
    """Blocked jobs whose way is free, while nobody of their line is on the way to use it."""
    held = {job.unique_key: job.id for job in jobs if job.unique_key is not None}
    found: list[str] = []
    for job in (job for job in jobs if job.status is Status.BLOCKED):
        line = [one for one in jobs if shares_line(one, job)]
        free = (job.limit or 0) if job.limit_key is not None else 1
        free -= sum(one.status is Status.PROCESSING for one in line if one.limit_key is not None)
        key_free = job.unique_running is None or held.get(job.unique_running, job.id) == job.id
        if key_free and sum(one.status is Status.QUEUED for one in line) < free:
            found.append(job.id)
    return found


def shares_line(one: Job, other: Job) -> bool:
    by_limit = one.limit_key is not None and one.limit_key == other.limit_key
    return by_limit or (one.unique_running is not None and one.unique_running == other.unique_running)


async def check_counts(store: Store, jobs: Sequence[Job]) -> None:
    shown = {(one.queue, one.status): one.count.n for one in (await store.views.stats(timedelta(0))).counts}
    assert {key: n for key, n in shown.items() if n} == Counter((job.queue, job.status) for job in jobs), "I12"
