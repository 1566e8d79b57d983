"""Searching: every word of a filter against a recount, pages in both orders and both ways, bounds that are told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.steps import AGAIN_LATER, HOUR, NEVER_AGAIN, everything, finish, put, settle, start
from tests.support.drafts import draft, want
from windlass.core.errors import SettingsError
from windlass.core.job import Job
from windlass.core.status import FINISHED, WAITING, Status
from windlass.stores.contract import MOST_LOOKED_AT, Count, Filter, Page, Store

TAGGED = frozenset({"red", "round"})


def matches(filter_: Filter, job: Job) -> bool:
    """The law of searching, in Python: what every store must find."""
    same = ("type", "queue", "user_id", "entity_name", "entity_id", "unique_key", "worker_id", "replay_of")
    return (
        job.status in filter_.statuses
        and all(getattr(filter_, name) in (None, getattr(job, name)) for name in same)
        and job.type.startswith(filter_.type_prefix or "")
        and filter_.tags <= set(job.tags)
        and (filter_.attempts_at_least or 0) <= job.attempts
        and (filter_.attempts_at_most is None or job.attempts <= filter_.attempts_at_most)
        and (filter_.created_since is None or filter_.created_since <= job.created_at)
        and (filter_.created_before is None or job.created_at < filter_.created_before)
        and (
            filter_.finished_since is None
            or (job.finished_at is not None and filter_.finished_since <= job.finished_at)
        )
        and (
            filter_.finished_before is None
            or (job.finished_at is not None and job.finished_at < filter_.finished_before)
        )
    )


async def test_what_figures_are_made_of_is_read_of_one_user_newest_first(store: Store) -> None:
    jobs = [job for job in await scene(store) if job.user_id == "u1"]
    assert len({job.status for job in jobs}) >= 4
    wanted = [(job.id, job.queue, job.type, job.status, job.finished_at, job.duration_ms, job.wait_ms) for job in jobs]
    assert list(await store.views.ran("u1", 100)) == wanted
    assert list(await store.views.ran("u1", 2)) == wanted[:2]
    for at, job in enumerate(jobs):
        assert list(await store.views.ran("u1", 3, job.id)) == wanted[at + 1 : at + 4]
    assert list(await store.views.ran("nobody", 100)) == []


async def scene(store: Store) -> list[Job]:
    """Jobs of every status but blocked, with tags, keys, users and types that overlap; newest first."""
    first = draft("mail.send", tags=("red",), user_id="u1", unique="k1")
    await put(
        store,
        first,
        draft("mail.send", tags=("red", "round"), queue="other", delay=HOUR),
        draft("mail%", tags=("round", "red", "big"), user_id="u1", delay=HOUR),
        draft("mai", user_id="u1", unique="k2"),
        draft("mail.send", replay_of=first.id),
    )
    for n, outcome in enumerate((None, NEVER_AGAIN, AGAIN_LATER, None, NEVER_AGAIN)):
        one = draft("mail.read" if n % 2 else "import", tags=("red",) if n % 3 == 0 else (), user_id=f"u{n % 2}")
        await put(store, one)
        [job] = await store.jobs.claim(want(1, worker=f"w{n % 2}", types={one.type}))
        await (settle(store, job) if outcome is None else settle(store, job, outcome))
    await put(store, draft("runs", tags=("red", "round"), user_id="u1"))
    await store.jobs.claim(want(1, worker="w1", types={"runs"}))
    return await everything(store)


def filters(jobs: list[Job]) -> list[Filter]:
    middle = jobs[len(jobs) // 2]
    ended = sorted(job.finished_at for job in jobs if job.finished_at is not None)
    half = ended[len(ended) // 2]
    return [
        Filter(status=frozenset({Status.FAILED, Status.QUEUED})),
        Filter(status=frozenset(Status)),
        Filter(status=WAITING, queue="other"),
        Filter(status=FINISHED, type="import"),
        Filter(status=frozenset({Status.PROCESSING, Status.SUCCEEDED}), user_id="u1"),
        Filter(status=frozenset({Status.PROCESSING, Status.SCHEDULED}), tags=TAGGED),
        Filter(type_prefix="mail"),
        Filter(type_prefix="mail."),
        Filter(type_prefix="mail%"),
        Filter(type_prefix="mail", status=Status.SCHEDULED, queue="other"),
        Filter(type_prefix="ma", user_id="u1"),
        Filter(tags=frozenset({"red"})),
        Filter(tags=TAGGED),
        Filter(tags=frozenset({"re"})),
        Filter(tags=TAGGED, user_id="u1", queue="default"),
        Filter(worker_id="w1"),
        Filter(worker_id="w1", status=Status.PROCESSING),
        Filter(worker_id="nobody"),
        Filter(replay_of=jobs[-1].id),
        Filter(replay_of=jobs[-1].id, type="mail.send", created_since=jobs[-1].created_at),
        Filter(replay_of=jobs[0].id),
        Filter(unique_key="k1"),
        Filter(unique_key="k1", user_id="u2"),
        Filter(unique_key="k1", status=Status.FAILED),
        Filter(unique_key="nobody's"),
        Filter(attempts_at_least=1),
        Filter(attempts_at_most=0),
        Filter(attempts_at_least=1, attempts_at_most=1, status=FINISHED),
        Filter(attempts_at_least=2),
        Filter(created_since=middle.created_at),
        Filter(created_before=middle.created_at),
        Filter(created_since=middle.created_at, created_before=middle.created_at + HOUR, user_id="u1"),
        Filter(created_since=middle.created_at + HOUR),
        Filter(created_before=middle.created_at - HOUR),
        Filter(finished_since=half),
        Filter(finished_before=half),
        Filter(finished_since=half, status=Status.FAILED, type="mail.read"),
        Filter(finished_before=half - HOUR),
    ]


async def found_by(store: Store, filter_: Filter, limit: int, *, oldest_first: bool) -> list[str]:
    """All that a search finds, page by page."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = await store.views.find(filter_, limit, after, oldest_first=oldest_first)
        assert page.complete
        found += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            return found


async def test_every_word_finds_and_counts_what_a_recount_does(store: Store) -> None:
    jobs = await scene(store)
    for filter_ in filters(jobs):
        wanted = [job.id for job in jobs if matches(filter_, job)]
        assert await found_by(store, filter_, 2, oldest_first=False) == wanted, filter_
        assert await found_by(store, filter_, 3, oldest_first=True) == wanted[::-1], filter_
        assert await store.views.count(filter_) == Count(len(wanted), exact=True), filter_


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize(
    "filter_",
    [
        Filter(),
        Filter(user_id="u"),
        Filter(tags=frozenset({"t"})),
        Filter(status=WAITING),
        Filter(status=Status.QUEUED),
    ],
    ids=["all", "user", "tags", "statuses", "status"],
)
async def test_pages_lead_back_the_way_they_came(store: Store, filter_: Filter, oldest_first: bool) -> None:
    await put(store, *[draft(user_id="u", tags=("t",)) for _ in range(10)])
    pages: list[Page] = []
    after: str | None = None
    while not pages or after is not None:
        pages.append(await store.views.find(filter_, 3, after, oldest_first=oldest_first))
        after = pages[-1].next
    assert [len(page.jobs) for page in pages] == [3, 3, 3, 1]
    assert pages[0].previous is None
    at = pages[-1]
    for before in reversed(pages[:-1]):
        assert at.previous is not None
        at = await store.views.find(filter_, 3, at.previous, oldest_first=oldest_first)
        assert at.jobs == before.jobs
        again = await store.views.find(filter_, 3, at.next, oldest_first=oldest_first)
        assert again.jobs == pages[pages.index(before) + 1].jobs
    assert at.previous is None, "nothing is newer than the first page"
    [newer] = await put(store, draft(user_id="u", tags=("t",)))
    if not oldest_first:
        back = await store.views.find(filter_, 3, pages[1].previous)
        assert [job.id for job in back.jobs] == [job.id for job in pages[0].jobs]
        assert back.previous is not None
        assert [job.id for job in (await store.views.find(filter_, 3, back.previous)).jobs] == [newer]


async def test_an_empty_page_behind_the_last_leads_back_to_it(store: Store) -> None:
    ids = await put(store, *[draft() for _ in range(3)])
    page = await store.views.find(Filter(), 2)
    await store.jobs.claim(want(10))  # the first two are no longer queued; the cursor stands behind the second
    after = await store.views.find(Filter(status=Status.QUEUED), 2, page.next)
    assert (after.jobs, after.next) == ((), None)
    assert after.previous is not None
    back = await store.views.find(Filter(), 2, after.previous)
    assert [job.id for job in back.jobs] == ids[:0:-1]


@pytest.mark.parametrize("cursor", ["", "x", "bm9uc2Vuc2U=", "\ud800", "é"])
async def test_what_is_no_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(SettingsError, match="expected the next or the previous of a page"):
        await store.views.find(Filter(), 3, cursor)


async def test_a_cursor_of_the_other_order_is_refused(store: Store) -> None:
    await put(store, *[draft() for _ in range(3)])
    page = await store.views.find(Filter(), 1)
    with pytest.raises(SettingsError, match="goes newest first, and this one goes oldest first"):
        await store.views.find(Filter(), 1, page.next, oldest_first=True)


@pytest.mark.timeout(60)
async def test_a_search_that_stops_at_its_bound_says_so_and_goes_on_from_there(store: Store) -> None:
    [old] = await put(store, draft(tags=("rare",)))
    for _ in range(0, MOST_LOOKED_AT + 500, 500):
        await put(store, *[draft() for _ in range(500)])
    [new] = await put(store, draft(tags=("rare",)))
    rare = Filter(tags=frozenset({"rare"}))
    page = await store.views.find(rare, 10)
    assert ([job.id for job in page.jobs], page.complete) == ([new], False)
    assert page.next is not None
    rest = await store.views.find(rare, 10, page.next)
    assert ([job.id for job in rest.jobs], rest.complete, rest.next) == ([old], True, None)
    assert rest.previous is not None
    back = await store.views.find(rare, 1, rest.previous)
    assert back.complete is False
    assert back.jobs == ()
    assert [job.id for job in (await store.views.find(rare, 1, back.previous)).jobs] == [new]
    assert [job.id for job in (await store.views.find(rare, 1, back.next)).jobs] == [old]
    assert await store.views.count(rare) == Count(2, exact=True)
    assert await store.views.count(rare, 100) == Count(1, exact=False)
    several = Filter(tags=frozenset({"rare"}), status=WAITING)
    assert [job.id for job in (await store.views.find(several, 10)).jobs] == [new]


async def test_a_key_leads_to_the_job_that_holds_it_now(store: Store) -> None:
    job = await start(store, draft(unique="k"))
    held = Filter(unique_key="k")
    assert [one.id for one in (await store.views.find(held, 5)).jobs] == ([job.id] if job.unique_key else [])
    await settle(store, job)
    assert (await store.views.find(held, 5)).jobs == ()
    [again] = await put(store, draft(unique="k"))
    assert [one.id for one in (await store.views.find(held, 5)).jobs] == [again]


async def test_a_range_of_creation_finds_a_job_whose_producer_had_another_clock(store: Store) -> None:
    now = await store.now()
    job = await finish(store, draft())
    assert [one.id for one in (await store.views.find(Filter(created_since=now), 5)).jobs] == [job.id]
    later = Filter(created_since=now, created_before=now + timedelta(minutes=1), finished_before=now + HOUR)
    assert [one.id for one in (await store.views.find(later, 5)).jobs] == [job.id]
