"""Pages of jobs that pass a test no store can make: jobs are looked at one by one, so many in a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from windlass.stores.contract import MOST_LOOKED_AT, Count
from windlass.stores.contract.paging import page_of, walk_of

if TYPE_CHECKING:
    from windlass.core.job import Job
    from windlass.stores.contract import Filter, Page, Store

Fits: TypeAlias = Callable[["Job"], bool]
_PAGE = 500


async def find_fitting(
    store: Store, filter_: Filter, fits: Fits, limit: int, after: str | None, *, oldest_first: bool
) -> Page:
    """A page of the jobs that match the filter and pass the test, among the next `MOST_LOOKED_AT` that match."""
    walk = walk_of(after, oldest_first=oldest_first)
    found: list[Job] = []
    looked_at, cursor = 0, after
    while True:
        page = await store.views.find(filter_, _PAGE, cursor, oldest_first=oldest_first)
        jobs, cursor = (page.jobs[::-1], page.previous) if walk.back else (page.jobs, page.next)
        found += [job for job in jobs if fits(job)]
        looked_at += len(jobs)
        made = page_of(found, limit, walk)
        if len(found) > limit or cursor is None:
            return made
        if not page.complete or looked_at >= MOST_LOOKED_AT:
            # The store's own cursor goes on from where it stopped.
            if walk.back:
                return replace(made, complete=False, previous=cursor)
            return replace(made, complete=False, next=cursor)


async def count_fitting(store: Store, filter_: Filter, fits: Fits) -> Count:
    """How many match and pass the test among the newest `MOST_LOOKED_AT` that match."""
    page = await find_fitting(store, filter_, fits, MOST_LOOKED_AT, None, oldest_first=False)
    return Count(len(page.jobs), exact=page.next is None)
