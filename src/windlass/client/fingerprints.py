"""Searching by fingerprint: no store knows it, so failed jobs are looked at one by one, so many in a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.fingerprint import fingerprint
from windlass.stores.contract import MOST_LOOKED_AT, Count, Page, cursor_after

if TYPE_CHECKING:
    from windlass.core.job import Job
    from windlass.stores.contract import Filter, Store

_PAGE = 500


async def find_failed(
    store: Store, filter_: Filter, wanted: str, limit: int, after: str | None, *, oldest_first: bool
) -> Page:
    """A page of the failed jobs with this fingerprint, among the next `MOST_LOOKED_AT` that match the filter.

    It has no previous page: to go back, keep the cursors of the pages seen.
    """
    found: list[Job] = []
    for _ in range(MOST_LOOKED_AT // _PAGE):
        page = await store.views.find(filter_, _PAGE, after, oldest_first=oldest_first)
        for job in page.jobs:
            if fingerprint(job.type, job.error) == wanted:
                found.append(job)
                if len(found) == limit:
                    more = page.next is not None or job is not page.jobs[-1]
                    return Page(tuple(found), cursor_after(job.id, oldest_first=oldest_first) if more else None)
        after = page.next
        if after is None:
            return Page(tuple(found))
        if not page.complete:
            break
    return Page(tuple(found), after, complete=False)


async def count_failed(store: Store, filter_: Filter, wanted: str) -> Count:
    """How many have this fingerprint among the newest `MOST_LOOKED_AT` failed jobs that match the filter."""
    page = await find_failed(store, filter_, wanted, MOST_LOOKED_AT, None, oldest_first=False)
    return Count(len(page.jobs), exact=page.next is None)
