"""Many jobs in one request, each told by itself."""

from __future__ import annotations

from typing import Any

from tests.web.conftest import Ask
from windlass import DuplicateJob, Handle, PayloadInvalid, Windlass

MAIL = {"type": "mail.send", "payload": {"to": "ada"}}
MANY = "/queue/enqueue/many"


async def test_each_is_told_by_itself(app: Windlass, ask: Ask) -> None:
    items: list[Any] = [
        MAIL,
        {**MAIL, "uniqueKey": "k"},
        {**MAIL, "uniqueKey": "k"},
        {**MAIL, "payload": {"too": 1}},
        {**MAIL, "nonsense": 1},
        {"payload": {}},
        7,
        {**MAIL, "userId": "bob"},
        {**MAIL, "uniqueKey": "k", "onConflict": "existing"},
        {"type": "unheard.of", "payload": {"n": 2**60}},
    ]
    async with ask() as client:
        answer = await client.post(MANY, json={"jobs": items})
        told = answer.json()
        found = [
            (await client.get(one["location"].removeprefix("/api/v1"))).json() for one in told["items"] if one["id"]
        ]
    verdicts = [one["verdict"] for one in told["items"]]
    assert answer.status_code == 200
    assert [one["index"] for one in told["items"]] == list(range(len(items)))
    assert verdicts == ["created", "created", "duplicate", *["refused"] * 5, "existing", "created"], told
    assert (told["created"], told["existing"], told["duplicates"], told["refused"]) == (3, 1, 1, 5)
    unique = told["items"][1]["id"]
    assert {told["items"][at]["id"] for at in (2, 8)} == {unique}
    problems = [one["problem"] for one in told["items"] if one["verdict"] == "refused"]
    assert {one["status"] for one in problems} == {422}
    for problem, place in zip(problems, ("too", "nonsense", "type", "the item", "userId"), strict=True):
        assert place in problem["detail"]
    assert {one["userId"] for one in found} == {"ann"}
    assert (await app.jobs.count()).n == 3


async def test_they_are_written_in_one_step_and_in_order(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        jobs = [{**MAIL, "payload": {"to": str(n)}} for n in range(1000)]
        told = (await client.post(MANY, json={"jobs": jobs})).json()
        more = await client.post(MANY, json={"jobs": [MAIL] * 1001})
        none = await client.post(MANY, json={"jobs": []})
    ids = [one["id"] for one in told["items"]]
    assert told["created"] == 1000
    assert ids == sorted(ids)
    created = {job.created_at for job in (await app.jobs.find(limit=1000)).jobs}
    assert len(created) == 1
    assert (more.status_code, none.status_code) == (422, 422)
    assert (await app.jobs.count()).n == 1000


async def test_every_item_is_checked_against_the_key(app: Windlass, ask: Ask) -> None:
    async with ask(types=["mail.*"], queues=["mail"]) as client:
        told = (
            await client.post(MANY, json={"jobs": [MAIL, {"type": "fail"}, {**MAIL, "queue": "other"}, MAIL]})
        ).json()
    assert [one["verdict"] for one in told["items"]] == ["created", "refused", "refused", "created"]
    assert [one["problem"]["status"] for one in told["items"][1:3]] == [403, 403]
    assert (await app.jobs.count()).n == 2


async def test_asked_again_with_a_key_they_are_the_same_jobs(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        body = {"jobs": [MAIL, {**MAIL, "nonsense": 1}, MAIL]}
        answers = [await client.post(MANY, json=body, headers={"Idempotency-Key": "m"}) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert (await app.jobs.count()).n == 2


async def test_in_python_names_and_bound_jobs_may_be_mixed(app: Windlass) -> None:
    send = app.registry.get("mail.send")
    handles = await app.enqueue_many([("mail.send", {"to": "a"}), ("mail.send", {"to": "b"}, {"priority": 7})])
    assert [(await one.job()).priority for one in handles] == [send.options.priority, 7]
    good, bad, twice = await app.enqueue_each(
        [
            ("mail.send", {"to": "c"}, {"unique": "c"}),
            ("mail.send", {}),
            ("mail.send", {"to": "d"}, {"unique": "c", "on_conflict": "raise"}),
        ]
    )
    assert isinstance(good, Handle)
    assert isinstance(bad, PayloadInvalid)
    assert isinstance(twice, DuplicateJob)
    assert twice.existing == good.id
    assert (await app.jobs.count()).n == 3
