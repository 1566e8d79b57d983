"""Dead letters on every store: by what went wrong, replayed once however often one asks, and discarded."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.steps import NEVER_AGAIN, finish, gone, settle
from tests.support.apps import Heard, working
from tests.support.drafts import draft, want
from windlass import JobNotFound, Limit, MoveRefused, PayloadInvalid, SettingsError, Status, Windlass
from windlass.client.dead_letters import DeadGroups, Skipped
from windlass.core.draft import Draft
from windlass.core.events import JobDiscarded
from windlass.core.job import Error, Job
from windlass.core.outcome import Failed
from windlass.core.transition import decide
from windlass.core.unique import Unique
from windlass.stores.contract import Created

pytestmark = pytest.mark.timeout(60)


async def dead(
    app: Windlass, *drafts: Draft, message: str = "order {n} is gone", type_: str = "LookupError"
) -> list[Job]:
    """Failed jobs, in the order given."""
    assert {type(one) for one in await app.store.jobs.insert(drafts)} == {Created}
    jobs: list[Job] = []
    while claimed := await app.store.jobs.claim(want(500, types={one.type for one in drafts})):
        jobs += claimed
    endings = [
        decide(one, Failed(Error(type=type_, message=message.format(n=n)), again=False)) for n, one in enumerate(jobs)
    ]
    await app.store.jobs.apply(endings)
    found = {one.id: one for one in await app.store.views.get([one.id for one in drafts]) if one is not None}
    assert {one.status for one in found.values()} == {Status.FAILED}
    return [found[one.id] for one in drafts]


async def test_failures_of_one_kind_are_one_group(app: Windlass) -> None:
    sent = await dead(app, *[draft("send") for _ in range(5)])
    await dead(app, draft("send"), message="the post is closed")
    await dead(app, draft("fetch", queue="slow", user_id="ada"))
    await finish(app.store)
    found = await app.dead_letters.groups()
    assert (found.looked_at, found.complete) == (7, True)
    assert [(one.type, one.error, one.count) for one in found.groups] == [
        ("send", "LookupError", 5),
        *sorted([("send", "LookupError", 1), ("fetch", "LookupError", 1)], key=lambda one: prints(found, one[0])),
    ]
    largest = found.groups[0]
    assert largest.example == sent[-1].id
    assert largest.message == (sent[-1].error or NEVER_AGAIN.error).message
    ends = [one.finished_at for one in sent if one.finished_at is not None]
    assert (largest.first_seen, largest.last_seen) == (min(ends), max(ends))
    assert len({one.fingerprint for one in found.groups}) == 3
    assert sum(largest.seen.values()) == 5
    assert {at.replace(second=0, microsecond=0) for at in ends} == {*largest.seen}
    assert (await app.dead_letters.retrying()).groups == ()

    for search, count in (({"type": "send"}, 6), ({"queue": "slow"}, 1), ({"user": "ada"}, 1), ({"user": "bob"}, 0)):
        wanted: Any = search
        assert sum(one.count for one in (await app.dead_letters.groups(**wanted)).groups) == count
    one = await app.dead_letters.groups(fingerprint=largest.fingerprint)
    assert one.groups == (largest,)


def prints(found: DeadGroups, type_: str) -> str:
    return next(one.fingerprint for one in found.groups if one.type == type_ and one.count == 1)


async def test_a_look_is_bounded_and_says_whether_it_saw_everything(app: Windlass) -> None:
    jobs = await dead(app, *[draft() for _ in range(1_100)])
    assert (await app.dead_letters.groups(most=1_100)).complete
    some = await app.dead_letters.groups(most=600)
    assert (some.looked_at, some.complete, some.groups[0].count) == (600, False, 600)
    assert some.groups[0].example == jobs[-1].id, "the newest are looked at"
    found = await app.dead_letters.find(limit=3)
    assert [one.id for one in found.jobs] == [one.id for one in jobs[:-4:-1]]
    assert not found.complete


async def test_the_jobs_of_a_fingerprint_are_found(app: Windlass) -> None:
    one = await dead(app, *[draft() for _ in range(3)])
    await dead(app, draft(), message="other")
    groups = await app.dead_letters.groups()
    found = await app.dead_letters.find(fingerprint=groups.groups[0].fingerprint)
    assert ([job.id for job in found.jobs], found.complete) == ([job.id for job in one[::-1]], True)
    assert (await app.dead_letters.find(fingerprint="0" * 12)).jobs == ()


async def test_a_replay_names_the_old_job_and_a_second_gives_the_first(app: Windlass, another: Windlass) -> None:
    [job] = await dead(app, draft("send", '{"n":1}', queue="mail", user_id="ada", tags=("t",)))
    handles = await asyncio.gather(
        app.dead_letters.replay(job.id), another.dead_letters.replay(job.id), app.jobs.replay(job.id)
    )
    assert sorted(one.created for one in handles) == [False, False, True]
    assert len({one.id for one in handles}) == 1
    new = await handles[0].job()
    assert (new.replay_of, new.payload, new.queue, new.user_id, new.tags) == (job.id, {"n": 1}, "mail", "ada", ("t",))
    assert (await app.jobs.get(job.id)).status is Status.FAILED, "it stays where it was"

    # The new job fails: that is another failure, and replaying it makes another job. So is the old one, failed anew.
    [claimed] = await app.store.jobs.claim(want(types={"send"}))
    await settle(app.store, claimed, NEVER_AGAIN)
    assert not (await app.dead_letters.replay(job.id)).created
    assert (await app.dead_letters.replay(new.id)).created
    await app.jobs.retry(job.id)
    for one in await app.store.jobs.claim(want(types={"send"})):
        await settle(app.store, one, NEVER_AGAIN)
    assert (await app.dead_letters.replay(job.id)).created


async def test_an_edited_replay_is_checked_and_takes_the_keys_of_its_new_payload(app: Windlass) -> None:
    @app.job(unique="receipt:{order}", limit=Limit("customer:{customer}", 2))
    async def send(order: int, customer: str = "acme") -> str:
        return f"{customer} {order}"

    handle = await send.enqueue(-1)
    [claimed] = await app.store.jobs.claim(want(types={"send"}))
    await settle(app.store, claimed, NEVER_AGAIN)
    with pytest.raises(PayloadInvalid, match="order"):
        await app.dead_letters.replay(handle.id, {"order": "many"})
    with pytest.raises(PayloadInvalid):
        await app.dead_letters.replay(handle.id, edit={"colour": "red"})
    edited = await app.dead_letters.replay(handle.id, edit={"order": 7})
    job = await edited.job()
    assert (edited.created, job.payload, job.unique_queued) == (True, {"order": 7}, "receipt:7")
    assert (job.limit_key, job.limit) == ("customer:acme", 2)
    assert not (await app.dead_letters.replay(handle.id, {"order": 7})).created, "the same edit"
    plain = await app.dead_letters.replay(handle.id)
    assert (plain.created, (await plain.job()).unique_queued) == (True, "receipt:-1")
    whole = await app.dead_letters.replay(handle.id, {"order": 8, "customer": "globex"})
    assert (await whole.job()).limit_key == "customer:globex"
    async with working(app):
        assert await whole.result(20) == "globex 8"


async def test_keys_given_by_hand_stay_in_an_edited_replay(app: Windlass) -> None:
    @app.job(unique="receipt:{order}")
    async def send(order: int) -> None: ...

    handle = await send.using(unique=Unique(running="by-hand")).enqueue(1)
    [claimed] = await app.store.jobs.claim(want(types={"send"}))
    await settle(app.store, claimed, NEVER_AGAIN)
    job = await (await app.dead_letters.replay(handle.id, edit={"order": 2})).job()
    assert (job.unique_queued, job.unique_running) == (None, "by-hand")


async def test_a_payload_without_members_cannot_be_edited_but_replaced(app: Windlass) -> None:
    [job] = await dead(app, draft("send", '"text"'))
    with pytest.raises(PayloadInvalid, match="no members to edit"):
        await app.dead_letters.replay(job.id, edit={"a": 1})
    assert (await (await app.dead_letters.replay(job.id, "other")).job()).payload_json == '"other"'


async def test_many_are_replayed_once_at_a_rate_and_the_report_says_what_became_of_each(app: Windlass) -> None:
    jobs = await dead(app, *[draft() for _ in range(700)])
    await dead(app, draft(), message="other")
    [group, _] = (await app.dead_letters.groups()).groups
    dry = await app.dead_letters.replay_all(fingerprint=group.fingerprint, dry_run=True)
    assert (dry.matched, dry.replayed, dry.dry_run) == (700, 0, True)
    assert (await app.jobs.count()).n == 701

    some = await app.dead_letters.replay_all(fingerprint=group.fingerprint, limit=20, rate=10)
    assert (some.matched, some.replayed, some.skipped) == (20, 20, {})
    assert some.takes == timedelta(seconds=1.9)
    made = [await app.jobs.get(one) for one in some.ids]
    assert [one.replay_of for one in made] == [one.id for one in jobs[:-21:-1]], "newest first"
    gaps = [(later.run_at - made[0].run_at).total_seconds() for later in made]
    assert gaps == pytest.approx([n / 10 for n in range(20)], abs=0.01)
    assert made[0].status is Status.QUEUED
    assert made[1].status is Status.SCHEDULED

    rehearsed = await app.dead_letters.rehearse(fingerprint=group.fingerprint)
    assert (rehearsed.matched, rehearsed.looked_at) == (700, 200)
    assert {*rehearsed.skipped} == {Skipped.ALREADY_REPLAYED}
    assert sorted(rehearsed.skipped[Skipped.ALREADY_REPLAYED]) == sorted(one.id for one in jobs[-20:])

    rest = await app.dead_letters.replay_all(fingerprint=group.fingerprint)
    assert (rest.matched, rest.replayed, rest.skipped) == (700, 680, {Skipped.ALREADY_REPLAYED: 20})
    again = await app.dead_letters.replay_all(everything=True)
    assert (again.matched, again.replayed) == (701, 1)


async def test_what_cannot_be_replayed_is_skipped_and_told(app: Windlass) -> None:
    @app.job
    async def send(order: int) -> None: ...

    await dead(app, draft("send", '{"order":1}', unique="k"), type_="Held")
    await dead(app, draft("send", '{"order":2}'), type_="Fits")
    await dead(app, draft("full", '{"order":2}', queue="small"))
    holder = await app.enqueue("send", {"order": 3}, unique="k")
    await app.store.jobs.insert([draft(queue="small")])
    await app.queues.limit_depth("small", 1)
    rehearsed = await app.dead_letters.rehearse(queue="default")
    assert (rehearsed.matched, rehearsed.looked_at, {*rehearsed.skipped}) == (2, 2, {Skipped.KEY_HELD})
    rehearsed = await app.dead_letters.rehearse()
    assert (rehearsed.matched, rehearsed.exact) == (3, True)
    told = await app.dead_letters.replay_all(everything=True)
    assert {why: len(ids) for why, ids in rehearsed.skipped.items()} == told.skipped
    assert (told.matched, told.replayed) == (3, 1)
    assert told.skipped == {Skipped.KEY_HELD: 1, Skipped.QUEUE_FULL: 1}
    await holder.cancel()
    told = await app.dead_letters.replay_all(type="send", edit={"order": "many"})
    assert (told.matched, told.replayed, told.skipped) == (2, 0, {Skipped.PAYLOAD_INVALID: 2})


async def test_discarded_letters_are_gone_and_it_is_told_who_did_it_and_why(app: Windlass) -> None:
    heard = Heard(app)
    one, two, three = await dead(app, draft("send"), draft("send"), draft("fetch"))
    await app.dead_letters.discard(one.id, actor="ann", reason="a test order")
    assert await gone(app.store, one.id)
    dry = await app.dead_letters.discard_all(type="send", dry_run=True)
    assert (dry.matched, dry.discarded, dry.left) == (1, 0, 0)
    assert not await gone(app.store, two.id)
    told = await app.dead_letters.discard_all(type="send", actor="bob")
    assert (told.matched, told.discarded, told.left) == (1, 1, 0)
    assert await gone(app.store, two.id)
    assert (await app.jobs.get(three.id)).status is Status.FAILED
    assert heard.all(JobDiscarded) == [
        JobDiscarded(one.id, "send", "ann", "a test order"),
        JobDiscarded(two.id, "send", "bob", None),
    ]


async def test_only_failed_jobs_are_dead_letters(app: Windlass) -> None:
    done = await finish(app.store)
    for order in (app.dead_letters.replay, app.dead_letters.discard):
        with pytest.raises(MoveRefused):
            await order(done.id)
        with pytest.raises(JobNotFound):
            await order("0190a3c4-5d6e-7f80-9123-456789abcdef")
    assert (await app.dead_letters.discard_all(everything=True)).matched == 0
    assert (await app.jobs.get(done.id)).status is Status.SUCCEEDED


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "no filter was given"),
        ({"type": None}, "type is None, which is no filter"),
        ({"typ": "send"}, "'typ' is no search word, did you mean type"),
        ({"fingerprint": "boom"}, "fingerprint is 'boom': expected twelve hexadecimal digits"),
        ({"type": "send", "limit": 0}, "limit is 0: expected a whole number from 1"),
        ({"type": "send", "rate": 0}, "rate is 0: expected how many by the second"),
        ({"type": "send", "rate": float("nan")}, "rate is nan"),
        ({"type": "send", "rate": "10/s"}, "rate is '10/s'"),
    ],
)
async def test_bad_orders_are_refused(app: Windlass, given: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        await app.dead_letters.replay_all(**given)
    if "rate" not in given:
        with pytest.raises(SettingsError, match=told):
            await app.dead_letters.discard_all(**given)
