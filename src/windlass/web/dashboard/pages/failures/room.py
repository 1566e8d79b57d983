"""Failures: jobs that failed for good by what is alike in them, those tried again, and those that nobody can run."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.client.workers import Presence
from windlass.core.errors import JobNotFound
from windlass.core.fingerprint import is_fingerprint
from windlass.core.transition import WORKER_DIED
from windlass.web.dashboard.pages.failures.grouping import AGE, LOOKED_AT, failing, failing_of
from windlass.web.dashboard.pages.overview.standing import unhandled
from windlass.web.dashboard.room import Page, Rail, Room
from windlass.web.problems import NOT_FOUND, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.job import Job
    from windlass.web.dashboard.visit import Visit

_NEWEST = 10
_PARKED_AGE = timedelta(seconds=15)


class Stuck(NamedTuple):
    """Jobs that wait for what nobody gives them."""

    unhandled: Sequence[tuple[str, int]]
    """type, and how many of the hundred that have waited longest"""
    parked: Sequence[tuple[str, int, str]]
    """type, how many, the id of one"""


async def show(visit: Visit) -> dict[str, Any]:
    """The groups, and what else does not get on."""
    found = await failing(visit)
    retrying = failing_of(await visit.dead_letters.retrying(most=LOOKED_AT, max_age=AGE), datetime.now(UTC))
    return {
        "found": found,
        "retrying": retrying,
        "stuck": await _stuck(visit) if visit.sees_all else Stuck((), ()),
        "worker_died": WORKER_DIED,
    }


async def show_group(visit: Visit) -> dict[str, Any]:
    """One group, with its newest jobs and how the newest of them failed."""
    print_ = visit.part("fingerprint")
    if not is_fingerprint(print_):
        raise Refused(NOT_FOUND, "there is no such group of failures")
    found = await failing(visit)
    row = next((one for one in found.rows if one.group.fingerprint == print_), None)
    newest = await visit.jobs.find(fingerprint=print_, limit=_NEWEST, max_age=AGE) if row is not None else None
    return {
        "title": "Failures" if row is None else f"{row.group.error} in {row.group.type}",
        "row": row,
        "complete": found.complete,
        "fingerprint": print_,
        "newest": () if newest is None else newest.jobs,
        "example": None if row is None else await _example(visit, row.group.example),
        "worker_died": WORKER_DIED,
    }


async def _example(visit: Visit, job_id: str) -> Job | None:
    try:
        return await visit.jobs.get(job_id)
    except JobNotFound:
        return None  # deleted since it was counted


async def _stuck(visit: Visit) -> Stuck:
    alive = [one for one in await visit.app.workers.list() if one.presence is Presence.ALIVE]
    parked = await visit.app.health.parked(max_age=_PARKED_AGE)
    counts = Counter(job.type for job in parked)
    examples = {job.type: job.id for job in reversed(parked)}
    return Stuck(
        (await unhandled(visit, alive)).most_common(),
        [(type_, n, examples[type_]) for type_, n in counts.most_common()],
    )


ROOM = Room(
    name="failures",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/failures",
            title="Failures",
            template="failures.html",
            show=show,
            rail=Rail(word="Failures", icon="M10 2.8L18 17H2zM10 8v4M10 14.4v.1", order=60, key="f"),
        ),
        Page(
            path="/failures/{fingerprint}",
            title="Failure",
            template="group.html",
            show=show_group,
            under="/failures",
        ),
    ),
)
