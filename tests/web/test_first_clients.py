"""What clients were written against before windlass was: their paths, words and answers, as they stand there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.web.conftest import Ask
from windlass import Windlass

Answer = Any

PATHS: list[tuple[str, str, int, Callable[[Answer], object], object]] = [
    # "Check status": request(app).get(`/queue/${jobId}`), expect(status.body.status).toBe('succeeded')
    ("GET", "/queue/{done}", 200, lambda body: body["status"], "succeeded"),
    # "Job status": curl http://localhost:3000/api/v1/queue/{jobId}
    ("GET", "/api/v1/queue/{done}", 200, lambda body: body["_id"] == body["id"], True),
    # "Failed jobs": curl http://localhost:3000/api/v1/queue?status=failed
    ("GET", "/api/v1/queue?status=failed", 200, lambda body: [one["type"] for one in body["items"]], ["test.broken"]),
    # getJobs(status?, type?, limit?)
    (
        "GET",
        "/api/v1/queue?status=succeeded&type=test.job&limit=1",
        200,
        lambda body: [one["attempts"] for one in body["items"]],
        [1],
    ),
    # "Dead letter queue": curl http://localhost:3000/api/v1/queue/dead-letter
    ("GET", "/api/v1/queue/dead-letter", 200, lambda body: [one["status"] for one in body["items"]], ["failed"]),
    # @Get('queue-stats'): bull: { waiting, active, completed, failed }
    (
        "GET",
        "/api/v1/queue-stats",
        200,
        lambda body: [body["bull"][name] for name in ("waiting", "active", "completed", "failed")],
        [0, 0, 1, 1],
    ),
    # database: { 'resume-processing': { completed: { count, avgDurationMs }, … } }
    (
        "GET",
        "/queue-stats",
        200,
        lambda body: sorted(body["database"]["default"]["completed"]),
        ["avgDurationMs", "count"],
    ),
    # "Total jobs by status", "average processing time"
    ("GET", "/api/v1/queue/stats", 200, lambda body: body["queues"]["default"]["succeeded"]["count"], 1),
    # "Failed jobs in last hour"
    ("GET", "/api/v1/queue/stats", 200, lambda body: body["failedLastHour"], 1),
    # by job type and status of the last 24 hours: how many, and how long on average
    (
        "GET",
        "/api/v1/queue/stats?since=86400",
        200,
        lambda body: [(one["type"], one["status"], one["count"]) for one in body["ended"]],
        [("test.broken", "failed", 1), ("test.job", "succeeded", 1)],
    ),
    # "Find all queue operations for a specific resume"; correlation ids
    ("GET", "/api/v1/queue?entityName=resume&entityId=7&correlationId=c", 200, lambda body: len(body["items"]), 1),
    # "Resubmitting identical job → 409 Conflict"
    ("POST", "/queue/enqueue", 409, lambda body: bool(body["existing"]), True),
    # an operator has a failed one done again
    ("POST", "/api/v1/queue/{broken}/retry", 200, lambda body: body["status"], "queued"),
]


async def first(client: httpx.AsyncClient, app: Windlass) -> tuple[str, str]:
    """`request(app).post('/queue/enqueue').send({type: 'test.job', payload: {data: 'test'}})`, and one that fails."""

    @app.job(name="test.job", idempotent=True)
    async def job(data: str) -> str:
        return data

    @app.job(name="test.broken", retry=1)
    async def broken() -> None:
        raise ValueError("it broke")

    body = {"type": "test.job", "payload": {"data": "test"}, "maxAttempts": 3, "priority": 100}
    more = {"entityName": "resume", "entityId": "7", "correlationId": "c", "metadata": {"a": 1}}
    done = (await client.post("/queue/enqueue", json={**body, **more})).json()
    failed = (await client.post("/queue/enqueue", json={"type": "test.broken"})).json()
    assert {"type", "status", "payload", "attempts", "maxAttempts", "createdAt", "updatedAt"} <= done.keys()
    await app.worker(drain=True).run()
    return done["_id"], failed["_id"]


@pytest.mark.parametrize(
    ("method", "path", "status", "read", "expected"),
    PATHS,
    ids=[f"{number}-{one[1]}" for number, one in enumerate(PATHS)],
)
async def test_a_path_answers_as_its_clients_expect(
    app: Windlass, ask: Ask, method: str, path: str, status: int, read: Callable[[Answer], object], expected: object
) -> None:
    async with ask("*") as client:
        client.base_url = httpx.URL("http://windlass")
        done, broken = await first(client, app)
        body = {"type": "test.job", "payload": {"data": "test"}} if path.endswith("enqueue") else None
        answer = await client.request(method, path.format(done=done, broken=broken), json=body)
    assert answer.status_code == status, answer.text
    assert read(answer.json()) == expected


async def test_paths_at_the_root_are_as_closed_as_the_others(ask: Ask) -> None:
    async with ask(None) as nobody, ask(scopes=("read",)) as reader:
        for client, expected in ((nobody, 401), (reader, 403)):
            client.base_url = httpx.URL("http://windlass")
            assert (await client.post("/queue/enqueue", json={"type": "mail.send"})).status_code == expected
            assert (await client.post("/queue/bulk", json={"action": "delete"})).status_code == expected
        assert (await nobody.get("/queue")).status_code == 401
