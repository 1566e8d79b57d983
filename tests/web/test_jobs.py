"""Jobs as resources: enqueue, list, look, operate."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

import httpx
import pytest
from pydantic import BeforeValidator, Field

from tests.support.until import until
from tests.web.conftest import Ask
from windlass import Happened, Secret, Windlass


async def made(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await client.post("/queue/enqueue", json={"type": "mail.send", "payload": {"to": "ada"}, **more})
    assert answer.status_code == 201, answer.text
    job: dict[str, Any] = answer.json()
    return job


async def ended(client: httpx.AsyncClient, begun: httpx.Response) -> dict[str, Any]:
    """The job of an operation once it has ended."""
    assert begun.status_code == 202, begun.text

    async def job() -> dict[str, Any]:
        found: dict[str, Any] = (await client.get(begun.headers["location"].removeprefix("/api/v1"))).json()
        return found if found["finishedAt"] else {}

    return await until(job, "the operation to end")


async def test_a_job_is_made_and_found_where_its_location_says(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        answer = await client.post(
            "/queue/enqueue",
            json={
                "type": "mail.send",
                "payload": {"to": "ada"},
                "entity_name": "order",
                "entityId": "7",
                "tags": ["t"],
            },
        )
        job = answer.json()
        assert answer.headers["location"] == f"/api/v1/queue/{job['id']}"
        again = await client.get(f"/queue/{job['id']}")
    assert again.json() == job
    assert (job["_id"], job["queue"], job["status"], job["userId"]) == (job["id"], "mail", "queued", "ann")
    assert (job["entityName"], job["entityId"], job["tags"], job["payload"]) == ("order", "7", ["t"], {"to": "ada"})
    assert job["createdAt"].endswith("Z")
    assert len(job["createdAt"]) == len("2026-01-01T00:00:00.000Z")
    assert (await app.jobs.get(job["id"])).user_id == "ann"


async def test_a_result_and_an_error_are_shown(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        job, failing = await made(client), (await client.post("/queue/enqueue", json={"type": "fail"})).json()
        await app.worker(drain=True).run()
        done, broken = [(await client.get(f"/queue/{one['id']}")).json() for one in (job, failing)]
    assert (done["status"], done["result"]) == ("succeeded", "ada 1")
    assert broken["error"] == {"type": "ValueError", "message": "it broke: ", "traceback": None}
    assert broken["workerId"] is None, "whose machines run it is not the user's business"


async def test_a_duplicate_names_the_job_that_is_there(ask: Ask) -> None:
    async with ask() as client:
        job = await made(client, uniqueKey="k")
        answer = await client.post(
            "/queue/enqueue", json={"type": "mail.send", "payload": {"to": "x"}, "uniqueKey": "k"}
        )
    assert answer.status_code == 409
    assert answer.json()["existing"] == job["id"]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"type": "mail.send", "payload": {"too": "x"}}, "to"),
        ({"type": "mail.send", "payload": {"to": "x"}, "nonsense": 1}, "nonsense"),
        ({"payload": {}}, "type"),
        ({"type": "mail.send", "payload": []}, "payload"),
        ({"type": "mail.send", "payload": {"to": "x"}, "delay": -1}, "delay"),
        ({"type": "mail.send", "payload": {"to": "x"}, "priority": "urgent"}, "priority"),
        ({"type": "mail.send", "payload": {"to": "x"}, "runAt": "2030-01-01T00:00:00"}, "zone"),
        ([], "body"),
    ],
    ids=str,
)
async def test_what_does_not_fit_is_refused_and_told_where(ask: Ask, app: Windlass, body: object, where: str) -> None:
    async with ask() as client:
        answer = await client.post("/queue/enqueue", json=body)
    assert answer.status_code == 422, answer.text
    assert where in answer.json()["detail"]
    assert (await app.jobs.count()).n == 0


WANTED = {
    '{"to": "x", "copies": "1"}': "copies: Input should be a valid integer",
    '{"to": "x", "copies": true}': "copies: Input should be a valid integer",
    '{"to": "x", "copies": 1.5}': "copies: Input should be a valid integer",
    '{"to": "x", "at": 1767225600}': "at: Input should be a valid string",
    '{"to": "x", "at": "soon"}': "at: Input should be a valid datetime",
    '{"to": "x", "lines": {"0": 1}}': "lines: Input should be a valid array",
    '{"to": "x", "lines": [1, "2"]}': "lines[1]: Input should be a valid integer",
    '{"to": "x", "key": 7}': "key: Input should be a valid string",
    '{"to": "x", "both": true}': "both: Input should be a valid integer",
}


@pytest.mark.parametrize("payload", WANTED)
async def test_a_payload_is_what_the_document_says_and_no_more(ask: Ask, app: Windlass, payload: str) -> None:
    """However much more its handler would read: of Python it takes "1" for 1."""

    @app.job(name="order")
    async def order(
        to: str,
        copies: int = 1,
        at: datetime | None = None,
        lines: list[int] | None = None,
        key: str | None = None,
        both: int | str = 1,
    ) -> None: ...

    job = {"type": "order", "payload": json.loads(payload)}
    async with ask() as client:
        one = await client.post("/queue/enqueue", json=job)
        many = await client.post("/queue/enqueue/many", json={"jobs": [job]})
    [item] = many.json()["items"]
    for problem in (one.json(), item["problem"]):
        assert (problem["status"], problem["type"].rpartition(":")[2]) == (422, "payload-invalid")
        assert WANTED[payload] in problem["detail"]
    assert (await app.jobs.count()).n == 0
    await app.enqueue("mail.send", {"to": "x", "copies": "1"})  # from code it is the handler's types that count


async def test_of_a_secret_that_does_not_fit_nothing_is_told(ask: Ask, app: Windlass) -> None:
    @app.job(name="sign")
    async def sign(
        key: Annotated[Secret[str], Field(pattern="^k-")], mode: Literal["fast", "slow"] = "fast"
    ) -> None: ...

    async with ask() as client:
        for payload in ({"key": 48151623}, {"key": ["48151623"]}, {"key": "k-1", "mode": "48151623"}):
            answer = await client.post("/queue/enqueue", json={"type": "sign", "payload": payload})
            assert answer.status_code == 422
            assert "48151623" not in answer.text


async def test_what_no_schema_can_say_is_its_handlers_alone(ask: Ask, app: Windlass) -> None:
    """A type without a schema, and one whose model reads several forms: these are in the document."""

    @app.job(name="any")
    async def anything(data: Any, day: Annotated[int | str, BeforeValidator(int)] = 1) -> None: ...

    async with ask() as client:
        for data in (1, "1", True, None, [{"a": 1.5}]):
            answer = await client.post("/queue/enqueue", json={"type": "any", "payload": {"data": data, "day": "7"}})
            assert answer.status_code == 201, answer.text
            assert answer.json()["payload"] == {"data": data, "day": 7}


async def test_jobs_are_listed_by_pages(ask: Ask) -> None:
    async with ask() as client:
        ids = [(await made(client))["id"] for _ in range(5)]
        await client.post(f"/queue/{ids[0]}/cancel")
        first = (await client.get("/queue", params={"limit": 2, "status": "queued"})).json()
        second = (
            await client.get("/queue", params={"limit": 2, "status": "queued", "cursor": first["nextCursor"]})
        ).json()
        both = (await client.get("/queue", params=[("status", "queued"), ("status", "cancelled")])).json()
        failed = await client.get("/queue?status=failed")
    assert [one["id"] for one in first["items"] + second["items"]] == ids[:0:-1]
    assert second["nextCursor"] is None
    assert len(both["items"]) == 5
    assert (failed.status_code, failed.json()["items"]) == (200, [])


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "status=odd", "cursor=forged", "unknown=1", "createdSince=x"]
)
async def test_a_question_that_makes_no_sense_is_refused(ask: Ask, query: str) -> None:
    async with ask() as client:
        answer = await client.get(f"/queue?{query}")
    assert answer.status_code == 422, answer.text


async def test_pollers_are_told_that_nothing_has_changed(ask: Ask) -> None:
    async with ask() as client:
        job = await made(client)
        first = await client.get(f"/queue/{job['id']}")
        tag = {"If-None-Match": first.headers["etag"]}
        same = await client.get(f"/queue/{job['id']}", headers=tag)
        for also in (f'"other", W/{first.headers["etag"]}', "*"):
            assert (await client.get(f"/queue/{job['id']}", headers={"If-None-Match": also})).status_code == 304
        await client.post(f"/queue/{job['id']}/cancel")
        other = await client.get(f"/queue/{job['id']}", headers=tag)
    assert (same.status_code, same.content) == (304, b"")
    assert other.status_code == 200


async def test_history_and_explanation(ask: Ask) -> None:
    async with ask() as client:
        job = await made(client)
        history = (await client.get(f"/queue/{job['id']}/history")).json()
        told = (await client.get(f"/queue/{job['id']}/explain")).json()
    assert [entry["happened"] for entry in history["items"]] == ["enqueued"]
    assert (told["why"], told["text"]) == ("in_line", "It waits for its turn.")


async def test_operators_words_are_carried_out_and_recorded(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        job = await made(client)
        path = f"/queue/{job['id']}"
        cancelled = await client.post(f"{path}/cancel", json={"reason": "not needed"})
        retried = await client.post(f"{path}/retry")
        signalled = await client.post(f"{path}/signal", json={"name": "approved", "value": {"by": "bob"}})
        again = await client.post(f"{path}/signal", json={"name": "approved"})
        history = await app.jobs.history(job["id"])
        gone = await client.delete(path)
        missing = await client.get(path)
    assert (cancelled.json()["status"], retried.json()["status"]) == ("cancelled", "queued")
    assert (signalled.status_code, again.status_code) == (200, 409)
    assert [entry.happened for entry in history][1:] == [Happened.CANCELLED, Happened.RETRIED, Happened.SIGNALLED]
    assert all(str(entry.actor).startswith("key:") for entry in history[1:])
    assert history[1].note == "not needed"
    assert (gone.status_code, missing.status_code) == (204, 404)


async def test_a_move_that_is_refused_tells_the_status(ask: Ask) -> None:
    async with ask() as client:
        job = await made(client)
        answer = await client.post(f"/queue/{job['id']}/retry")
    assert (answer.status_code, answer.json()["status"]) == (409, 409)
    assert answer.json()["wanted"] == "queued"


async def test_control_of_all_is_for_those_who_see_all(app: Windlass, ask: Ask) -> None:
    async with ask() as user, ask("*") as operator:
        await made(user)
        for path in ("/queues", "/workers"):
            assert (await user.get(path)).status_code == 403
            assert (await operator.get(path)).status_code == 200
        assert (await user.post("/queues/mail/pause")).status_code == 403
        assert (await operator.post("/queues/mail/pause")).status_code == 204
        [queue] = (await operator.get("/queues")).json()["items"]
        assert queue["pausedAt"] is not None
        stats = (await operator.get("/queue/stats")).json()
        own = (await user.get("/queue/stats")).json()
    assert own["counts"] == stats["counts"]
    assert stats["counts"] == [{"queue": "mail", "status": "queued", "count": 1, "exact": True}]
    [entry] = (await app.audit.list()).entries
    assert (entry.action, entry.object) == ("queue.pause", "queue:mail")


async def test_dead_letters_are_grouped_and_replayed(app: Windlass, ask: Ask) -> None:
    async with ask() as client, ask("bob") as other:
        failing = (await client.post("/queue/enqueue", json={"type": "fail"})).json()
        await app.worker(drain=True).run()
        [group] = (await client.get("/queue/dead-letter")).json()["groups"]
        assert (group["type"], group["count"], group["example"]) == ("fail", 1, failing["id"])
        assert (await other.get("/queue/dead-letter")).json()["groups"] == []
        everything = await client.post("/queue/dead-letter/replay", json={})
        counted = (await client.post("/queue/dead-letter/replay", json={"type": "fail", "dryRun": True})).json()
        theirs = (await other.post("/queue/dead-letter/replay", json={"type": "fail"})).json()
        begun = await client.post("/queue/dead-letter/replay", json={"type": "fail"})
        result = (await ended(client, begun))["result"]
    assert everything.status_code == 422
    assert (counted["matched"], counted["id"], theirs["matched"]) == (1, None, 0)
    assert (counted["lookedAt"], counted["conflicts"]) == (1, [])
    assert (begun.status_code, begun.json()["matched"], result["done"]) == (202, 1, 1)
    [replayed] = (await app.jobs.find(type="fail", status="queued")).jobs
    assert (replayed.replay_of, replayed.user_id) == (failing["id"], "ann")


async def test_a_job_is_done_again_as_a_new_one(app: Windlass, ask: Ask) -> None:
    async with ask() as client, ask("bob") as other, ask("*", ("admin",)) as admin:
        job = (await client.post("/queue/enqueue", json={"type": "mail.send", "payload": {"to": "x"}})).json()
        path = f"/queue/{job['id']}/replay"
        assert (await client.post(path)).status_code == 409  # it has not ended
        await app.worker(drain=True).run()
        made = await client.post(path)
        again = await client.post(path)
        assert (await other.post(path)).status_code == 404
        edited = {"payload": {"to": "y", "copies": 9007199254740993}}
        assert (await client.post(path, json=edited)).status_code == 403
        changed = await admin.post(path, json=edited)
        wrong = await admin.post(path, json={"payload": {"too": "y"}})
    assert (made.status_code, again.status_code, changed.status_code, wrong.status_code) == (201, 200, 201, 422)
    assert made.json()["id"] == again.json()["id"] != changed.json()["id"]
    assert made.headers["location"] == f"/api/v1/queue/{made.json()['id']}"
    assert (made.json()["replayOf"], made.json()["userId"]) == (job["id"], "ann")
    assert changed.json()["payload"] == {"to": "y", "copies": 9007199254740993}
    found = await app.jobs.replays(await app.jobs.get(job["id"]))
    assert [one.id for one in found.jobs] == [made.json()["id"], changed.json()["id"]]
    entries = [entry for entry in (await app.audit.list()).entries if entry.action == "job.replay"]
    assert [("another" in (entry.details_json or "")) for entry in entries] == [True, False]


async def test_a_job_whose_key_another_holds_is_not_done_again(app: Windlass, ask: Ask) -> None:
    async with ask("*") as client:
        job = await made(client, uniqueKey="one")
        await app.worker(drain=True).run()
        holder = await made(client, uniqueKey="one")
        for deed in ("replay", "retry"):
            told = await client.post(f"/queue/{job['id']}/{deed}")
            assert (told.status_code, told.json()["existing"]) == (409, holder["id"])


async def test_parts_of_a_job_are_files_with_every_digit(app: Windlass, ask: Ask) -> None:
    async with ask() as client, ask("bob") as other:
        job = await made(client, payload={"to": "x", "copies": 2**62 + 1}, metadata={"n": 2**60})
        path = f"/queue/{job['id']}/parts"
        payload, result, metadata = [await client.get(f"{path}/{part}") for part in ("payload", "result", "metadata")]
        assert (await other.get(f"{path}/payload")).status_code == 404
        assert (await client.get(f"{path}/owner")).status_code == 422
    assert str(2**62 + 1) in payload.text
    assert (result.text, metadata.json()) == ("null", {"n": 2**60})
    assert payload.headers["content-disposition"] == f'attachment; filename="job-{job["id"]}-payload.json"'


@pytest.mark.parametrize("deed", ["retry", "cancel"])
async def test_a_reason_is_no_longer_than_a_line_of_a_history_may_be(ask: Ask, deed: str) -> None:
    async with ask() as client:
        job = await made(client, delay=60)
        refused = await client.post(f"/queue/{job['id']}/{deed}", json={"reason": "x" * 1001})
        done = await client.post(f"/queue/{job['id']}/{deed}", json={"reason": "x" * 1000})
    assert (refused.status_code, done.status_code) == (422, 200)
