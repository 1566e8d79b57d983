"""What running jobs remember: written under their lease, handed over with the next claim."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.contract.steps import (
    AGAIN_LATER,
    AGAIN_SOON,
    DONE,
    NEVER_AGAIN,
    RELEASED,
    cancel,
    expired,
    finish,
    get,
    lose,
    operate,
    passed,
    put,
    settle,
    start,
    status,
    take,
    told,
)
from tests.support.drafts import draft, new_id, want
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.kept import LARGEST
from windlass.core.status import Status
from windlass.core.unique import Unique
from windlass.stores.contract import Action, Keep, Lease, Operated, Replaced, Store, Verdict

HARD = json.dumps({"text": 'ö\\u0000 \\ " / \u2028 $.a', "n": 9007199254740993, "f": 1.5e300, "": [None, True]})
NAMES = ("step:a", "step:a.b", 'step:"q"', "step:$x", "step:ä:1", "saved", "step:with space", "step:\\")


def keep(job: Job, name: str = "step:a", text: str = "1", token: int | None = None) -> Keep:
    return Keep(Lease(job.id, job.lease_token if token is None else token), name, text)


async def kept(store: Store, job_id: str) -> dict[str, str]:
    """The texts that a job has kept, by name."""
    text = (await get(store, job_id)).kept_json
    found: dict[str, str] = {} if text is None else json.loads(text)
    return found


async def test_a_job_keeps_nothing_at_first(store: Store) -> None:
    job = await start(store)
    assert (job.kept_json, job.kept) == (None, {})


async def test_what_was_kept_comes_with_the_next_claim(store: Store) -> None:
    job = await start(store)
    assert await store.jobs.keep([keep(job, "step:a", '"x"'), keep(job, "saved", "[1]")]) == [Verdict.APPLIED] * 2
    await settle(store, job, RELEASED)
    again = await take(store)
    assert again.kept == {"step:a": "x", "saved": [1]}


async def test_texts_and_names_come_back_as_they_were(store: Store) -> None:
    job = await start(store)
    assert await store.jobs.keep([keep(job, name, HARD) for name in NAMES]) == [Verdict.APPLIED] * len(NAMES)
    assert await kept(store, job.id) == dict.fromkeys(NAMES, HARD)
    await settle(store, job, RELEASED)
    again = await take(store)
    assert again.kept == dict.fromkeys(NAMES, json.loads(HARD))


async def test_the_last_value_of_a_name_counts(store: Store) -> None:
    job = await start(store)
    await store.jobs.keep([keep(job, "saved", "1"), keep(job, "step:a", "0"), keep(job, "saved", "2")])
    assert await kept(store, job.id) == {"saved": "2", "step:a": "0"}
    await store.jobs.keep([keep(job, "saved", "3")])
    assert await kept(store, job.id) == {"saved": "3", "step:a": "0"}


async def test_told_again_it_is_the_same(store: Store) -> None:
    job = await start(store)
    assert [await store.jobs.keep([keep(job)]) for _ in range(2)] == [[Verdict.APPLIED]] * 2
    assert await kept(store, job.id) == {"step:a": "1"}


async def test_keeping_is_no_move(store: Store) -> None:
    job = await start(store)
    await store.jobs.keep([keep(job)])
    after = await get(store, job.id)
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED]
    assert after.updated_at >= job.updated_at
    assert after._replace(updated_at=job.updated_at, kept_json=None) == job


async def test_jobs_that_run_at_one_time_share_a_step(store: Store) -> None:
    await put(store, draft(), draft(), draft())
    jobs = await store.jobs.claim(want())
    assert await store.jobs.keep([keep(job, "saved", f'"{job.id}"') for job in jobs]) == [Verdict.APPLIED] * 3
    assert [(await get(store, job.id)).kept for job in jobs] == [{"saved": job.id} for job in jobs]


async def test_a_lease_that_is_anothers_keeps_nothing(store: Store) -> None:
    job = await start(store)
    other = await start(store)
    gone = job._replace(id=new_id())
    verdicts = await store.jobs.keep([keep(job, token=job.lease_token - 1), keep(other), keep(gone)])
    assert verdicts == [Verdict.STALE, Verdict.APPLIED, Verdict.MISSING]
    assert (await kept(store, job.id), await kept(store, other.id)) == ({}, {"step:a": "1"})
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_a_job_that_was_lost_keeps_nothing_of_its_old_worker(store: Store) -> None:
    job = await expired(store)
    await passed(store, job.lease_expires_at)
    assert [one.id for one in await store.jobs.rescue(10)] == [job.id]
    assert await store.jobs.keep([keep(job)]) == [Verdict.STALE]
    assert (await take(store)).kept == {}


@pytest.mark.parametrize("outcome", [DONE, NEVER_AGAIN, RELEASED], ids=["succeeded", "failed", "released"])
async def test_one_that_does_not_run_keeps_nothing_more(store: Store, outcome: object) -> None:
    job = await start(store)
    await store.jobs.keep([keep(job)])
    await settle(store, job, outcome)  # type: ignore[arg-type]  # one of the three
    assert await store.jobs.keep([keep(job, text="2")]) == [Verdict.STALE]
    assert await kept(store, job.id) == {"step:a": "1"}


async def test_values_outlive_every_end_of_an_attempt_and_an_operators_retry(store: Store) -> None:
    job = await start(store)
    await store.jobs.keep([keep(job)])
    await settle(store, job, AGAIN_SOON)
    await passed(store, (await get(store, job.id)).run_at)
    await store.jobs.promote(10)
    again = await take(store)
    assert again.kept == {"step:a": 1}
    await settle(store, again, NEVER_AGAIN)
    assert (await operate(store, job.id, Action.RETRY)).verdict is Operated.DONE
    third = await take(store)
    assert (third.kept, third.attempts) == ({"step:a": 1}, 1)


async def test_values_outlive_a_lost_lease(store: Store) -> None:
    job = await start(store)
    await store.jobs.keep([keep(job)])
    [late] = await lose(store, [job])
    await passed(store, late.lease_expires_at)
    await store.jobs.rescue(10)
    assert (await take(store)).kept == {"step:a": 1}


async def test_a_finished_job_shows_what_it_kept(store: Store) -> None:
    job = await start(store)
    await store.jobs.keep([keep(job)])
    await settle(store, job)
    done = await get(store, job.id)
    assert (done.status, done.kept) == (Status.SUCCEEDED, {"step:a": 1})


async def test_a_job_that_is_replaced_forgets_what_its_old_payload_made(store: Store) -> None:
    one, again = (draft(payload=f'{{"n":{n}}}', unique=Unique(queued="u", running="u")) for n in (1, 2))
    job = await start(store, one)
    await store.jobs.keep([keep(job)])
    await settle(store, job, AGAIN_LATER)
    replacing = again._replace(options=replace(again.options, on_conflict="replace"))
    assert await store.jobs.insert([replacing]) == [Replaced(job.id)]
    fresh = await take(store)
    assert (fresh.id, fresh.payload, fresh.kept) == (job.id, {"n": 2}, {})
    assert await store.jobs.keep([keep(fresh, "saved")]) == [Verdict.APPLIED]
    assert await kept(store, job.id) == {"saved": "1"}


async def test_a_new_job_keeps_nothing_of_another(store: Store) -> None:
    job = await start(store)
    await store.jobs.keep([keep(job)])
    await settle(store, job)
    assert (await finish(store)).kept_json is None


async def test_a_job_that_was_asked_to_cancel_may_still_keep(store: Store) -> None:
    job = await start(store)
    await cancel(store, job.id)
    assert await store.jobs.keep([keep(job)]) == [Verdict.APPLIED]
    assert await status(store, job.id) is Status.PROCESSING


async def test_large_values_are_kept(store: Store) -> None:
    job = await start(store)
    large = json.dumps("ö" * (LARGEST // 2 - 1), ensure_ascii=False)
    assert len(large.encode()) == LARGEST
    assert await store.jobs.keep([keep(job, f"step:{n}", large) for n in range(3)]) == [Verdict.APPLIED] * 3
    assert await kept(store, job.id) == {f"step:{n}": large for n in range(3)}


async def test_nothing_is_asked_of_nothing(store: Store) -> None:
    assert await store.jobs.keep([]) == []
