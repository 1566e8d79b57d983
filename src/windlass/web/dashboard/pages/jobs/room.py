"""Jobs: the list of them, a look at one beside it, and what orders for many are under way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from windlass.client.testing import BY_SPAN
from windlass.core.errors import JobNotFound, SettingsError
from windlass.core.status import FINISHED, Status
from windlass.stores.contract import Scope
from windlass.web.dashboard.pages.jobs import columns, suggesting
from windlass.web.dashboard.pages.jobs.counting import counted
from windlass.web.dashboard.pages.jobs.line import Line
from windlass.web.dashboard.pages.jobs.listing import listed
from windlass.web.dashboard.room import Page, Rail, Room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.job import Job
    from windlass.web.dashboard.pages.jobs.listing import Listing
    from windlass.web.dashboard.visit import Visit

VIEWS = (
    ("Failed in the last day", "status:failed finished>now-1d"),
    ("Running now", "status:processing"),
    ("Waiting for over a minute", "status:queued wait>1m"),
    ("Being tried again", "status:retrying"),
    ("Ran for over a minute", "ran>1m"),
    ("Killed their worker", "crashes>0"),
)
"""searches to begin with"""
RETRIED = frozenset({Status.FAILED, Status.CANCELLED, Status.SUCCEEDED, Status.SCHEDULED, Status.RETRYING})
_TRANSIENT = ("rows", "more", "shows", "at")
"""what only the page's own script asks with"""
_SEEN = timedelta(minutes=2)
"""an order for many is shown for so long after its end"""


@dataclass(frozen=True, slots=True)
class Peek:
    """A job beside the list."""

    id: str
    job: Job | None
    """None where it is not there any more"""
    why: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An order for many, as its job tells of it."""

    job: Job
    deed: str
    of: int
    met: int
    told: str
    """what became of them"""


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
        "operations": await _operations(visit, now),
        "views": VIEWS,
        "waited": partial(_lasted, "wait", now),
        "ran": partial(_lasted, "ran", now),
        "detail": _detail,
        "can_retry": RETRIED,
        "operates": visit.may(Scope.OPERATE),
        "finished": FINISHED,
        "exported": partial(visit.api, "queue/export", where=line.text or None),
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


async def _operations(visit: Visit, now: datetime) -> Sequence[Operation]:
    """Those under way, and those that have just ended."""
    page = await visit.jobs.find(type=visit.operations.type, limit=6, max_age=visit.age)
    recent = [job for job in page.jobs if job.finished_at is None or now - job.finished_at < _SEEN]
    return [_operation(job) for job in recent]


def _operation(job: Job) -> Operation:
    errand: dict[str, Any] = job.payload.get("errand", {})
    result = cast("dict[str, Any]", job.result) if isinstance(job.result, dict) else {}
    progress = job.progress
    of = int(errand.get("of", 0)) if progress is None or progress.of is None else int(progress.of)
    return Operation(
        job=job,
        deed=str(errand.get("deed", "")),
        of=of,
        met=0 if progress is None else int(progress.done),
        told=", ".join(f"{result[name]:,} {words}" for name, words in _OUTCOMES.items() if result.get(name)),
    )


_OUTCOMES = {
    "done": "done",
    "requested": "asked to stop",
    "refused": "left as they were",
    "duplicate": "not queued, as another holds their key",
    "missing": "gone",
}
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
