"""A view: how many jobs stand where, and the rows of a list or of named jobs, with what changed in them.

A row is a job without its payload, result and metadata. Every part of a view has the revision that it changed in, so
that a client is told what has changed since the revision it has, and nothing is kept for a client that is slow.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from windlass.client.searching import filter_of
from windlass.core.status import Status
from windlass.web.live.watching import Watch
from windlass.web.live.words import Word
from windlass.web.shapes import job_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.jobs import JobsRoom
    from windlass.client.searching import Search
    from windlass.core.job import Job
    from windlass.stores.contract import Count
    from windlass.web.answers import Answers
    from windlass.web.live.pace import Pace

LEFT_OUT = {"payload": True, "result": True, "metadata": True, "error": {"traceback"}}
_SHARE = 10.0
"""a look that took a second is not repeated for so many"""
_COUNTS_SHARE = 50.0
_SELDOM = 60.0
"""seconds: but at least so often"""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is shown: the newest jobs that match, or named ones. Equal views of one user share their looks."""

    search: tuple[tuple[str, Any], ...] = ()
    ids: tuple[str, ...] = ()
    limit: int = 50

    @staticmethod
    def of(search: Search, ids: Sequence[str], limit: int) -> View:
        """With values that can be compared."""
        words: list[tuple[str, Any]] = [(name, _still(value)) for name, value in sorted(search.items())]
        return View(search=tuple(words), ids=tuple(dict.fromkeys(ids)), limit=limit)


def _still(value: object) -> object:
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value


class _Row(NamedTuple):
    job: Job
    text: str
    revision: int


class ViewWatch(Watch):
    """A view that somebody watches."""

    def __init__(self, app: Answers, room: JobsRoom, view: View, pace: Pace, name: str) -> None:
        super().__init__()
        self._app, self._room, self._view, self._pace = app, room, view, pace
        self.name = name
        """with a revision behind it, what a client names when it comes again"""
        self.revision = 0
        self.looked_at = 0.0
        """when the look began that found what is told last, by the monotonic clock"""
        self._due, self._free = 0.0, 0.0
        """when it is to be looked at again in any case, and when it may be because something has changed"""
        self._stirred = False
        self._rows: dict[str, _Row] = {}
        self._ids: tuple[tuple[str, ...], int] = (), 0
        self._counts: tuple[str | None, int] = None, 0
        self._counts_due = 0.0
        self._since = lru_cache(maxsize=8)(self._told_since)

    @property
    def due(self) -> float:
        """When it is to be looked at again, by the monotonic clock."""
        return self._free if self._stirred else self._due

    def stir(self) -> None:
        """The store has told of a change, which may be one of this view."""
        self._stirred = True

    async def look(self) -> None:
        """Read rows and counts, by the caller's own question; tell if they differ."""
        began, stirred, self._stirred = time.monotonic(), self._stirred, False
        jobs, counts, next_one = await self._jobs(), await self._counted(), self.revision + 1
        rows = {job.id: self._row(job, next_one) for job in jobs}
        ids = tuple(rows)
        moved = ids != self._ids[0]
        recounted = counts != self._counts[0]
        changed = moved or recounted or any(row.revision == next_one for row in rows.values())
        self._rows = rows
        if moved:
            self._ids = ids, next_one
        if recounted:
            self._counts = counts, next_one
        now = time.monotonic()
        rest = _SHARE * (now - began)
        self._due = now + min(max(self._pace.view_gap, rest), _SELDOM)
        # After a while in which nothing happened, the first change is not to wait: only changes keep others waiting.
        self._free = self._due if stirred else now + min(rest, _SELDOM)
        if changed or not self.revision:
            self.revision, self.looked_at = next_one, began
            self._since.cache_clear()
            self.tell()

    async def _jobs(self) -> Sequence[Job]:
        if self._view.ids:
            return [job for job in await self._room.several(self._view.ids) if job is not None]
        search = cast("Search", dict(self._view.search))
        return (await self._room.find(limit=self._view.limit, **search)).jobs

    def _row(self, job: Job, revision: int) -> _Row:
        still, known = job._replace(lease_expires_at=None), self._rows.get(job.id)
        if known is not None and known.job == still:
            return known
        shape = job_shape(job, inside=self._room.user is None)
        text = shape.model_dump_json(by_alias=True, exclude=cast("Any", LEFT_OUT))
        return _Row(still, text, known.revision if known is not None and known.text == text else revision)

    async def _counted(self) -> str | None:
        """Counts as JSON; of all jobs those that are counted for everybody, else by status. None beside named jobs."""
        if self._view.ids:
            return None
        if not self._view.search and self._room.user is None:
            by = (await self._app.stats.counts(max_age=self._pace.gap)).by
            return json.dumps([_count(one.queue, one.status, one.count) for one in by])
        if time.monotonic() < self._counts_due:
            return self._counts[0]
        began, search = time.monotonic(), dict(self._view.search)
        found = [await self._count_of(search, status) for status in _statuses(search)]
        now = time.monotonic()
        self._counts_due = now + min(max(self._pace.view_gap, _COUNTS_SHARE * (now - began)), _SELDOM)
        return json.dumps(found)

    async def _count_of(self, search: dict[str, Any], status: Status) -> dict[str, object]:
        words = search | ({} if "fingerprint" in search else {"status": status})
        count = await self._room.count(**cast("Search", words))
        return _count(search.get("queue"), status, count)

    def since(self, revision: int) -> Word:
        """What has changed since a revision; everything since none."""
        return self._since(revision)

    def _told_since(self, revision: int) -> Word:
        said = [f'"full": {"false" if revision else "true"}']
        counts, counted_in = self._counts
        if counts is not None and counted_in > revision:
            said.append(f'"counts": {counts}')
        ids, moved_in = self._ids
        if moved_in > revision or not revision:
            said.append(f'"ids": {json.dumps(ids)}')
        rows = ", ".join(row.text for row in self._rows.values() if row.revision > revision)
        said.append(f'"rows": [{rows}]')
        return Word("view", f"{{{', '.join(said)}}}", f"{self.name}.{self.revision}")

    def feed(self, after: str | None) -> ViewFeed:
        """From the revision that the client has; everything where it has none, or one of another process."""
        name, _, revision = (after or "").rpartition(".")
        known = name == self.name and revision.isascii() and revision.isdigit() and len(revision) < 10
        number = int(revision) if known else 0
        return ViewFeed(self, number if number <= self.revision else 0)


def _statuses(search: dict[str, Any]) -> Sequence[Status]:
    """Those asked for; a fingerprint is one of failed jobs."""
    asked = filter_of(cast("Search", search)).statuses
    return [status for status in Status if status in asked]


def _count(queue: str | None, status: Status, count: Count) -> dict[str, object]:
    return {"queue": queue, "status": status, "count": count.n, "exact": count.exact}


class ViewFeed:
    """One client's place in a view."""

    over = False

    def __init__(self, watch: ViewWatch, revision: int) -> None:
        self._watch, self._revision = watch, revision

    def words(self) -> Sequence[Word]:
        """What has changed since the revision that was told last."""
        if self._watch.revision <= self._revision:
            return []
        word = self._watch.since(self._revision)
        self._revision = self._watch.revision
        return [word]
