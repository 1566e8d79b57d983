"""Single jobs that are asked for at the same moment: one question, and to each the answer it would have alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.counting import Calls
from tests.support.until import until
from windlass import JobNotFound, StoreUnavailable, Windlass
from windlass.client.reading import MOST_AT_ONCE, Reading
from windlass.core.job import Job
from windlass.stores.addresses import store_at


class Asked:
    """Reads nothing; remembers what it was asked for, and answers when it is let."""

    def __init__(self) -> None:
        self.questions: list[tuple[Sequence[str], str | None]] = []
        self.let = asyncio.Event()
        self.error: Exception | None = None

    async def read(self, ids: Sequence[str], user: str | None) -> list[Job | None]:
        self.questions.append((ids, user))
        await self.let.wait()
        if self.error is not None:
            raise self.error
        return [None for _ in ids]


async def test_those_who_ask_at_once_are_answered_of_one_read_each_with_their_own(tmp_path: Path) -> None:
    calls = Calls()
    async with Windlass(store=calls.on(store_at(f"sqlite:///{tmp_path / 'jobs.db'}"))) as app:
        ids = [(await app.enqueue("noop", {"n": n}, user="ann" if n % 2 else "bob")).id for n in range(20)]
        before = calls.now()
        found = await asyncio.gather(*(app.jobs.get(one) for one in ids), app.jobs.get(ids[0]))
        assert [job.id for job in found] == [*ids, ids[0]]
        assert calls.since(before)["views.get"] == 1
        hers = await asyncio.gather(*(app.jobs.only("ann").get(one) for one in ids), return_exceptions=True)
        assert [isinstance(one, JobNotFound) for one in hers] == [n % 2 == 0 for n in range(20)]
        assert calls.since(before)["views.get"] == 2
        # A read that has begun answers nobody who asks later: what was done meanwhile is to be seen.
        await app.jobs.cancel(ids[0])
        assert (await app.jobs.get(ids[0])).status == "cancelled"


async def test_users_share_no_question_and_no_question_is_without_end() -> None:
    asked = Asked()
    asked.let.set()
    reading = Reading(asked.read)
    wanted = [(str(n), user) for n in range(2 * MOST_AT_ONCE) for user in ("ann", "bob", None)]
    await asyncio.gather(*(reading.get(*one) for one in wanted))
    assert sorted((id_, str(user)) for ids, user in asked.questions for id_ in ids) == sorted(
        (id_, str(user)) for id_, user in wanted
    )
    assert max(len(ids) for ids, _ in asked.questions) <= MOST_AT_ONCE + 1
    assert len(asked.questions) == 6


async def test_nobody_waits_for_a_question_that_is_under_way() -> None:
    asked = Asked()
    reading = Reading(asked.read)
    slow = asyncio.create_task(reading.get("a"))
    await until(lambda: len(asked.questions) == 1, "the first question")
    late = asyncio.create_task(reading.get("b"))
    await until(lambda: len(asked.questions) == 2, "the second, beside it")
    asked.let.set()
    assert (await slow, await late) == (None, None)


@pytest.mark.parametrize("early", [True, False])
async def test_a_caller_that_goes_away_takes_no_answer_from_the_others(early: bool) -> None:
    """The one that reads for all, and one of those it reads for."""
    asked = Asked()
    reading = Reading(asked.read)
    tasks = [asyncio.create_task(reading.get(one)) for one in "abc"]
    if not early:
        await until(lambda: bool(asked.questions), "the question")
    else:
        await asyncio.sleep(0)  # all have asked, nothing was read
    tasks[0].cancel()
    tasks[1].cancel()
    asked.let.set()
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, asyncio.CancelledError) for one in told] == [True, True, False]
    assert told[2] is None


async def test_what_goes_wrong_is_told_to_each() -> None:
    asked = Asked()
    asked.error = StoreUnavailable("away")
    asked.let.set()
    reading = Reading(asked.read)
    told = await asyncio.gather(*(reading.get(one) for one in "abc"), return_exceptions=True)
    assert [type(one) for one in told] == [StoreUnavailable] * 3
