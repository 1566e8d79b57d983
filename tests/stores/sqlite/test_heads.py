"""Claims behind many jobs without a handler: they begin where such jobs end, and still find all there is."""

from __future__ import annotations

from tests.stores.sqlite.conftest import engine_of
from tests.support.drafts import draft, want
from windlass.core.job import Job
from windlass.stores.sqlite.heads import NOWHERE, Heads
from windlass.stores.sqlite.records import as_ms
from windlass.stores.sqlite.store import SqliteStore

LONG = 1.0
"""seconds, far more than any look takes unless there is much to step over"""


def slow_heads(store: SqliteStore) -> Heads:
    """As after a claim that had to step over many."""
    heads: Heads = vars(store.jobs)["_heads"]
    heads.learn(LONG)
    return heads


async def retire(store: SqliteStore, n: int, queue: str = "default") -> None:
    await store.jobs.insert([draft("retired", queue=queue) for _ in range(n)])


async def test_without_a_slow_claim_nothing_is_looked_for_before(file: SqliteStore) -> None:
    assert await Heads(engine_of(file)).find(want()) is NOWHERE


async def test_heads_are_where_the_first_wanted_jobs_stand(file: SqliteStore) -> None:
    await retire(file, 3)
    await retire(file, 3, "old")
    first, later = draft(), draft(priority=900)
    await file.jobs.insert([later, first])
    found = await slow_heads(file).find(want())
    [job] = await file.views.get([first.id])
    assert job is not None
    assert dict(found.places) == {
        "default": (job.priority, as_ms(job.run_at), ""),
        "old": None,
    }
    assert not found.old


async def test_a_claim_from_the_heads_takes_what_any_claim_would(file: SqliteStore) -> None:
    await retire(file, 5)
    drafts = [draft() for _ in range(4)]
    await file.jobs.insert(drafts)
    slow_heads(file)
    claimed = await file.jobs.claim(want(10))
    assert [job.id for job in claimed] == [made.id for made in drafts]
    assert not claimed.more


async def test_what_is_queued_before_old_heads_is_found_when_there_is_no_more_behind_them(file: SqliteStore) -> None:
    await retire(file, 60_000)  # enough that a look is slow
    await file.jobs.insert([draft() for _ in range(3)])
    slow_heads(file)
    assert len(await file.jobs.claim(want(2))) == 2
    urgent = draft(priority=0)
    await file.jobs.insert([urgent])
    taken: list[Job] = []
    more = True
    while more:
        claimed = await file.jobs.claim(want(2))
        taken += claimed
        more = claimed.more or len(claimed) == 2
    assert urgent.id in [job.id for job in taken]
    assert len(taken) == 2
