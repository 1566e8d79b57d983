"""With an Idempotency-Key a request is carried out once and answered alike, whatever dies and whoever asks again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.responses import Response
from fastapi.routing import APIRoute

from tests.web.conftest import Ask, declare
from windlass import Happened, Windlass
from windlass.client.requests import Attempt, RequestsRoom
from windlass.client.surrounding import Outgoing
from windlass.stores.contract.requests import LARGEST_ANSWER
from windlass.web.application import ROOMS
from windlass.web.problems import Refused
from windlass.web.replayed import again as replayed
from windlass.web.replayed import kept
from windlass.web.routing import Repeatable, Route

JOB = {"type": "mail.send", "payload": {"to": "ada", "copies": 2}}
KEY = {"Idempotency-Key": "6f1c-one"}


async def post(client: httpx.AsyncClient, path: str = "/queue/enqueue", body: Any = JOB, **headers: str) -> Any:
    return await client.post(path, json=body, headers={**KEY, **headers})


async def jobs(app: Windlass) -> int:
    return (await app.jobs.count()).n


async def test_the_same_again_is_answered_alike(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        first = await post(client)
        await app.worker(drain=True).run()
        again = await post(client)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content, "as it was then, not as the job is now"
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["content-type"] == first.headers["content-type"]
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert await jobs(app) == 1


async def test_it_holds_over_processes(app: Windlass, ask: Ask, tmp_path: Path) -> None:
    key = await app.keys.create("a test", owner="ann", scopes=["enqueue"])
    headers = {"Authorization": f"Bearer {key.secret}"}
    other = Windlass(f"sqlite:///{tmp_path / 'web.db'}")
    declare(other)
    answers: list[httpx.Response] = []
    async with other:
        for one in (app, other):
            transport = httpx.ASGITransport(one.asgi())
            async with httpx.AsyncClient(transport=transport, base_url="http://w/api/v1", headers=headers) as client:
                answers.append(await post(client))
    assert answers[0].content == answers[1].content
    assert await jobs(app) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/queue/enqueue", {**JOB, "payload": {"to": "bob"}}),
        ("/queue/enqueue/many", {"jobs": [JOB]}),
        ("/queue/enqueue?a=1", JOB),
    ],
    ids=["body", "path", "query"],
)
async def test_a_key_that_was_used_for_something_else_is_refused(
    app: Windlass, ask: Ask, path: str, body: object
) -> None:
    async with ask() as client:
        await post(client)
        answer = await post(client, path, body)
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:windlass:problem:idempotency-key-reused"
    assert await jobs(app) == 1


async def test_keys_of_others_are_other_keys(app: Windlass, ask: Ask) -> None:
    async with ask("ann") as ann, ask("ann") as hers, ask("bob") as bob:
        ids = {(await post(one)).json()["id"] for one in (ann, hers, bob)}
    assert len(ids) == 3


async def test_who_asks_at_the_same_time_is_told_to_wait(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        answers = await asyncio.gather(*[post(client) for _ in range(8)])
        told = {one.status_code for one in answers}
        assert told <= {201, 409}
        for one in answers:
            if one.status_code == 409:
                assert one.json()["type"] == "urn:windlass:problem:under-way"
                assert 1 <= int(one.headers["retry-after"]) <= 2
        ids = {one.json()["id"] for one in [*answers, await post(client)] if one.status_code == 201}
    assert len(ids) == 1
    assert await jobs(app) == 1


@pytest.mark.parametrize("inserted", [False, True], ids=["before the insert", "after the insert"])
async def test_a_process_that_died_leaves_one_job(app: Windlass, ask: Ask, inserted: bool) -> None:
    """As much of the request as a process does before it is killed; then its hold is over, and it is asked again."""
    made = await app.keys.create("a test", owner="ann", scopes=["enqueue"])
    headers = {"Authorization": f"Bearer {made.secret}"}
    dying = app.asgi()
    reached = asyncio.Event()

    @app.around_enqueue
    async def stop(_: Outgoing) -> AsyncIterator[None]:
        if not inserted and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        yield
        if inserted and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()

    app.__dict__["requests"] = RequestsRoom(app.client, hold=timedelta(milliseconds=1))
    transport = httpx.ASGITransport(dying)
    async with httpx.AsyncClient(transport=transport, base_url="http://w/api/v1", headers=headers) as client:
        first = asyncio.create_task(post(client))
        await reached.wait()
        assert await jobs(app) == int(inserted)
        again = await post(client)
        assert again.status_code == 201
        assert await jobs(app) == 1
        first.cancel()
        await asyncio.wait([first])
        assert (await post(client)).content == again.content, "who was late has changed nothing"
    assert await jobs(app) == 1


async def test_an_error_of_ours_is_not_kept(app: Windlass, ask: Ask) -> None:
    broken = True

    @app.around_enqueue
    async def failing(_: Outgoing) -> AsyncIterator[None]:
        yield
        if broken:
            raise RuntimeError("after the insert")

    async with ask() as client:
        first = await post(client)
        assert first.status_code == 500
        assert await jobs(app) == 1
        broken = False
        second = await post(client)
    assert second.status_code == 201
    assert await jobs(app) == 1, "the same id once more"


async def test_a_full_queue_is_not_kept_and_a_duplicate_is(app: Windlass, ask: Ask) -> None:
    unique = {**JOB, "uniqueKey": "k"}
    async with ask() as client:
        await client.post("/queue/enqueue", json=unique)
        first = await post(client, body=unique)
        await app.worker(drain=True).run()
        again = await post(client, body=unique)
        assert (first.status_code, again.status_code) == (409, 409)
        assert again.json() == first.json()
        await client.post("/queue/enqueue", json=JOB)
        await app.queues.limit_depth("mail", 1)
        other = {"Idempotency-Key": "two"}
        assert (await post(client, **other)).status_code == 429
        await app.queues.limit_depth("mail", None)
        assert (await post(client, **other)).status_code == 201


async def test_a_request_that_was_wrong_can_be_put_right_under_its_key(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        for wrong in ({"type": "mail.send", "payload": {"too": 1}}, {"type": "mail.send", "nonsense": 1}):
            assert (await post(client, body=wrong)).status_code == 422
        assert (await post(client)).status_code == 201
    assert await jobs(app) == 1


@pytest.mark.parametrize(
    "key", ["", "a b", "x" * 256, "ä".encode().decode("latin-1")], ids=["empty", "space", "long", "ä"]
)
async def test_a_key_has_bounds(app: Windlass, ask: Ask, key: str) -> None:
    async with ask() as client:
        answer = await client.post("/queue/enqueue", json=JOB, headers=[(b"Idempotency-Key", key.encode("latin-1"))])
        twice = await client.post(
            "/queue/enqueue", json=JOB, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
        )
        longest = await client.post("/queue/enqueue", json=JOB, headers={"Idempotency-Key": "x" * 255})
    assert (answer.status_code, twice.status_code, longest.status_code) == (400, 400, 201)
    assert "255 visible ASCII" in answer.json()["detail"]


async def test_an_order_is_carried_out_once(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        job = (await client.post("/queue/enqueue", json=JOB)).json()
        path = f"/queue/{job['id']}"
        first = await post(client, f"{path}/cancel", {"reason": "not needed"})
        await client.post(f"{path}/retry")
        again = await post(client, f"{path}/cancel", {"reason": "not needed"})
        history = [entry.happened for entry in await app.jobs.history(job["id"])]
        signal = {"Idempotency-Key": "signal"}
        signals = [await post(client, f"{path}/signal", {"name": "approved"}, **signal) for _ in range(2)]
    assert first.content == again.content
    assert history == [Happened.ENQUEUED, Happened.CANCELLED, Happened.RETRIED]
    assert [one.status_code for one in signals] == [200, 200]


async def test_who_is_not_let_in_uses_up_no_key(app: Windlass, ask: Ask) -> None:
    async with ask(None) as nobody, ask(scopes=("read",)) as reader:
        assert (await post(nobody)).status_code == 401
        assert (await post(reader)).status_code == 403
        assert (await post(reader)).status_code == 403


async def test_secrets_are_not_kept(app: Windlass, ask: Ask) -> None:
    async with ask(scopes=("admin",)) as admin:
        body = {"name": "n", "owner": "o", "scopes": ["read"]}
        answer = await post(admin, "/keys", body)
        assert (answer.status_code, answer.json()["type"]) == (400, "urn:windlass:problem:not-repeatable")
        assert (await admin.post("/keys", json=body)).status_code == 201


async def test_every_post_is_read_strictly_and_all_but_those_with_secrets_may_be_repeated(app: Windlass) -> None:
    every = [one for room in ROOMS for one in room.router.routes if isinstance(one, APIRoute)]
    routes = [one for one in every if (one.methods or set()) - {"GET", "DELETE"}]
    assert routes
    assert [one.path for one in routes if not isinstance(one, Route)] == []
    assert [one.path for one in routes if "POST" in (one.methods or ()) and not isinstance(one, Repeatable)] == [
        "/keys"
    ]
    paths = app.asgi().openapi()["paths"]
    spoken = [one["name"] for one in paths["/api/v1/queue/enqueue"]["post"]["parameters"]]
    assert spoken == ["Idempotency-Key"]


async def test_an_attempt_gives_the_same_ids_again(app: Windlass) -> None:
    room = app.requests
    first = await room.begin("k", b"body", by=("ann",))
    assert isinstance(first, Attempt)
    await first.release()
    second = await room.begin("k", b"body", by=("ann",))
    assert isinstance(second, Attempt)
    assert first.ids(3) == second.ids(3)
    assert len(set(first.ids(1000))) == 1000
    assert not await first.finish("late")
    assert await second.finish("{}")


async def test_a_large_answer_is_the_same_again(app: Windlass, ask: Ask) -> None:
    wrong = {"type": "mail.send", **{f"{n}{'x' * 180}": 1 for n in range(5)}}  # each of them is named in its refusal
    many = {"jobs": [JOB, *[wrong] * 950]}
    async with ask() as client:
        first = await post(client, "/queue/enqueue/many", many)
        again = await post(client, "/queue/enqueue/many", many)
    assert (first.status_code, first.json()["created"], len(first.content) > LARGEST_ANSWER) == (200, 1, True)
    assert (again.status_code, again.content, again.headers["idempotent-replayed"]) == (200, first.content, "true")
    assert await jobs(app) == 1


def test_of_an_answer_that_is_too_large_it_is_kept_that_it_was_given() -> None:
    noise = random.Random(17).randbytes(LARGEST_ANSWER).hex()
    answer = Response(noise, 201, {"Location": "/api/v1/queue/x"})
    text = kept(answer)
    assert len(text) < 1000
    with pytest.raises(Refused) as refused:
        replayed(text)
    assert refused.value.kind.slug == "answer-too-large"
    assert refused.value.facts == {"answered": 201, "location": "/api/v1/queue/x"}
