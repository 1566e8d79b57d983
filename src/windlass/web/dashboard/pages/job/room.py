"""One job: everything that is known of it, asked of the answers as the viewer sees them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from windlass.client.grammar import understood
from windlass.core.blocked import Kind
from windlass.core.draft import check_id
from windlass.core.errors import JobNotFound, SettingsError
from windlass.core.job import PRIORITIES
from windlass.core.status import FINISHED, Status
from windlass.stores.contract import cursor_after
from windlass.web.dashboard.pages.job import commands, contents, linking, moves, stretches
from windlass.web.dashboard.pages.job.attempts import attempts, folded
from windlass.web.dashboard.pages.job.helping import helps, tone_of
from windlass.web.dashboard.pages.job.lineage import graph, lineage_of
from windlass.web.dashboard.pages.job.similar import MOST, similar
from windlass.web.dashboard.room import Page, Room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.explaining import Explanation
    from windlass.core.history import Entry
    from windlass.core.job import Job
    from windlass.web.dashboard.visit import Visit

_LATELY = timedelta(seconds=1)
_SIMILAR_AGE = 5.0
_EVERY, _EVERY_ENDED = 5, 15
_PRIORITY_NAMES = {n: name for name, n in PRIORITIES.items()}
MOVES_SHOWN = 30
"""of the history without unfolding the rest"""
ATTEMPTS_SHOWN = 5


async def show(visit: Visit) -> dict[str, Any]:
    """The job as it stands."""
    job_id = _id(visit.part("id"))
    job, history = await visit.jobs.look(job_id)
    told = await visit.jobs.explain(job_id)
    now = max(datetime.now(UTC), job.updated_at)
    inside = visit.sees_all
    return {
        "title": f"{job.type} {linking.short_id(job.id)}",
        "stream": f"queue/{job.id}/events",
        "every": _EVERY_ENDED if job.status.finished else _EVERY,
        "job": job,
        "inside": inside,
        "partial": "x-windlass-regions" in visit.request.headers,
        "now": now,
        "priority": _PRIORITY_NAMES.get(job.priority, str(job.priority)),
        "beside": await _beside(visit, job),
        "share": commands.absolute(visit, visit.url(f"/jobs/{job.id}")),
        "commands": commands.commands(job, visit),
        **_explained(visit, job, told),
        **_told(job, history, now, inside=inside),
        **_contents(job, inside=inside),
        **await _around(visit, job, history, now),
        **_deeds(visit, job),
    }


def _id(given: str) -> str:
    try:
        return check_id(given)
    except SettingsError:
        raise JobNotFound(given[:80]) from None  # what is no id names no job


def _explained(visit: Visit, job: Job, told: Explanation) -> dict[str, Any]:
    def where(id_: str) -> str:
        return visit.url(f"/jobs/{id_}")

    def linked(text: str) -> Any:
        return linking.linked(text, where, job.id)

    tone, icon = tone_of(told)
    return {
        "why": told,
        "sentence": linked(told.text),
        "why_tone": tone,
        "why_icon": icon,
        "helps": helps(told, job, visit),
        "linked": linked,
        "short_id": linking.short_id,
    }


def _told(job: Job, history: Sequence[Entry], now: datetime, *, inside: bool) -> dict[str, Any]:
    found, runs = stretches.stretches(history, now), attempts(job, history)
    return {
        "moves": moves.moves(job, history, inside=inside),
        "moves_shown": MOVES_SHOWN,
        "dropped": history[0].number - 1 if history else 0,
        "stretches": found,
        "strip": stretches.strip(found),
        "legend": stretches.legend(found),
        "waited": stretches.waited(found),
        "ran": stretches.ran(found),
        "attempts": runs,
        "attempts_shown": ATTEMPTS_SHOWN,
        "folded": folded,
        "progress": _progress(job, now),
    }


def _contents(job: Job, *, inside: bool) -> dict[str, Any]:
    return {
        "payload": contents.payload_of(job),
        "result": contents.result_of(job),
        "metadata": contents.metadata_of(job),
        "kept": contents.kept_of(job) if inside else (),
    }


async def _around(visit: Visit, job: Job, history: Sequence[Entry], now: datetime) -> dict[str, Any]:
    """Other jobs: its lineage, and those of its type."""
    ended = next((entry.at for entry in history if entry.status.finished), None)
    lineage = await lineage_of(visit.jobs, job, ended)
    tones = {
        "scheduled": "calm", "queued": "wait", "blocked": "hold", "processing": "run", "retrying": "warn",
        "succeeded": "good", "failed": "bad", "cancelled": "calm",
    }  # fmt: skip
    last = await visit.jobs.find(type=job.type, status=FINISHED, limit=MOST, max_age=_SIMILAR_AGE)
    elapsed = None
    if job.status is Status.PROCESSING and job.started_at is not None:
        elapsed = max(round((now - job.started_at).total_seconds() * 1000), 0)
    return {
        "lineage": lineage,
        "graph": graph(job, lineage, lambda id_: visit.url(f"/jobs/{id_}"), tones) if lineage.drawn else None,
        "similar": similar(job, last.jobs, elapsed),
    }


def _deeds(visit: Visit, job: Job) -> dict[str, Any]:
    """What may be asked for; every route checks it again."""
    operates, ended = visit.may("operate"), job.status.finished
    own = job.type.startswith("windlass.")
    parked = job.status is Status.BLOCKED and Kind.PAYLOAD.blocks(job.blocked_by)
    waits = job.blocked_by if job.status is Status.BLOCKED and Kind.SIGNAL.blocks(job.blocked_by) else None
    edits = visit.may("admin") and ended and not own and len(job.payload_json) <= contents.LARGEST_EDITED
    return {
        "retries": operates and (ended or parked or job.status in (Status.SCHEDULED, Status.RETRYING)),
        "cancels": operates and not ended and job.cancel_requested_at is None,
        "deletes": operates and job.status is not Status.PROCESSING,
        "replays": operates and ended and not own,
        "duplicates": commands.duplicate(job, visit) if visit.may("enqueue") else None,
        "signals": waits.partition(":")[2] if operates and waits is not None else None,
        "edits": json.dumps(job.payload, indent=2, ensure_ascii=False) if edits else None,
        "hides": commands.hides(job),
    }


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far it has come, how fast, and how long that leaves."""

    done: float
    of: float | None
    note: str | None
    rate: float | None
    """in a second"""
    left: timedelta | None


def _progress(job: Job, now: datetime) -> _Progress | None:
    found = job.progress
    if found is None:
        return None
    rate, left = None, None
    if job.status is Status.PROCESSING and job.started_at is not None:
        seconds = (now - job.started_at).total_seconds()
        rate = found.done / seconds if seconds > 0 and found.done > 0 else None
        if rate and found.of is not None and found.of >= found.done:
            seconds_left = (found.of - found.done) / rate
            left = timedelta(seconds=seconds_left) if seconds_left < timedelta(days=3650).total_seconds() else None
    return _Progress(found.done, found.of, found.note, rate, left)


@dataclass(frozen=True, slots=True)
class _Beside:
    """The jobs before and after it in the list that it was opened from."""

    previous: str | None
    next: str | None
    back: str


async def _beside(visit: Visit, job: Job) -> _Beside | None:
    """Of the line that the list was searched with, which its links hand on; None where there is none."""
    line = _line(visit)
    if line is None:
        return None
    which: dict[str, Any] = {"where": line} if line else {}
    try:
        oldest = bool(understood(line).oldest_first)
        after = await visit.jobs.find(limit=1, after=cursor_after(job.id, oldest_first=oldest), **which)
        before = (await visit.jobs.find(limit=2, after=after.previous, **which)).jobs if after.previous else ()
    except SettingsError:
        return None  # a line that nobody understands is told by the list

    def place(one: Job | None) -> str | None:
        return None if one is None else visit.url(f"/jobs/{one.id}", q=line)

    previous = next((one for one in reversed(before) if one.id != job.id), None)
    return _Beside(place(previous), place(after.jobs[0] if after.jobs else None), visit.url("/jobs", q=line or None))


def _line(visit: Visit) -> str | None:
    """The search of the list that it was opened from: as links hand it on, or as the browser tells where it was."""
    if "q" in visit.request.query_params:
        return visit.asked("q")
    came = urlsplit(visit.request.headers.get("referer", ""))
    return dict(parse_qsl(came.query)).get("q", "") if came.path == visit.url("/jobs") else None


ROOM = Room(
    name="job",
    folder=Path(__file__).parent,
    pages=(Page(path="/jobs/{id}", title="Job", template="job.html", show=show, under="/jobs"),),
)
