"""The audit trail: every operator's action leaves an entry, and no entry holds what is nobody's business."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import Ask
from tests.web.test_jobs import made
from tests.web.test_who_may import NEEDS
from windlass import Windlass

CANARY = "hush-7c1e"
OPERATING = sorted(one for one, scope in NEEDS.items() if scope in ("operate", "admin") and one[0] != "GET")
LEAVES: dict[tuple[str, str], tuple[str, dict[str, Any] | None]] = {
    ("POST", "/queue/{id}/retry"): ("job.retry", {"reason": "once more"}),
    ("POST", "/queue/{id}/replay"): ("job.replay", {"payload": {"secret": CANARY}}),
    ("POST", "/queue/{id}/cancel"): ("job.cancel", None),
    ("POST", "/queue/{id}/signal"): ("job.signal", {"name": "go", "value": CANARY}),
    ("DELETE", "/queue/{id}"): ("job.delete", None),
    ("POST", "/queue/bulk"): ("bulk.cancel", {"action": "cancel", "filter": {"type": "fail"}}),
    ("POST", "/queue/dead-letter/replay"): ("bulk.replay", {"type": "fail"}),
    ("POST", "/queues/{name}/pause"): ("queue.pause", None),
    ("POST", "/queues/{name}/resume"): ("queue.resume", None),
    ("PUT", "/queues/{name}/max-depth"): ("queue.limit", {"maxDepth": 5}),
    ("POST", "/workers/forget"): ("workers.forget", None),
    ("PUT", "/schedules/{name}"): ("schedule.put", {"type": "fail", "every": 60, "payload": {"secret": CANARY}}),
    ("DELETE", "/schedules/{name}"): ("schedule.remove", None),
    ("POST", "/schedules/{name}/pause"): ("schedule.pause", None),
    ("POST", "/schedules/{name}/resume"): ("schedule.resume", None),
    ("POST", "/schedules/{name}/run"): ("schedule.run", None),
    ("POST", "/keys"): ("key.create", {"name": "n", "owner": "ann", "scopes": ["read"], "attributes": {"x": CANARY}}),
    ("DELETE", "/keys/{key_id}"): ("key.revoke", None),
}
"""what every route that changes something writes down, and a body that it takes"""


def test_every_operating_route_is_known() -> None:
    assert sorted(LEAVES) == OPERATING


@pytest.mark.parametrize("route", OPERATING, ids=" ".join)
async def test_every_action_of_an_operator_leaves_an_entry(app: Windlass, ask: Ask, route: tuple[str, str]) -> None:
    method, path = route
    action, body = LEAVES[route]
    async with ask("*", ("admin",)) as root:
        job = await root.post("/queue/enqueue", json={"type": "fail", "payload": {"secret": CANARY}, "delay": 3600})
        await root.put("/schedules/mail", json={"type": "fail", "every": 3600, "payload": {"secret": CANARY}})
        key = (await root.get("/keys")).json()["items"][0]["id"]
        if action == "key.revoke":
            key = (await app.keys.create("another", owner="ann", scopes=["read"])).key.id
        if action == "job.replay":  # of what has ended alone
            await root.post(f"/queue/{job.json()['id']}/cancel")
        place = path.replace("{id}", job.json()["id"]).replace("{name}", "mail").replace("{key_id}", key)
        answer = await root.request(method, place, json=body)
        assert answer.status_code < 300, answer.text
        trail = (await root.get("/audit", params={"action": action})).json()["items"]
    [entry] = [one for one in trail if one["details"]["requestId"] == answer.headers["x-request-id"]]
    assert entry["actor"].startswith("key:")
    assert entry["origin"] == "127.0.0.1"
    assert entry["object"].partition(":")[0] in ("job", "queue", "workers", "schedule", "key", "operation")
    assert CANARY not in json.dumps(trail)


async def test_an_entry_says_what_was_before_and_after(ask: Ask) -> None:
    async with ask("*", ("admin",)) as root:
        await root.put("/queues/mail/max-depth", json={"maxDepth": 7})
        await root.post("/queues/mail/pause")
        await root.put("/schedules/s", json={"type": "fail", "every": 60})
        await root.put("/schedules/s", json={"type": "fail", "cron": "0 8 * * *", "tz": "Europe/Paris"})
        job = (await root.post("/queue/enqueue", json={"type": "fail", "delay": 3600})).json()
        await root.post(f"/queue/{job['id']}/retry", json={"reason": "now"})
        newest = {one["action"]: one for one in reversed((await root.get("/audit")).json()["items"])}
    paused, put, retried = (newest[name]["details"] for name in ("queue.pause", "schedule.put", "job.retry"))
    assert paused["before"] == {"pausedAt": None, "maxDepth": 7}
    assert paused["after"]["pausedAt"]
    assert put["before"]["expression"], put["after"]["expression"] == ("every 1m", "0 8 * * *")
    assert (retried["before"]["status"], retried["after"]["status"], retried["reason"]) == (
        "scheduled",
        "queued",
        "now",
    )
    assert newest["job.retry"]["object"] == f"job:{job['id']}"


async def test_what_is_refused_leaves_none(ask: Ask) -> None:
    async with ask() as ann, ask("*", ("admin",)) as root:
        job = await made(ann)
        assert (await ann.post("/queues/mail/pause")).status_code == 403
        assert (await root.post("/queue/01a1eef7-f35e-7000-8009-6eb526efee66/retry")).status_code == 404
        assert (await ann.post(f"/queue/{job['id']}/retry")).status_code == 409
        assert (await root.get("/audit")).json()["items"] == []


async def test_the_trail_goes_by_pages_and_filters(ask: Ask) -> None:
    async with ask("*", ("admin",)) as root:
        for name in ("a", "b", "c"):
            await root.post(f"/queues/{name}/pause")
        first = (await root.get("/audit", params={"limit": 2})).json()
        rest = (await root.get("/audit", params={"limit": 2, "cursor": first["nextCursor"]})).json()
        one = (await root.get("/audit", params={"object": "queue:b"})).json()
        wrong = await root.get("/audit", params={"cursor": "x"})
    assert [entry["object"] for page in (first, rest) for entry in page["items"]] == ["queue:c", "queue:b", "queue:a"]
    assert [entry["object"] for entry in one["items"]] == ["queue:b"]
    assert wrong.status_code == 422


async def test_an_entry_that_cannot_be_written_is_told_whole_and_the_action_stands(
    ask: Ask, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ask("*", ("admin",)) as root:
        await root.get("/queues")
        with closing(sqlite3.connect(tmp_path / "web.db")) as other:
            other.execute("DROP TABLE windlass_audit")
        with caplog.at_level(logging.CRITICAL, "windlass.audit"):
            answer = await root.post("/queues/mail/pause")
        assert answer.status_code == 204
        assert [one["pausedAt"] is not None for one in (await root.get("/queues")).json()["items"]] == [True]
    [told] = [one.getMessage() for one in caplog.records if one.name == "windlass.audit"]
    assert '"action": "queue.pause"' in told
    assert "queue:mail" in told
