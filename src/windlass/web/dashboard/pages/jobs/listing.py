"""The list: a page of jobs; or, while it is watched, the same jobs as they stand now and how many are new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.errors import SettingsError
from windlass.stores.contract import MOST_LOOKED_AT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.job import Job
    from windlass.stores.contract import Page
    from windlass.web.dashboard.pages.jobs.line import Line
    from windlass.web.dashboard.visit import Visit

PAGE = 50
MOST_ROWS = 100
WALKED = 5.0
"""seconds that an answer is good for, where jobs had to be looked at one by one for it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is listed."""

    jobs: Sequence[Job] = ()
    before: str | None = None
    """the cursor of the page before, in the order of the list"""
    after: str | None = None
    complete: bool = True
    new: int = 0
    """how many more there are at the beginning of the list"""
    most_new: bool = False
    """whether that is as far as was looked"""
    gone: bool = False
    """whether those that were listed are all deleted"""
    looked_at: int = MOST_LOOKED_AT


async def listed(visit: Visit, line: Line) -> Listing:
    """The page that is asked for, or the rows that the viewer has."""
    if not line.good:
        return Listing()
    rows = visit.asked("rows")
    if rows:
        return await _again(visit, line, rows.split(".")[:MOST_ROWS])
    page = await _page(visit, line, PAGE)
    return Listing(jobs=page.jobs, before=page.previous, after=page.next, complete=page.complete)


async def _again(visit: Visit, line: Line, ids: Sequence[str]) -> Listing:
    watched = not visit.asked("after") and not line.oldest_first
    page = await _page(visit, line, 2 * PAGE if watched else PAGE)
    # The answer to a search without an index may be some seconds old: rows are read anew.
    found = {} if line.walks else {job.id: job for job in page.jobs}
    others = [one for one in ids if one not in found]
    found |= {job.id: job for job in await visit.jobs.several(others) if job is not None} if others else {}
    jobs = [found[one] for one in ids if one in found]
    new = _new(page, ids, more=visit.asked("more") == "1") if watched else 0
    return Listing(jobs=jobs, new=new, most_new=new == len(page.jobs) and page.next is not None, gone=not jobs)


def _new(page: Page, ids: Sequence[str], *, more: bool) -> int:
    """How many of this page are not among those; where more came after those, only what comes before the last."""
    shown, last = set(ids), min(ids)
    return sum(job.id not in shown and (not more or job.id > last) for job in page.jobs)


async def _page(visit: Visit, line: Line, limit: int) -> Page:
    age = visit.age * (WALKED if line.walks else 1.0)
    after = visit.asked("after") or None
    if after is not None and len(after) > 200:
        raise SettingsError("the cursor is too long: expected the next or the previous of a page, unchanged")
    return await visit.jobs.find(limit=limit, after=after, max_age=age, **line.words)  # type: ignore[arg-type]  # where
