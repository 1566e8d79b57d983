"""Reading: one look at a store, in a handful of questions, however many rows there are and however large the screen."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from windlass.cli.top.pace import Pace
from windlass.cli.top.picture import Picture, picture
from windlass.core.status import Status

if TYPE_CHECKING:
    from windlass.app import Windlass
    from windlass.client.dead_letters import DeadGroups
    from windlass.client.searching import DeadSearch, Search

MOST_ROWS = 100
"""jobs that are read for a list"""
MOST_FAILURES = 2_000
"""failed jobs that are looked at for their kinds"""
_SHARE = 20.0
"""a look through the failures that took a second is not repeated for so many"""


class View(IntEnum):
    """What can be looked at, by its key."""

    QUEUES = 1
    WORKERS = 2
    RUNNING = 3
    FAILURES = 4
    JOBS = 5


def dead(search: Search | None) -> DeadSearch:
    """The same search among failed jobs alone: a line may say so itself."""
    return {"where": search["where"]} if search and "where" in search else {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked at, and which jobs of it."""

    view: View = View.QUEUES
    search: Search | None = None


class Reader:
    """Looks at a store, again and again; what it saw before tells how fast things go."""

    def __init__(self, app: Windlass) -> None:
        self._app, self._pace = app, Pace()
        self._failures: tuple[Search | None, DeadGroups] | None = None
        self._failures_due = 0.0

    async def look(self, wanted: Wanted) -> Picture:
        """Everything that is shown, as of now."""
        seen = await self._app.stats.read()
        queues = await self._app.queues.list()
        workers = await self._app.workers.list()
        running = await self._app.jobs.find(status=Status.PROCESSING, limit=MOST_ROWS)
        now = picture(seen, self._pace.note(seen), queues, workers, running.jobs)
        match wanted.view:
            case View.FAILURES:
                return replace(now, failures=await self._groups(wanted.search))
            case View.JOBS:
                search = wanted.search or {}
                page = await self._app.jobs.find(limit=MOST_ROWS, **search)
                # Of all jobs it is known; of some, counting them may mean looking at many.
                matched = await self._app.jobs.count(max_age=5, **search) if search else seen.counts.of()
                return replace(now, jobs=page, matched=matched)
            case _:
                return now

    async def _groups(self, search: Search | None) -> DeadGroups:
        began = time.monotonic()
        if self._failures is not None and self._failures[0] == search and began < self._failures_due:
            return self._failures[1]
        found = await self._app.dead_letters.groups(most=MOST_FAILURES, **dead(search))
        ended = time.monotonic()
        self._failures, self._failures_due = (search, found), ended + max(1.0, _SHARE * (ended - began))
        return found

    def forget(self) -> None:
        """Look through the failures anew: something was done to them."""
        self._failures = None
