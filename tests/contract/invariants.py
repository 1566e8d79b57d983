"""What holds at every quiet moment on every store; `windlass.chaos.invariants` has the law of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.contract.steps import everything
from windlass.chaos.invariants import of_store, orphans
from windlass.core.history import Entry
from windlass.core.job import Job
from windlass.stores.contract import Store

__all__ = ["check", "orphans"]


async def check(store: Store) -> tuple[list[Job], list[list[Entry]]]:
    """Recount everything; returns what was read."""
    jobs = await everything(store)
    histories = await asyncio.gather(*[store.views.history(job.id) for job in jobs])
    shown = {(one.queue, one.status): one.count.n for one in (await store.views.stats(timedelta(0))).counts}
    by_id = {job.id: history for job, history in zip(jobs, histories, strict=True)}
    assert not (wrong := list(of_store(jobs, by_id, shown))), "\n".join(wrong)
    return jobs, histories
