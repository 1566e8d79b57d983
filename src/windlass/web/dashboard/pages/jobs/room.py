"""Jobs: the list of them, and a look at one beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.client.testing import BY_SPAN
from windlass.core.errors import JobNotFound, SettingsError
from windlass.core.status import FINISHED, Status
from windlass.stores.contract import Scope
from windlass.web.dashboard.pages.jobs import columns, suggesting
from windlass.web.dashboard.pages.jobs.counting import counted
from windlass.web.dashboard.pages.jobs.line import Line
from windlass.web.dashboard.pages.jobs.listing import listed
from windlass.web.dashboard.room import Page, Rail, Room
from windlass.web.routes.exporting import MOST

if TYPE_CHECKING:
    from windlass.core.job import Job
    from windlass.web.dashboard.pages.jobs.listing import Listing
    from windlass.web.dashboard.visit import Visit

VIEWS = (
    ("Failed in the last day", "status:failed finished>now-1d"),
    ("Running now", "status:processing"),
    ("Waiting for over a minute", "status:queued wait>1m"),
    ("Waiting for a retry", "status:retrying"),
    ("Ran for over a minute", "ran>1m"),
    ("Killed their worker", "crashes>0"),
    ("Orders for many", "type:windlass.bulk"),
)
"""searches to begin with"""
RETRIED = frozenset({Status.FAILED, Status.CANCELLED, Status.SUCCEEDED, Status.SCHEDULED, Status.RETRYING})
_TRANSIENT = ("rows", "more", "shows", "at")
"""what only the page's own script asks with"""


@dataclass(frozen=True, slots=True)
class Peek:
    """A job beside the list."""

    id: str
    job: Job | None
    """None where it is not there any more"""
    why: str


async def show(visit: Visit) -> dict[str, Any]:
    """The list, and all that stands around it."""
    line, now = Line(visit.asked("q")), datetime.now(UTC)
    listing = await listed(visit, line)

    def here(**changes: object) -> str:
        return visit.here(**{**dict.fromkeys(_TRANSIENT), **changes})

    return {
        "line": line,
        "query": line.text,
        "listing": listing,
        "here": here,
        "counted_now": await counted(visit, line),
        "columns": columns.chosen(visit),
        "all_columns": columns.known(visit),
        "peek": await _peek(visit, listing),
        "views": VIEWS,
        "waited": partial(_lasted, "wait", now),
        "ran": partial(_lasted, "ran", now),
        "detail": _detail,
        "can_retry": RETRIED,
        "operates": visit.may(Scope.OPERATE),
        "finished": FINISHED,
        "exported": partial(visit.api, "queue/export", where=line.text or None, limit=MOST),
        "statuses": tuple(Status),
    }


def _lasted(word: str, now: datetime, job: Job) -> timedelta | None:
    return BY_SPAN[word](job, now)


def _detail(job: Job) -> str:
    """What is most worth knowing of it, in one line."""
    if job.error is not None and job.status in (Status.FAILED, Status.RETRYING, Status.PROCESSING, Status.QUEUED):
        first = job.error.message.strip().partition("\n")[0]
        return f"{job.error.type}: {first[:300]}" if first else job.error.type
    if job.progress is not None and job.progress.note:
        return job.progress.note
    return ""


async def _peek(visit: Visit, listing: Listing) -> Peek | None:
    job_id = visit.asked("peek")
    if not job_id:
        return None
    job = next((job for job in listing.jobs if job.id == job_id), None)
    try:
        job = job or await visit.jobs.get(job_id)
        return Peek(job_id, job, (await visit.jobs.explain(job_id)).text)
    except (JobNotFound, SettingsError):
        return Peek(job_id[:80], None, "")


ROOM = Room(
    name="jobs",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/jobs",
            title="Jobs",
            template="jobs.html",
            show=show,
            rail=Rail(word="Jobs", icon="M3 5.5h14M3 10h14M3 14.5h9", order=20, key="j"),
        ),
        Page(path="/search", title="Searching", template="search.html", show=suggesting.show, under="/jobs"),
    ),
)
