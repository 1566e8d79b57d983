"""What concerns more than one job: queues, schedules, workers, types, keys, checks."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.conftest import Ask
from tests.web.test_jobs import made
from windlass import Windlass


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(app: Windlass, ask: Ask) -> None:
    async with ask("*") as root:
        job = await made(root)
        assert (await root.post("/queues/mail/pause")).status_code == 204
        await app.worker(drain=True).run()
        assert (await root.get(f"/queue/{job['id']}")).json()["status"] == "queued"
        assert (await root.post("/queues/mail/resume")).status_code == 204
        await app.worker(drain=True).run()
        assert (await root.get(f"/queue/{job['id']}")).json()["status"] == "succeeded"


@pytest.mark.parametrize("name", ["a/b", "a/pause", "50% off?", "a b&c", "#1", "a%2Fb"])
async def test_a_queue_may_be_called_as_its_owner_likes(app: Windlass, ask: Ask, name: str) -> None:
    await app.enqueue("mail.send", {"to": "x"}, queue=name)
    path = f"/queues/{quote(name, safe='')}"
    async with ask("*") as root:
        assert (await root.post(f"{path}/pause")).status_code == 204
        [queue] = (await root.get("/queues")).json()["items"]
        assert queue["name"] == name
        assert queue["pausedAt"]
        assert (await root.put(f"{path}/max-depth", json={"maxDepth": 7})).status_code == 204
        assert (await root.post(f"{path}/resume")).status_code == 204
        [queue] = (await root.get("/queues")).json()["items"]
        assert (queue["pausedAt"], queue["maxDepth"]) == (None, 7)
        listed = (await root.get("http://windlass/dashboard/queues")).text
        [href] = re.findall(r'class="strong" href="([^"]*)"', listed)
        page = await root.get(f"http://windlass{html.unescape(href)}")
        assert page.status_code == 200
        assert f"<h1>{html.escape(name)}" in page.text or html.escape(name) in page.text


@pytest.mark.parametrize("name", ["a/b", "a/ticks", "run"])
async def test_a_schedule_may_be_called_as_its_owner_likes(ask: Ask, name: str) -> None:
    rule = {"type": "mail.send", "payload": {"to": "x"}, "cron": "0 8 * * *"}
    path = f"/schedules/{quote(name, safe='')}"
    async with ask("*") as root:
        assert (await root.put(path, json=rule)).status_code == 201
        assert (await root.get("/schedules")).json()["items"][0]["name"] == name
        for deed, status in (("pause", 200), ("resume", 200), ("run", 201)):
            assert (await root.post(f"{path}/{deed}")).status_code == status
        assert (await root.get(f"{path}/ticks")).json()["items"] == []
        assert (await root.delete(path)).status_code == 204


async def test_a_queue_has_a_depth_that_can_be_lifted(ask: Ask) -> None:
    body = {"type": "mail.send", "payload": {"to": "x"}}
    async with ask("*") as root:
        await made(root)
        assert (await root.put("/queues/mail/max-depth", json={"maxDepth": 1})).status_code == 204
        full = await root.post("/queue/enqueue", json=body)
        assert (full.status_code, full.json()["queue"]) == (429, "mail")
        assert [one["maxDepth"] for one in (await root.get("/queues")).json()["items"]] == [1]
        await root.put("/queues/mail/max-depth", json={"maxDepth": None})
        assert (await root.post("/queue/enqueue", json=body)).status_code == 201
        for wrong in ({}, {"maxDepth": -1}, {"maxDepth": "many"}, {"maxDepth": 2**40}):
            assert (await root.put("/queues/mail/max-depth", json=wrong)).status_code == 422


async def test_a_schedule_is_put_changed_run_paused_and_removed(ask: Ask) -> None:
    rule = {"type": "mail.send", "payload": {"to": "x"}, "cron": "0 8 * * *", "tz": "Europe/Paris", "priority": "high"}
    async with ask("*", ("admin",)) as root:
        new = await root.put("/schedules/acme", json={**rule, "overlap": "queue"})
        assert (new.status_code, new.json()["queue"], new.json()["overlap"]) == (201, "mail", "queue")
        more = {"metadata": {"a": 1}, "tags": ["x"], "timeout": 1.5, "userId": "ann"}
        told = (await root.put("/schedules/acme", json={**rule, **more})).json()
        assert told["payload"] == {"to": "x"}
        assert told["options"].items() >= {**more, "priority": 50, "timeout": 1.5}.items()
        changed = await root.put("/schedules/acme", json={**rule, "cron": "30 9 * * *"})
        assert (changed.status_code, changed.json()["expression"]) == (200, "30 9 * * *")
        ran = await root.post("/schedules/acme/run")
        assert (ran.status_code, ran.json()["schedule"], ran.json()["priority"]) == (201, "acme", 50)
        paused = (await root.post("/schedules/acme/pause")).json()
        assert paused["pausedAt"]
        assert paused["upcoming"] == []
        resumed = (await root.post("/schedules/acme/resume")).json()
        assert len(resumed["upcoming"]) == 3
        assert (await root.get("/schedules/acme/ticks")).json() == {"items": []}
        assert [one["name"] for one in (await root.get("/schedules")).json()["items"]] == ["acme"]
        assert (await root.delete("/schedules/acme")).status_code == 204
        gone = await root.delete("/schedules/acme")
    assert (gone.status_code, gone.json()["type"]) == (404, "urn:windlass:problem:schedule-not-found")


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"cron": "61 * * * *"}, 422, "61"),
        ({"cron": "* * * * * *"}, 422, "cron"),
        ({"cron": "0 0 31 2 *"}, 422, "cron"),
        ({"tz": "Mars/Olympus"}, 422, "Mars/Olympus"),
        ({"type": "mial.send"}, 404, "mial.send"),
        ({"type": "windlass.bulk"}, 403, "windlass's own"),
        ({"every": 60}, 422, "either"),
        ({"cron": None}, 422, "either"),
        ({"cron": None, "every": 0.5, "tz": None}, 422, "every: Input should be a valid integer"),
        ({"cron": None, "every": 60}, 422, "zone"),
        ({"overlap": "maybe"}, 422, "overlap"),
        ({"payload": {"to": [1]}}, 422, "to"),
        ({"delay": 5}, 422, "delay"),
    ],
)
async def test_a_wrong_schedule_is_told_so(ask: Ask, change: dict[str, Any], status: int, words: str) -> None:
    rule = {"type": "mail.send", "payload": {"to": "x"}, "cron": "0 8 * * *", "tz": "Europe/Paris"}
    async with ask("*") as root:
        answer = await root.put("/schedules/acme", json={**rule, **change})
        assert (await root.get("/schedules")).json() == {"items": []}
    assert (answer.status_code, words in answer.text) == (status, True), answer.text


async def test_a_worker_that_is_there_is_not_forgotten(app: Windlass, ask: Ask) -> None:
    async with ask("*") as root, app.worker() as worker:
        refused = await root.post("/workers/forget", json={"ids": [worker.id]})
        assert (refused.status_code, worker.id in refused.json()["detail"]) == (422, True)
        assert (await root.post("/workers/forget")).json() == {"ids": []}
        assert [one["id"] for one in (await root.get("/workers")).json()["items"]] == [worker.id]


async def test_types_are_told_with_their_schemas_and_a_limited_key_sees_its_own(ask: Ask) -> None:
    async with ask("*") as root, ask(types=["mail.*"]) as ann:
        every = [one["type"] for one in (await root.get("/types")).json()["items"]]
        hers = [one["type"] for one in (await ann.get("/types")).json()["items"]]
        one = (await ann.get("/types/mail.send")).json()
        foreign = await ann.get("/types/fail")
    assert (every, hers) == (["fail", "mail.send"], ["mail.send"])
    assert (one["queue"], one["payloadSchema"]["required"]) == ("mail", ["to"])
    assert foreign.status_code == 404


async def test_keys_are_made_listed_and_revoked(app: Windlass, ask: Ask) -> None:
    async with ask("*", ("admin",)) as root:
        new = await root.post(
            "/keys",
            json={
                "name": "n",
                "owner": "ann",
                "scopes": ["read"],
                "types": ["mail.*"],
                "attributes": {"premium": True},
            },
        )
        made_ = new.json()
        assert made_["attributes"] == {"premium": True}
        assert new.status_code == 201
        key = await app.keys.find(made_["secret"])
        assert key is not None
        assert (key.owner, key.id) == ("ann", made_["id"])
        listed = await root.get("/keys")
        assert made_["secret"] not in listed.text
        assert made_["id"] in listed.text
        assert (await root.delete(f"/keys/{made_['id']}")).status_code == 204
        assert await app.keys.find(made_["secret"]) is None
        assert (await root.delete("/keys/nobodys")).status_code == 404
        wrong = await root.post("/keys", json={"name": "n", "owner": "ann", "scopes": ["everything"]})
    assert (wrong.status_code, "everything" in wrong.json()["detail"]) == (422, True)


async def test_what_is_wrong_is_told_to_administrators(app: Windlass, ask: Ask) -> None:
    async with ask("*", ("admin",)) as root:
        await made(root)
        found = (await root.get("/health")).json()
    assert found["level"] == "WARN"
    assert {"store reachable", "schema", "workers"} <= {one["name"] for one in found["checks"]}


async def test_figures_are_by_queue_type_and_status(app: Windlass, ask: Ask) -> None:
    async with ask("*") as root:
        await made(root)
        await made(root)
        await root.post("/queue/enqueue", json={"type": "fail"})
        await app.worker(drain=True).run()
        await root.post("/queue/enqueue", json={"type": "fail", "delay": 60})
        every = (await root.get("/queue/stats")).json()
        mail = (await root.get("/queue/stats", params={"type": "mail.send", "since": 86400})).json()
        queue = (await root.get("/queue/stats", params={"queue": "default"})).json()
        charts = (await root.get("/queue/stats/charts", params={"type": "mail.send", "since": 86400})).json()
        long = await root.get("/queue/stats/charts", params={"since": 2_592_001})
        months = (await root.get("/queue/stats", params={"since": 2_592_000})).json()
    assert every["queues"]["mail"]["succeeded"]["count"] == 2
    assert every["queues"]["mail"]["succeeded"]["avgDurationMs"] >= 0
    assert every["queues"]["default"]["scheduled"] == {"count": 1, "avgDurationMs": None}
    assert [(one["type"], one["status"], one["count"]) for one in every["ended"]] == [
        ("fail", "failed", 1),
        ("mail.send", "succeeded", 2),
    ]
    assert (every["failed"], every["failedLastHour"], every["all"]["runs"]) == (1, 1, 3)
    assert (mail["failed"], mail["all"]["runs"], sum(one["succeeded"] for one in mail["series"])) == (0, 2, 2)
    assert {one["queue"] for one in queue["counts"]} == {"default"}
    [ended] = mail["ended"]
    assert ended["leastMs"] <= ended["p50Ms"] <= ended["p99Ms"] <= ended["mostMs"]
    assert mail["all"]["waitP50Ms"] <= mail["all"]["waitMostMs"]
    assert (charts["stepSeconds"], charts["total"]["succeeded"], charts["total"]["run"]["n"]) == (600, 2, 2)
    assert sum(point["succeeded"] for point in charts["points"]) == 2
    for series in (charts["points"], *(one["n"] for one in charts["heat"]), *charts["fleet"].values()):
        assert len(series) == len(charts["steps"]) <= 181
    assert long.status_code == 422
    assert (every["stepSeconds"], len(every["series"])) == (60, 61)
    assert len(months["series"]) <= 181
    assert sum(one["failed"] for one in months["series"]) == 1
