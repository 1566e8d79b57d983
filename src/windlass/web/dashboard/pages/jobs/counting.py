"""Counting: how many jobs of a search stand in each status, as far as that can be told for what it costs.

What is kept of all jobs by queue is told at once. What an index can count is counted when the page's live regions are
asked for, not before the page is shown; what has to be looked at one by one is counted as a whole, and seldom.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windlass.core.status import Status
from windlass.stores.contract import Count
from windlass.web.dashboard.pages.jobs.line import Line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.web.dashboard.visit import Visit

INDEXED = 10.0
"""seconds that such counts are good for"""
WALKED = 60.0
MOST = 10_000
"""jobs of a search are counted up to here"""
MANY, EACH = 1_000, 500
"""where there are more than the one, those of each status are counted up to the other: each may look at all of them"""
_UNKNOWN = Count(0, exact=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many there are; what is not known is None, or not there."""

    total: Count | None = None
    by: Mapping[Status, Count] = field(default_factory=dict[Status, Count])
    later: bool = False
    """whether who asks for the live regions will be told more"""


async def counted(visit: Visit, line: Line) -> Counted:
    """What can be told now."""
    if not line.good or line.query is None:
        return Counted()
    open_ = Line(line.put("status", None))
    query = open_.query
    named = set[str]() if query is None else set(query.search) - {"status"}
    tested = query is None or bool(query.tests)
    if visit.sees_all and not tested and named <= {"queue"}:
        return await _kept(visit, line)
    if not (visit.again or visit.asked("count")):
        return Counted(later=True)
    if not tested and len(named) <= 1 and not open_.walks:
        return await _by_status(visit, line, open_)
    return Counted(total=await _count(visit, line, WALKED if line.walks else INDEXED))


async def _by_status(visit: Visit, line: Line, open_: Line) -> Counted:
    total = await _count(visit, open_, INDEXED)
    most = MOST if total.exact and total.n <= MANY else EACH
    by: dict[Status, Count] = {}
    for status in Status:
        count = await _count(visit, Line(open_.put("status", status.value)), INDEXED, most)
        if count.n or count.exact:  # of one that was not met as far as was looked nothing is known
            by[status] = count
    return Counted(total=_sum(by, line) if line.statuses else total, by=by)


async def _kept(visit: Visit, line: Line) -> Counted:
    queue = None if line.query is None else line.query.search.get("queue")
    counts = await visit.app.stats.counts(max_age=visit.age)
    by = {status: counts.of(queue=queue, status=status) for status in Status}
    return Counted(total=_sum(by, line), by=by)


def _sum(by: Mapping[Status, Count], line: Line) -> Count:
    meant = [by.get(status, _UNKNOWN) for status in line.statuses or Status]
    return Count(sum(count.n for count in meant), all(count.exact for count in meant))


async def _count(visit: Visit, line: Line, age: float, most: int | None = None) -> Count:
    words: dict[str, Any] = {**line.words}
    return await visit.jobs.count(most=MOST if most is None else most, max_age=age * visit.age, **words)
