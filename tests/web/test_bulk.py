"""Orders for many jobs over HTTP: counted, carried out by a job of their own, and about nobody else's jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.support.apps import nothing_left
from tests.support.until import until
from tests.web.conftest import Ask, declare
from tests.web.test_jobs import ended, made
from windlass import Status, Windlass

LATER = {"delay": 3600}


async def count(app: Windlass, **search: Any) -> int:
    return (await app.jobs.count(**search)).n


async def test_an_order_is_a_job_with_progress_and_a_result(app: Windlass, ask: Ask) -> None:
    async with ask("*", ("admin",)) as root:
        ids = [(await made(root, **LATER))["id"] for _ in range(3)]
        dry = await root.post(
            "/queue/bulk", json={"action": "cancel", "filter": {"status": "scheduled"}, "dryRun": True}
        )
        assert (dry.status_code, dry.json()) == (200, {"id": None, "matched": 3, "exact": True, "dryRun": True})
        assert "location" not in dry.headers
        begun = await root.post(
            "/queue/bulk",
            json={"action": "cancel", "filter": {"status": ["scheduled"], "type": "mail.*"}, "reason": "too late"},
        )
        assert begun.json()["matched"] == 3
        job = await ended(root, begun)
        trail = (await root.get("/audit", params={"object": f"operation:{job['id']}"})).json()["items"]
        history = (await root.get(f"/queue/{ids[0]}/history")).json()["items"]
    assert (job["id"], job["type"], job["queue"], job["status"]) == (
        begun.json()["id"],
        "windlass.bulk",
        "windlass",
        "succeeded",
    )
    assert (job["progress"]["done"], job["progress"]["of"]) == (3, 3)
    told = {"deed": "cancel", "matched": 3, "done": 3, "requested": 0, "refused": 0, "duplicate": 0, "missing": 0}
    assert job["result"] == told
    assert [entry["action"] for entry in trail] == ["bulk.cancel.ended", "bulk.cancel"]
    assert trail[1]["details"]["filter"] == {"status": ["scheduled"], "type": "mail.*", "everything": False}
    assert (trail[0]["actor"], trail[0]["details"]["done"]) == (trail[1]["actor"], 3)
    assert trail[0]["details"]["requestId"] == begun.headers["x-request-id"]
    assert (history[-1]["happened"], history[-1]["note"]) == ("cancelled", "too late")
    assert await count(app, status="cancelled") == 3


@pytest.mark.parametrize("action", ["retry", "cancel", "delete"])
async def test_it_is_about_nobody_elses_jobs(app: Windlass, ask: Ask, action: str) -> None:
    """Each item is checked by the store: even an order that names another's job leaves it alone."""
    async with ask() as ann, ask("bob") as bob:
        mine, theirs = await made(ann, **LATER), await made(bob, **LATER)
        begun = await ann.post("/queue/bulk", json={"action": action, "everything": True})
        job = await ended(ann, begun)
        assert (begun.json()["matched"], job["result"]["done"]) == (1, 1)
        assert (await bob.get(f"/queue/{theirs['id']}")).json()["status"] == "scheduled"
        assert (await bob.get(f"/queue/{job['id']}")).status_code == 404
        assert (await bob.get("/queue", params={"type": "windlass.*"})).json()["items"] == []
        assert job["userId"] == "ann"
        named = await ann.post("/queue/bulk", json={"action": action, "filter": {"userId": "bob"}})
        assert named.status_code == 422
    found = await app.jobs.count(user="ann", type="mail.send", status="scheduled")
    assert found.n == 0, mine["id"]


async def test_a_limited_key_reaches_what_it_is_good_for(app: Windlass, ask: Ask) -> None:
    async with ask("*", ("operate", "read", "enqueue")) as root, ask("*", types=["mail.*"], queues=["mail"]) as limited:
        await made(root, **LATER)
        await root.post("/queue/enqueue", json={"type": "fail", **LATER})
        begun = await limited.post("/queue/bulk", json={"action": "delete", "everything": True})
        assert (await ended(limited, begun))["result"]["done"] == 1
        assert begun.json()["exact"] is False
    assert (await count(app, type="fail"), await count(app, type="mail.send")) == (1, 0)


async def test_nobody_makes_such_a_job_by_hand(app: Windlass, ask: Ask) -> None:
    forged: dict[str, Any] = {"errand": {"deed": "delete", "search": {}, "actor": "x", "user": None}}
    async with ask("*", ("admin",)) as root, ask() as ann:
        for client in (root, ann):
            answer = await client.post("/queue/enqueue", json={"type": "windlass.bulk", "payload": forged})
            assert (answer.status_code, "windlass's own" in answer.json()["detail"]) == (403, True)
    assert await count(app) == 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"action": "cancel"}, "no filter"),
        ({"action": "cancel", "filter": {}}, "no filter"),
        ({"action": "explode", "everything": True}, "action"),
        ({"action": "cancel", "filter": {"sttus": "failed"}}, "sttus"),
        ({"action": "cancel", "filter": {"status": "lost"}}, "status"),
        ({"action": "cancel", "filter": {"type": {"$ne": ""}}}, "type"),
        ({"action": "cancel", "filter": {"limit": 5}}, "limit"),
        ({"action": "replay", "filter": {"status": "succeeded"}}, "failed"),
        ({"action": "retry", "filter": {"type": "x"}, "rate": 5}, "rate"),
        ({"action": "replay", "filter": {"type": "x"}, "rate": 0}, "rate"),
        ({"action": "cancel", "filter": {"type": "x"}, "limit": 0}, "limit"),
    ],
)
async def test_a_wrong_order_is_told_so_and_does_nothing(
    app: Windlass, ask: Ask, body: dict[str, Any], words: str
) -> None:
    async with ask() as ann:
        answer = await ann.post("/queue/bulk", json=body)
    assert (answer.status_code, words in answer.text) == (422, True), answer.text
    assert await count(app) == 0


async def test_so_many_of_one_owner_are_under_way_and_no_more(app: Windlass, ask: Ask) -> None:
    await app.queues.pause("windlass")
    body = {"action": "cancel", "filter": {"type": "mail.send"}}
    async with ask() as ann, ask("bob") as bob:
        answers = await asyncio.gather(*(ann.post("/queue/bulk", json=body) for _ in range(8)))
        assert sorted(answer.status_code for answer in answers) == [202] * 5 + [429] * 3
        full = next(answer for answer in answers if answer.status_code == 429)
        assert full.headers["retry-after"]
        assert (await bob.post("/queue/bulk", json=body)).status_code == 202
        await app.queues.resume("windlass")
        for answer in answers:
            if answer.status_code == 202:
                assert (await ended(ann, answer))["status"] == "succeeded"
        assert (await ended(ann, await ann.post("/queue/bulk", json=body)))["status"] == "succeeded"


async def test_asked_again_with_the_same_key_it_is_one_order(app: Windlass, ask: Ask) -> None:
    body, once = {"action": "cancel", "filter": {"type": "mail.send"}}, {"Idempotency-Key": "k1"}
    async with ask() as ann:
        first = await ann.post("/queue/bulk", json=body, headers=once)
        again = await ann.post("/queue/bulk", json=body, headers=once)
        await ended(ann, first)
    assert (again.status_code, again.json(), again.headers["location"]) == (
        202,
        first.json(),
        first.headers["location"],
    )
    assert await count(app, type="windlass.bulk") == 1
    one = await app.operations.begin("cancel", type="x", job_id=app.client.ids())
    same = await app.operations.begin("cancel", type="x", job_id=one.handle.id)
    assert same.handle.id == one.handle.id
    assert await count(app, type="windlass.bulk") == 2


async def test_it_can_be_cancelled_before_it_begins(app: Windlass, ask: Ask) -> None:
    await app.queues.pause("windlass")
    async with ask() as ann:
        job = await made(ann, **LATER)
        begun = await ann.post("/queue/bulk", json={"action": "delete", "everything": True})
        assert (await ann.post(f"/queue/{begun.json()['id']}/cancel")).json()["status"] == "cancelled"
        await app.queues.resume("windlass")
        assert (await ann.get(f"/queue/{job['id']}")).status_code == 200


async def test_an_application_that_is_mounted_and_never_opened_runs_them_and_leaves_nothing(tmp_path: Path) -> None:
    """Starlette gives what is mounted no lifespan: the worker comes with the order and goes when all have ended."""
    async with nothing_left():
        app = Windlass(f"sqlite:///{tmp_path / 'mounted.db'}")
        declare(app)
        outer = FastAPI()
        outer.mount("/jobs", app.asgi())
        secret = (await app.keys.create("a test", owner="*", scopes=["admin"])).secret
        transport, headers = httpx.ASGITransport(outer), {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://shop", headers=headers) as client:
            job = await client.post("/jobs/api/v1/queue/enqueue", json={"type": "fail", **LATER})
            begun = await client.post("/jobs/api/v1/queue/bulk", json={"action": "cancel", "filter": {"type": "fail"}})
            assert begun.headers["location"].startswith("/jobs/api/v1/queue/")
            assert (await ended(client, begun))["result"]["done"] == 1
            assert (await client.get(job.headers["location"])).json()["status"] == "cancelled"
        await until(lambda: "windlass-own" not in tasks(), "its worker to have gone by itself")
        await app.client.open()
        await app.client.close()
        app.close()


async def test_an_application_that_is_closed_runs_them_no_more(tmp_path: Path) -> None:
    async with nothing_left():
        app = Windlass(f"sqlite:///{tmp_path / 'closed.db'}")
        async with app:
            await app.queues.pause("windlass")  # so that it is never done
            begun = await app.operations.begin("cancel", type="x")
            app.own.need()
            await until(app.workers.list, "its worker to be there")
        assert "windlass-own" not in tasks()
        async with app:
            await app.queues.resume("windlass")
            app.own.need()
            assert (await begun.handle.result(10))["matched"] == 0
        app.close()


def tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()}


async def test_what_another_process_left_is_gone_on_with(app: Windlass, ask: Ask) -> None:
    await app.enqueue("mail.send", {"to": "x"}, delay=3600)
    begun = await app.operations.begin("cancel", type="mail.send")
    async with ask("*") as root:
        await root.get("/queue")  # any question wakes it
        assert (await begun.handle.result(10))["done"] == 1
    assert await count(app, status=Status.CANCELLED) == 1
