"""What holds at every quiet moment, recounted from what the views show. Numbers as in the reliability contract.

I1 an end is final but for an operator. I2 a lease belongs to a processing job only. I3 only the current token ends an
attempt. I5 attempts and crashes stay within their bounds. I6 a unique key has one live holder. I7 no more jobs of a key
run than its limit. I8 a tick makes one job. I9 history is in order, one entry per move. I12 shown counts are the
recounted ones. I4, I10 and I11 need witnesses outside the store: see the checker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from windlass import Entry, Happened, Job, Status
from windlass.core.blocked import Kind, lines
from windlass.core.history import HISTORY_LIMIT
from windlass.core.status import allowed

MAY_MOVE = {Happened.REPLACED, Happened.SIGNALLED}
"""what is told with or without a move"""
STAYS = {Happened.REFUSED, Happened.CANCEL_REQUESTED, Happened.AGED} | MAY_MOVE
"""what is told without a move, or may be"""
ENDS = {
    *(Happened.SUCCEEDED, Happened.RETRYING, Happened.SNOOZED, Happened.RELEASED),
    *(Happened.CRASHED, Happened.SUSPENDED),
}
"""what only the holder of a lease does"""
IN_LINE = (Kind.LIMIT, Kind.UNIQUE)
"""what jobs wait for that others of their line give back"""
CLOCKS = 0.05
"""seconds by which stamps of neighbouring writes may lie in each other: a claim may read the clock, then wait"""


def of_store(
    jobs: Sequence[Job], histories: Mapping[str, Sequence[Entry]], shown: Mapping[tuple[str, Status], int] | None
) -> Iterator[str]:
    """Everything that does not hold; `shown` are the counts by queue and status that the store gives."""
    for job in jobs:
        yield from of_record(job)
        yield from of_history(job, histories[job.id])
    yield from of_keys(jobs)
    yield from of_limits(jobs)
    yield from of_ticks(jobs)
    if shown is not None:
        yield from of_counts(jobs, shown)


def of_record(job: Job) -> Iterator[str]:
    """I2, I5, I6 and what else a record says about itself."""
    running = job.status is Status.PROCESSING
    called = job.status is Status.QUEUED and job.blocked_by in lines(rate=job.rate_key)
    held: dict[str, tuple[bool, ...]] = {
        "I2": (
            (job.lease_expires_at is not None) == running,
            job.worker_id is not None or not running,
        ),
        "I5": (0 <= job.attempts <= job.max_attempts, 0 <= job.crashes <= job.max_crashes),
        "I6": (
            job.unique_key is None or not job.status.finished,
            job.unique_key in (None, job.unique_queued, job.unique_running),
        ),
        "record": (
            (job.finished_at is not None) == job.status.finished,
            (job.blocked_by is not None) == (job.status is Status.BLOCKED or called),
        ),
    }
    for name, facts in held.items():
        if not all(facts):
            yield f"{name} {job}"


def of_history(job: Job, history: Sequence[Entry]) -> Iterator[str]:
    """I1, I2, I3 and I9."""
    for name in sorted(set(_history(job, history))):
        told = [f"{one.number} {one.happened} {one.status} {one.token} {one.at:%T.%f}" for one in history]
        yield f"{name} {job.id}: {', '.join(told)}"


def _history(job: Job, history: Sequence[Entry]) -> Iterator[str]:
    if not 0 < len(history) <= HISTORY_LIMIT or history[-1].status is not job.status:
        yield "I9"
        return
    if len(history) < HISTORY_LIMIT and (history[0].number, history[0].happened) != (1, Happened.ENQUEUED):
        yield "I9"
    token = 0
    for entry in history:
        if entry.happened is Happened.CLAIMED:
            if entry.token is None or entry.token <= token:
                yield "I2"
            token = entry.token or 0
        if entry.happened in ENDS and token and entry.token not in (None, token):
            yield "I3"
    if token > job.lease_token:
        yield "I2"
    for before, after in pairwise(history):
        if after.number != before.number + 1 or after.at < before.at:
            yield "I9"
        if after.happened in STAYS:
            if after.status is not before.status and after.happened not in MAY_MOVE:
                yield "I9"
        elif not allowed(before.status, after.status):
            yield "I9"
        if before.status.finished and after.status is not before.status and after.happened is not Happened.RETRIED:
            yield "I1"


def of_keys(jobs: Sequence[Job]) -> Iterator[str]:
    """I6: a key has one holder."""
    held = Counter(job.unique_key for job in jobs if job.unique_key is not None)
    yield from (f"I6 {key} is held by {n}" for key, n in held.items() if n > 1)


def of_limits(jobs: Sequence[Job]) -> Iterator[str]:
    """I7: a limit holds now."""
    limits = {job.limit_key: job.limit or 0 for job in jobs if job.limit_key is not None}
    running = Counter(job.limit_key for job in jobs if job.status is Status.PROCESSING)
    yield from (f"I7 {running[key]} of {key} run, limit {most}" for key, most in limits.items() if running[key] > most)


def of_ticks(jobs: Sequence[Job]) -> Iterator[str]:
    """I8: a tick makes one job."""
    made = Counter((job.schedule, job.tick) for job in jobs if job.tick is not None)
    yield from (f"I8 {schedule} at {tick} made {n} jobs" for (schedule, tick), n in made.items() if n > 1)


def of_counts(jobs: Sequence[Job], shown: Mapping[tuple[str, Status], int]) -> Iterator[str]:
    """I12: what the store counts is what is there."""
    counted = Counter((job.queue, job.status) for job in jobs)
    told = {key: n for key, n in shown.items() if n}
    if told != counted:
        yield f"I12 shown {told}, counted {dict(counted)}"


def crowded(spans: Sequence[tuple[float, float]], most: int, clocks: float = CLOCKS) -> int:
    """How many spans lie over one another at the worst moment, if more than `most`; else 0."""
    # Each begins a little later here than it says, so that stamps of neighbouring writes do not count as overlap.
    long = [(begin + clocks, end) for begin, end in spans if end - begin > clocks]
    marks = sorted([(begin, 1) for begin, _ in long] + [(end, -1) for _, end in long])
    worst = now = 0
    for _, step in marks:
        now += step
        worst = max(worst, now)
    return worst if worst > most else 0


def orphans(jobs: Sequence[Job]) -> list[str]:
    """Blocked jobs whose way is free, while nobody of their line is on the way to use it."""
    held = {job.unique_key: job.id for job in jobs if job.unique_key is not None}
    found: list[str] = []
    for job in jobs:
        if job.status is not Status.BLOCKED or not any(kind.blocks(job.blocked_by) for kind in IN_LINE):
            continue  # no end of another job that shares its line lets it go on
        line = [one for one in jobs if shares_line(one, job)]
        free = (job.limit or 0) if job.limit_key is not None else 1
        free -= sum(one.status is Status.PROCESSING for one in line if one.limit_key is not None)
        key_free = job.unique_running is None or held.get(job.unique_running, job.id) == job.id
        if key_free and sum(one.status is Status.QUEUED for one in line) < free:
            found.append(job.id)
    return found


def shares_line(one: Job, other: Job) -> bool:
    """Whether two jobs may have to wait for each other."""
    by_limit = one.limit_key is not None and one.limit_key == other.limit_key
    return by_limit or (one.unique_running is not None and one.unique_running == other.unique_running)
