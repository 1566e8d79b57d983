"""Schedules: the list, one of them with its runs behind and before it, and the form that makes and changes them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.core.errors import ScheduleNotFound
from windlass.core.sealing import masked
from windlass.web.dashboard.pages.schedules import strip, telling
from windlass.web.dashboard.pages.schedules.form import form
from windlass.web.dashboard.room import Needs, Page, Rail, Room
from windlass.web.routes.schedules import options_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.core.job import Job
    from windlass.stores.contract import Schedule, Tick
    from windlass.web.dashboard.pages.schedules.strip import Mark
    from windlass.web.dashboard.visit import Visit

ROWS = 50
_MARKS = 18
"""ticks of a row in the list"""
_LISTED = 15
"""ticks of one schedule that are told one by one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One schedule as the list shows it."""

    schedule: Schedule
    words: str
    next: telling.Run
    marks: Sequence[Mark]
    handled: bool
    """whether any worker handles its type"""


async def show_all(visit: Visit) -> dict[str, Any]:
    """Every schedule, by name, a page of them at a time."""
    found, after = await visit.app.schedules.list(), visit.asked("after")
    wanted = visit.asked("find").strip()
    matching = [one for one in found if wanted.casefold() in f"{one.name} {one.type}".casefold()]
    later = [one for one in matching if one.name > after]
    rows, known = later[:ROWS], await _known(visit)
    ticks = await asyncio.gather(*(visit.app.schedules.ticks(one.name) for one in rows))
    jobs = await _jobs(visit, [one for some in ticks for one in some[:_MARKS]])
    return {
        "rows": [
            Row(
                schedule=one,
                words=telling.in_words(one.cron),
                next=telling.runs(one.cron, one.next_tick, 1)[0],
                marks=strip.marks_of(some[:_MARKS], jobs),
                handled=one.type in known,
            )
            for one, some in zip(rows, ticks, strict=True)
        ],
        "total": len(found),
        "matching": len(matching),
        "wanted": wanted,
        "before": visit.here(after=None) if after else None,
        "after": visit.here(after=rows[-1].name) if len(later) > ROWS else None,
        "strip": strip,
        "telling": telling,
    }


async def show_one(visit: Visit) -> dict[str, Any]:
    """One schedule, with its next runs and what became of the last."""
    one = await named(visit, visit.asked("name"))
    ticks = await visit.app.schedules.ticks(one.name)
    return {
        "title": one.name,
        "one": one,
        "words": telling.in_words(one.cron),
        "runs": telling.runs(one.cron, one.next_tick),
        "affected": telling.next_affected(one.cron, one.next_tick),
        "marks": strip.marks_of(ticks, await _jobs(visit, ticks)),
        "listed": _LISTED,
        "payload": masked(one.payload_json),
        "options": options_of(one.options_json),
        "handled": one.type in await _known(visit),
        "strip": strip,
        "telling": telling,
    }


async def named(visit: Visit, name: str) -> Schedule:
    """The schedule of this name."""
    found = next((one for one in await visit.app.schedules.list() if one.name == name), None)
    if found is None:
        raise ScheduleNotFound(name[:200])
    return found


async def _known(visit: Visit) -> set[str]:
    return {one.type for one in await visit.app.types.known()}


async def _jobs(visit: Visit, ticks: Sequence[Tick]) -> Mapping[str, Job]:
    """What the ticks have made, as far as it is kept."""
    ids = [one.job_id for one in ticks if one.job_id is not None]
    return {job.id: job for job in await visit.jobs.several(ids) if job is not None} if ids else {}


ROOM = Room(
    name="schedules",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/schedules",
            title="Schedules",
            template="schedules.html",
            show=show_all,
            needs=Needs.OVERSEE,
            rail=Rail(
                word="Schedules", icon="M4 5h12v12H4zM4 9h12M7.5 3v4M12.5 3v4M8 13l1.6 1.6L13 11.5", order=40, key="s"
            ),
        ),
        Page(
            path="/schedules/one",
            title="Schedule",
            template="schedule.html",
            show=show_one,
            needs=Needs.OVERSEE,
            under="/schedules",
        ),
        Page(
            path="/schedules/edit",
            title="Schedule",
            template="edit.html",
            show=form,
            needs=Needs.OVERSEE,
            under="/schedules",
        ),
    ),
)
