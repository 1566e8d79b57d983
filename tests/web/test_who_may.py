"""Who may: closed by default, keys with scopes and limits, and each sees only their own."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import HTTPConnection

from tests.web.conftest import Ask
from tests.web.test_jobs import made
from windlass import Windlass
from windlass.stores.contract import Scope
from windlass.web.callers import Caller

NEEDS = {
    ("POST", "/queue/enqueue"): "enqueue",
    ("POST", "/queue/enqueue/many"): "enqueue",
    ("GET", "/queue"): "read",
    ("GET", "/queue/export"): "read",
    ("GET", "/queue/{id}"): "read",
    ("GET", "/queue/{id}/history"): "read",
    ("GET", "/queue/{id}/explain"): "read",
    ("GET", "/queue/{id}/parts/{part}"): "read",
    ("GET", "/queue/{id}/events"): "read",
    ("GET", "/live"): "read",
    ("POST", "/queue/{id}/retry"): "operate",
    ("POST", "/queue/{id}/cancel"): "operate",
    ("POST", "/queue/{id}/signal"): "operate",
    ("POST", "/queue/{id}/replay"): "operate",
    ("DELETE", "/queue/{id}"): "operate",
    ("POST", "/queue/bulk"): "operate",
    ("GET", "/queue/dead-letter"): "read",
    ("POST", "/queue/dead-letter/replay"): "operate",
    ("GET", "/queue/stats"): "read",
    ("GET", "/queue/stats/charts"): "read",
    ("GET", "/queues"): "read",
    ("POST", "/queues/{name}/pause"): "operate",
    ("POST", "/queues/{name}/resume"): "operate",
    ("PUT", "/queues/{name}/max-depth"): "operate",
    ("GET", "/queue-stats"): "read",
    ("GET", "/workers"): "read",
    ("POST", "/workers/forget"): "operate",
    ("GET", "/schedules"): "read",
    ("GET", "/schedules/{name}"): "read",
    ("GET", "/schedules/{name}/ticks"): "read",
    ("PUT", "/schedules/{name}"): "operate",
    ("DELETE", "/schedules/{name}"): "operate",
    ("POST", "/schedules/{name}/pause"): "operate",
    ("POST", "/schedules/{name}/resume"): "operate",
    ("POST", "/schedules/{name}/run"): "operate",
    ("GET", "/types"): "read",
    ("GET", "/types/{type}"): "read",
    ("GET", "/audit"): "admin",
    ("GET", "/audit/export"): "admin",
    ("GET", "/health"): "admin",
    ("GET", "/keys"): "admin",
    ("POST", "/keys"): "admin",
    ("DELETE", "/keys/{key_id}"): "admin",
}
"""what every route needs: a new one has to be thought about"""
BODIES: dict[str, Any] = {
    "/queue/enqueue": {"type": "mail.send", "payload": {"to": "x"}},
    "/queue/{id}/signal": {"name": "s"},
    "/queue/bulk": {"action": "cancel", "filter": {"type": "x"}},
    "/queue/dead-letter/replay": {"type": "x"},
    "/queues/{name}/max-depth": {"maxDepth": 5},
    "/schedules/{name}": {"type": "fail", "every": 60},
    "/keys": {"name": "nightly", "owner": "ann", "scopes": ["read"]},
}
OPEN = {("GET", "/healthz"), ("GET", "/readyz")}
CLOSED = {("GET", "/openapi.json")}
"""besides, without the prefix, and for a key of any scope"""


def routes(web: FastAPI) -> set[tuple[str, str]]:
    paths: dict[str, dict[str, object]] = web.openapi()["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def test_every_route_is_known(app: Windlass) -> None:
    known = {(method, f"/api/v1{path}".replace("{id}", "{job_id}")) for method, path in NEEDS}
    assert routes(app.asgi()) == known | OPEN | CLOSED


async def asked(client: httpx.AsyncClient, method: str, path: str) -> httpx.Response:
    place = path.replace("{id}", "01a1eef7-f35e-7000-8009-6eb526efee66").replace("{name}", "mail")
    place = place.replace("{part}", "payload")
    place = place.replace("/live", "/live?limit=0")  # a view without end is not waited for: only who may is asked here
    body = None if method == "GET" else BODIES.get(path)
    return await client.request(method, place.replace("{type}", "mail.send").replace("{key_id}", "x"), json=body)


@pytest.mark.parametrize(("method", "path"), NEEDS, ids=" ".join)
async def test_nobody_is_let_in_without_a_key(ask: Ask, method: str, path: str) -> None:
    async with ask(None) as client:
        answer = await asked(client, method, path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(("method", "path"), NEEDS, ids=" ".join)
async def test_a_key_needs_the_scope_of_what_it_asks(ask: Ask, method: str, path: str) -> None:
    needed = NEEDS[method, path]
    others = tuple(scope for scope in ("enqueue", "read", "operate") if scope != needed)  # all of it but what is needed
    async with ask("*", others) as without, ask("*", (needed,)) as with_it, ask("*", ("admin",)) as admin:
        assert (await asked(without, method, path)).status_code == 403
        assert (await asked(with_it, method, path)).status_code not in (401, 403)
        assert (await asked(admin, method, path)).status_code not in (401, 403)


@pytest.mark.parametrize(
    "given", ["Bearer", "Bearer wl_1_2", "Basic abc", "bearer " + "x" * 16_000, "Bearer wl_", "wl_x_y", "Bearer \xff"]
)
async def test_what_is_no_key_lets_nobody_in(ask: Ask, given: str) -> None:
    async with ask(None) as client:
        answer = await client.get("/queue", headers=[(b"authorization", given.encode("latin-1"))])
    assert answer.status_code == 401


async def test_a_limited_key_enqueues_nothing_else(ask: Ask, app: Windlass) -> None:
    async with ask(types=["mail.*"], queues=["mail"]) as client:
        await made(client)
        elsewhere = await client.post(
            "/queue/enqueue", json={"type": "mail.send", "payload": {"to": "x"}, "queue": "default"}
        )
        other = await client.post("/queue/enqueue", json={"type": "fail"})
    assert (elsewhere.status_code, other.status_code) == (403, 403)
    assert (await app.jobs.count()).n == 1


LIMITED = sorted(route for route, scope in NEEDS.items() if scope == "operate" and "{" in route[1])


@pytest.mark.parametrize("route", LIMITED, ids=" ".join)
async def test_a_limited_key_operates_on_nothing_else(ask: Ask, app: Windlass, route: tuple[str, str]) -> None:
    """It sees all that is its owner's; what it may do ends at its limits, in single orders as in those for many."""
    method, path = route
    bodies: dict[tuple[str, str], Any] = {
        ("POST", "/queue/{id}/signal"): {"name": "s"},
        ("PUT", "/queues/{name}/max-depth"): {"maxDepth": 1},
        ("PUT", "/schedules/{name}"): {"type": "mail.send", "every": 60, "payload": {"to": "x"}},
    }
    job = (await app.enqueue("fail", delay=3600)).id
    if path.endswith("{id}/replay"):  # of what has ended alone
        await app.jobs.cancel(job)
    place = path.replace("{id}", job).replace("{name}", "other")
    async with ask("*", types=["mail.*"], queues=["mail"]) as limited, ask("*") as free:
        await free.put("/schedules/other", json={"type": "fail", "every": 60})
        refused = await limited.request(method, place, json=bodies.get(route))
        seen = await limited.get(f"/queue/{job}")
        done = await free.request(method, place, json=bodies.get(route))
    assert (refused.status_code, seen.status_code) == (403, 200)
    assert done.status_code < 300, done.text


async def test_only_administrators_name_another_user(ask: Ask) -> None:
    body = {"type": "mail.send", "payload": {"to": "x"}, "userId": "bob"}
    async with ask() as client, ask("root", ("admin",)) as admin:
        refused = await client.post("/queue/enqueue", json=body)
        named = await admin.post("/queue/enqueue", json=body)
    assert (refused.status_code, named.json()["userId"]) == (422, "bob")


async def test_who_operates_for_all_names_no_user_either(ask: Ask) -> None:
    body = {"type": "mail.send", "payload": {"to": "x"}, "userId": "bob"}
    rule = {"type": "fail", "every": 60}
    async with ask("*") as service, ask("root", ("admin",)) as admin:
        single = await service.post("/queue/enqueue", json=body)
        many = await service.post("/queue/enqueue/many", json={"jobs": [body]})
        put = await service.put("/schedules/s", json={**rule, "userId": "bob"})
        unnamed = await service.post("/queue/enqueue", json={**body, "userId": None})
        assert (await admin.put("/schedules/s", json={**rule, "userId": "bob"})).status_code == 201
        kept = await service.put("/schedules/s", json={**rule, "every": 61, "userId": "bob"})
        other = await service.put("/schedules/s", json={**rule, "userId": "eve"})
    assert [one.status_code for one in (single, put, unnamed, kept, other)] == [422, 422, 201, 200, 422]
    assert (many.json()["refused"], unnamed.json()["userId"], kept.json()["options"]["userId"]) == (1, None, "bob")


async def test_a_limited_administrator_neither_makes_nor_revokes_keys(ask: Ask, app: Windlass) -> None:
    """It could give itself what it has not."""
    async with ask("*", ("admin",), queues=["mail"]) as limited, ask("*", ("admin",), types=["mail.*"]) as other:
        listed = (await limited.get("/keys")).json()["items"]
        for one in (limited, other):
            made_ = await one.post("/keys", json={"name": "n", "owner": "*", "scopes": ["admin"]})
            gone = await one.delete(f"/keys/{listed[0]['id']}")
            assert (made_.status_code, gone.status_code) == (403, 403)
    assert [key.revoked_at for key in await app.keys.list()] == [None, None]


def neutral(answer: httpx.Response) -> tuple[int, str]:
    text = answer.text.replace(answer.headers.get("x-request-id", "-"), "ID")
    return answer.status_code, text


def questions(*ids: str) -> list[tuple[str, str]]:
    """All that can be asked of these jobs, and of all jobs."""
    single = [(method, path.replace("{id}", id_)) for id_ in ids for method, path in NEEDS if "{id}" in path]
    pages = [("GET", f"/queue?{query}={id_}") for id_ in ids for query in ("parentId", "cursor")]
    queries = (
        "",
        "correlationId=c",
        "entityName=order&entityId=1",
        "status=failed",
        "userId=bob",
        "uniqueKey=bob/x",
    )
    whole = [("GET", f"/queue?{query}") for query in queries]
    others = [
        ("GET", "/queue/dead-letter"),
        ("POST", "/queue/bulk"),
        ("POST", "/queue/dead-letter/replay"),
        ("GET", "/types"),
    ]
    return [*single, *pages, *whole, *others]


async def test_the_jobs_of_others_change_no_answer(app: Windlass, ask: Ask) -> None:
    """What ann is told with bob's jobs there, and without them, is the same, byte for byte."""
    bodies: dict[str, Any] = {"signal": {"name": "s"}, "replay": {"type": "fail", "dryRun": True}}
    bodies["bulk"] = {"action": "delete", "everything": True, "dryRun": True}

    async def answers(client: httpx.AsyncClient) -> list[tuple[int, str]]:
        bodied = [(method, path, bodies.get(path.rpartition("/")[2])) for method, path in asked_for]
        return [neutral(await client.request(method, path, json=body)) for method, path, body in bodied]

    async with ask() as ann, ask("bob") as bob:
        mine = await made(ann, uniqueKey="mine", correlationId="c", entityName="order", entityId="1")
        theirs = await made(bob, uniqueKey="x", correlationId="c", entityName="order", entityId="1")
        failing = (await bob.post("/queue/enqueue", json={"type": "fail"})).json()
        await app.worker(drain=True, exclude=["mail.send"]).run()
        asked_for = questions(theirs["id"], failing["id"])
        beside = await answers(ann)
        await app.jobs.delete(theirs["id"], failing["id"])
        assert beside == await answers(ann)
        assert (await made(ann, uniqueKey="x"))["uniqueKey"] == "ann/x"
    assert mine["id"] in str(beside)


async def test_an_applications_own_sign_in_takes_the_place_of_keys(app: Windlass) -> None:
    async def by_cookie(request: HTTPConnection, _: object) -> Caller | None:
        user = request.cookies.get("user")
        return None if user is None else Caller(f"user:{user}", user, frozenset({Scope.READ, Scope.ENQUEUE}))

    outer = FastAPI()
    outer.mount("/jobs", app.asgi(authenticate=by_cookie))
    transport = httpx.ASGITransport(outer)
    page = {"Sec-Fetch-Site": "same-origin"}  # as a browser says of the shop's own pages
    async with httpx.AsyncClient(
        transport=transport, base_url="http://shop", cookies={"user": "ann"}, headers=page
    ) as client:
        answer = await client.post("/jobs/api/v1/queue/enqueue", json={"type": "mail.send", "payload": {"to": "x"}})
        assert answer.status_code == 201
        assert answer.headers["location"] == f"/jobs/api/v1/queue/{answer.json()['id']}"
        assert (await client.get(answer.headers["location"])).json()["userId"] == "ann"
        client.cookies.clear()
        assert (await client.get(answer.headers["location"])).status_code == 401
