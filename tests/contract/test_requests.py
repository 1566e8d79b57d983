"""What is asked under an idempotency key is carried out once, whoever asks again and whatever dies in between."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from tests.contract.steps import passed, put
from tests.support.drafts import draft
from windlass.core.draft import ids_after
from windlass.stores.contract import Answered, Begun, Filter, NewRequest, OtherRequest, Store, UnderWay
from windlass.stores.contract.requests import Recorded, judge

MOMENT = timedelta(milliseconds=1)
HOUR = timedelta(hours=1)
FIRST, SECOND = "0190a3c4-5d6e-7f80-9123-456789abcdef", "0190a3c4-5d6e-7f80-9123-456789abcd00"
NEW = NewRequest(id="a" * 64, fingerprint="f", first_id=FIRST, mark="m1")
AGAIN = replace(NEW, first_id=SECOND, mark="m2")
ANSWER = '{"status":201,"body":"für {\\"n\\":9007199254740993}"}'


async def over(store: Store, after: timedelta = 2 * MOMENT) -> None:
    """Let a time that was asked for a moment ago be over."""
    await passed(store, await store.now() + after)


async def test_what_was_answered_is_answered_again(store: Store, other: Store) -> None:
    assert await store.requests.begin(NEW) == Begun(FIRST)
    assert await store.requests.finish(NEW.id, NEW.mark, ANSWER)
    for one in (store, other):
        assert await one.requests.begin(AGAIN) == Answered(ANSWER)
    assert await store.requests.begin(NEW) == Answered(ANSWER)


async def test_while_it_is_under_way_others_wait(store: Store, other: Store) -> None:
    await store.requests.begin(NEW)
    standing = await other.requests.begin(AGAIN)
    assert isinstance(standing, UnderWay)
    assert timedelta(0) <= standing.left <= NEW.hold
    assert standing.left > NEW.hold - timedelta(seconds=5)
    assert not await other.requests.finish(AGAIN.id, AGAIN.mark, "not theirs to answer")
    assert not await other.requests.release(AGAIN.id, AGAIN.mark)
    assert not await other.requests.forget(AGAIN.id, AGAIN.mark)
    assert isinstance(await other.requests.begin(AGAIN), UnderWay)


async def test_something_else_under_the_same_key_is_told_apart(store: Store, other: Store) -> None:
    await store.requests.begin(NEW)
    changed = replace(AGAIN, fingerprint="g")
    assert await other.requests.begin(changed) == OtherRequest()
    await store.requests.finish(NEW.id, NEW.mark, ANSWER)
    assert await other.requests.begin(changed) == OtherRequest()
    assert await other.requests.begin(replace(changed, id="b" * 64)) == Begun(SECOND)


async def test_a_begin_whose_answer_was_lost_is_the_same_attempt(store: Store) -> None:
    await store.requests.begin(NEW)
    assert await store.requests.begin(NEW) == Begun(FIRST)
    assert await store.requests.begin(replace(NEW, first_id=SECOND)) == Begun(FIRST)
    assert await store.requests.finish(NEW.id, NEW.mark, ANSWER)
    assert await store.requests.finish(NEW.id, NEW.mark, ANSWER), "an answer that was lost is kept once more"
    assert not await store.requests.finish(NEW.id, NEW.mark, "another")
    assert await store.requests.begin(AGAIN) == Answered(ANSWER)


async def test_who_died_is_taken_over_with_the_same_ids_and_is_late_then(store: Store, other: Store) -> None:
    await store.requests.begin(replace(NEW, hold=MOMENT))
    await over(store)
    assert await other.requests.begin(replace(AGAIN, fingerprint="g")) == OtherRequest()
    assert await other.requests.begin(AGAIN) == Begun(FIRST)
    assert not await store.requests.finish(NEW.id, NEW.mark, "late")
    assert not await store.requests.release(NEW.id, NEW.mark)
    assert not await store.requests.forget(NEW.id, NEW.mark)
    assert await other.requests.finish(AGAIN.id, AGAIN.mark, ANSWER)
    assert await store.requests.begin(replace(NEW, mark="m3")) == Answered(ANSWER)


async def test_a_process_that_dies_between_insert_and_answer_leaves_one_job(store: Store, other: Store) -> None:
    standing = await store.requests.begin(replace(NEW, hold=MOMENT))
    assert isinstance(standing, Begun)
    await put(store, *[draft()._replace(id=id_) for id_ in ids_after(standing.first_id, 2)])
    await over(store)
    taken = await other.requests.begin(AGAIN)
    assert isinstance(taken, Begun)
    await put(other, *[draft()._replace(id=id_) for id_ in ids_after(taken.first_id, 2)])
    found = await other.views.find(Filter(), 10)
    assert {job.id for job in found.jobs} == set(ids_after(FIRST, 2))


async def test_what_is_released_begins_anew_at_once_with_the_same_ids(store: Store, other: Store) -> None:
    await store.requests.begin(NEW)
    assert await store.requests.release(NEW.id, NEW.mark)
    assert await other.requests.begin(replace(AGAIN, fingerprint="g")) == OtherRequest()
    assert await other.requests.begin(AGAIN) == Begun(FIRST)
    await other.requests.finish(AGAIN.id, AGAIN.mark, ANSWER)
    assert not await other.requests.release(AGAIN.id, AGAIN.mark)
    assert await store.requests.begin(NEW) == Answered(ANSWER)


async def test_what_is_forgotten_was_never_asked(store: Store, other: Store) -> None:
    await store.requests.begin(NEW)
    assert await store.requests.forget(NEW.id, NEW.mark)
    changed = replace(AGAIN, fingerprint="g")
    assert await other.requests.begin(changed) == Begun(SECOND)
    await other.requests.finish(changed.id, changed.mark, ANSWER)
    assert not await other.requests.forget(changed.id, changed.mark), "what was answered is kept"
    assert await other.requests.begin(changed) == Answered(ANSWER)


async def test_what_has_been_kept_long_enough_counts_as_gone(store: Store, other: Store) -> None:
    short = replace(NEW, keep=2 * MOMENT)
    await store.requests.begin(short)
    await store.requests.finish(NEW.id, NEW.mark, ANSWER)
    await over(store, 3 * MOMENT)
    assert await other.requests.begin(replace(AGAIN, fingerprint="g")) == Begun(SECOND)
    assert not await store.requests.finish(NEW.id, NEW.mark, "late")
    assert await other.requests.begin(AGAIN) == OtherRequest()


async def test_taking_over_keeps_it_no_longer(store: Store) -> None:
    await store.requests.begin(replace(NEW, hold=timedelta(0), keep=timedelta(milliseconds=200)))
    until = await store.now() + timedelta(milliseconds=200)
    assert await store.requests.begin(replace(AGAIN, keep=HOUR)) == Begun(FIRST)
    await store.requests.finish(AGAIN.id, AGAIN.mark, ANSWER)
    await passed(store, until + timedelta(milliseconds=2))
    assert await store.requests.begin(replace(AGAIN, mark="m3")) == Begun(SECOND)


async def test_of_many_that_begin_at_once_one_carries_it_out(crowd: list[Store]) -> None:
    for turn in range(5):
        asked = [replace(NEW, id=f"{turn}", mark=f"{n}", first_id=id_) for n, id_ in enumerate(ids_after(FIRST, 10))]
        standings = await asyncio.gather(
            *[one.requests.begin(new) for one, new in zip(crowd * 2, asked, strict=True)],
        )
        [winner] = [n for n, standing in enumerate(standings) if isinstance(standing, Begun)]
        assert standings[winner] == Begun(asked[winner].first_id)
        assert all(isinstance(standing, Begun | UnderWay) for standing in standings)


async def test_of_many_that_take_over_at_once_one_does(crowd: list[Store]) -> None:
    await crowd[0].requests.begin(replace(NEW, hold=timedelta(0)))
    await over(crowd[0])
    standings = await asyncio.gather(
        *[one.requests.begin(replace(AGAIN, mark=f"{n}")) for n, one in enumerate(crowd)],
    )
    assert [standing for standing in standings if not isinstance(standing, UnderWay)] == [Begun(FIRST)]


async def test_an_answer_may_be_large(store: Store, other: Store) -> None:
    large = "ä€" * 300_000
    await store.requests.begin(NEW)
    assert await store.requests.finish(NEW.id, NEW.mark, large)
    assert await other.requests.begin(AGAIN) == Answered(large)


CASES = list(product([None, -1, 1], [-1, 1], ["f", "g"], [None, ANSWER], ["m1", "m2"]))


@pytest.mark.parametrize("keeps", [None, -1, 1])
async def test_every_store_judges_as_the_law_does(store: Store, keeps: int | None) -> None:
    """Case by case: what is known, or is not; is held, or was; is the same, or is not; was answered, or was not."""
    for case, (_, held, asked, answer, mark) in enumerate(one for one in CASES if one[0] == keeps):
        now = datetime(2030, 1, 1, tzinfo=UTC)
        id_ = f"{keeps} {case}"
        known = None
        if keeps is not None:
            hold, keep = (HOUR if held > 0 else timedelta(0)), (HOUR if keeps > 0 else MOMENT)
            await store.requests.begin(replace(NEW, id=id_, hold=hold, keep=keep))
            known = Recorded("f", FIRST, "m1", now + hold, now + (HOUR if keeps > 0 else -MOMENT), answer)
            if answer is not None:
                await store.requests.finish(id_, NEW.mark, answer)
            await over(store)
        new = replace(AGAIN, id=id_, fingerprint=asked, mark=mark)
        expected, found = judge(known, new, now), await store.requests.begin(new)
        assert type(found) is type(expected)
        assert found == expected or isinstance(found, UnderWay)
