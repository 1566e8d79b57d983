"""The main path over HTTP, the same on every store."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.contract.places import Place
from tests.control.conftest import address
from tests.web.conftest import Ask, declare
from windlass import Windlass

KEY = {"Idempotency-Key": "one"}


@pytest.fixture
async def app(place: Place) -> AsyncGenerator[Windlass, None]:
    url, namespace = address(place)
    made = Windlass(url, namespace=namespace)
    declare(made)
    async with made:
        yield made
    made.close()


async def test_the_main_path(app: Windlass, ask: Ask) -> None:
    mail = {"type": "mail.send", "payload": {"to": "ada €", "copies": 9_007_199_254_740_993}, "tags": ["t"]}
    async with ask() as client, ask("bob") as other:
        job = (await client.post("/queue/enqueue", json=mail)).json()
        path = f"/queue/{job['id']}"
        first = await client.get(path)
        same = await client.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (first.json(), same.status_code) == (job, 304)

        told = (await client.post("/queue/enqueue/many", json={"jobs": [mail, {"type": 1}, mail]}, headers=KEY)).json()
        assert [one["verdict"] for one in told["items"]] == ["created", "refused", "created"]
        again = await client.post("/queue/enqueue/many", json={"jobs": [mail, {"type": 1}, mail]}, headers=KEY)
        assert again.json() == told
        assert (await client.post("/queue/enqueue", json=mail, headers=KEY)).status_code == 422

        page = (await client.get("/queue", params={"limit": 2, "tag": "t"})).json()
        rest = (await client.get("/queue", params={"limit": 2, "tag": "t", "cursor": page["nextCursor"]})).json()
        ids = [one["id"] for one in page["items"] + rest["items"]]
        assert ids == [told["items"][2]["id"], told["items"][0]["id"], job["id"]]
        assert (await other.get("/queue")).json()["items"] == []
        assert (await other.get(path)).status_code == 404

        cancelled = await client.post(f"{path}/cancel", json={"reason": "later"}, headers={"Idempotency-Key": "c"})
        retried = await client.post(f"{path}/retry")
        repeated = await client.post(f"{path}/cancel", json={"reason": "later"}, headers={"Idempotency-Key": "c"})
        assert [one.json()["status"] for one in (cancelled, retried, repeated)] == ["cancelled", "queued", "cancelled"]
        assert (await client.post(f"/queue/{ids[0]}/signal", json={"name": "s", "value": 2**60})).status_code == 200

        await app.worker(drain=True).run()
        done = (await client.get(path)).json()
        history = (await client.get(f"{path}/history")).json()["items"]
        assert (done["status"], done["result"]) == ("succeeded", "ada € 9007199254740993")
        assert [one["happened"] for one in history] == ["enqueued", "cancelled", "retried", "claimed", "succeeded"]
        assert (await client.delete(path)).status_code == 204
        assert (await client.get(path)).status_code == 404


async def test_a_process_that_is_killed_between_insert_and_answer_leaves_one_job(app: Windlass, place: Place) -> None:
    key = await app.keys.create("a test", owner="ann", scopes=["enqueue"])
    mail = {"type": "mail.send", "payload": {"to": "ada"}}
    url, namespace = address(place)
    given = [url, namespace or app.namespace, key.secret, json.dumps(mail)]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.web.dying", *given)
    assert await process.wait() == -signal.SIGKILL
    [left] = (await app.jobs.find()).jobs
    headers = {"Authorization": f"Bearer {key.secret}", "Idempotency-Key": "k"}
    transport = httpx.ASGITransport(app.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://w/api/v1", headers=headers) as client:
        again, alike = [await client.post("/queue/enqueue", json=mail) for _ in range(2)]
    assert (again.status_code, again.json()["id"]) == (201, left.id)
    assert alike.content == again.content
    assert (await app.jobs.count()).n == 1


async def test_a_hundred_at_once_wait_for_each_other_and_are_all_answered(app: Windlass, ask: Ask) -> None:
    """Each store has a few connections, whoever asks: the rest wait for one within the time that they have."""
    async with ask() as client:
        made = await asyncio.gather(*(client.post("/queue/enqueue", json={"type": "fail"}) for _ in range(100)))
        paths = [f"/queue/{one.json()['id']}" for one in made]
        shown = await asyncio.gather(*(client.get(path) for path in paths), *(client.get("/queue") for _ in range(20)))
        ended = await asyncio.gather(*(client.post(f"{path}/cancel") for path in paths))
    assert [one.status_code for one in made] == [201] * 100
    assert {one.status_code for one in [*shown, *ended]} == {200}
