"""Answers that are shared: many who ask the same at one moment are one question to the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.counting import Calls
from tests.support.until import until
from windlass import JobNotFound, Windlass

MANY = 50


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
async def app(tmp_path: Path, calls: Calls) -> AsyncIterator[Windlass]:
    plain = Windlass(f"sqlite:///{tmp_path}/shared.db")
    app = Windlass(store=calls.on(plain.store))

    @app.job()
    async def send(to: str) -> None: ...

    async with app:
        for user in ("ada", "bob"):
            await send.using(user=user).enqueue(user)
        yield app
    plain.close()


async def test_the_same_page_at_one_moment_is_read_once(app: Windlass, calls: Calls) -> None:
    pages = await asyncio.gather(*(app.jobs.find(type="send", max_age=60) for _ in range(MANY)))
    assert calls.by_name["views.find"] == 1
    assert {page.jobs for page in pages} == {pages[0].jobs}
    assert len(pages[0].jobs) == 2


async def test_without_an_age_everybody_asks(app: Windlass, calls: Calls) -> None:
    await asyncio.gather(*(app.jobs.find(type="send") for _ in range(MANY)))
    assert calls.by_name["views.find"] == MANY


async def test_other_pages_have_other_answers(app: Windlass) -> None:
    first = await app.jobs.find(limit=1, max_age=60)
    second = await app.jobs.find(limit=1, after=first.next, max_age=60)
    oldest = await app.jobs.find(limit=1, oldest_first=True, max_age=60)
    none = await app.jobs.find(limit=1, queue="other", max_age=60)
    assert [page.jobs[0].user_id for page in (first, second, oldest)] == ["bob", "ada", "ada"]
    assert not none.jobs


async def test_counts_and_jobs_are_shared_too(app: Windlass, calls: Calls) -> None:
    counts = await asyncio.gather(*(app.jobs.count(user="ada", max_age=60) for _ in range(MANY)))
    assert {count.n for count in counts} == {1}
    assert calls.by_name["views.count"] == 1
    job = (await app.jobs.find(user="ada")).jobs[0]
    seen = await asyncio.gather(*(app.jobs.look(job.id, max_age=60) for _ in range(MANY)))
    assert calls.by_name["views.look"] == 1
    seen[0].history.clear()
    assert seen[1].history, "what one does with its answer is nothing to others"


async def test_what_one_user_was_told_is_not_told_to_another(app: Windlass) -> None:
    theirs = (await app.jobs.find(user="ada", max_age=60)).jobs[0]
    assert (await app.jobs.only("ada").look(theirs.id, max_age=60)).job.id == theirs.id
    with pytest.raises(JobNotFound):
        await app.jobs.only("bob").look(theirs.id, max_age=60)
    assert [job.user_id for job in (await app.jobs.only("bob").find(max_age=60)).jobs] == ["bob"]
    assert (await app.jobs.only("bob").count(max_age=60)).n == 1


async def test_an_answer_is_given_for_as_long_as_was_accepted(app: Windlass) -> None:
    assert (await app.jobs.count(type="send", max_age=0.02)).n == 2
    await app.enqueue("send", {"to": "eve"})

    async def seen() -> bool:
        return (await app.jobs.count(type="send", max_age=0.02)).n == 3

    await until(seen, "the new job to be counted")


async def test_a_question_that_fails_is_asked_again_by_the_next(app: Windlass) -> None:
    with pytest.raises(JobNotFound):
        await app.jobs.look("01900000-0000-7000-8000-000000000000", max_age=60)
    with pytest.raises(JobNotFound):
        await app.jobs.look("01900000-0000-7000-8000-000000000000", max_age=60)
