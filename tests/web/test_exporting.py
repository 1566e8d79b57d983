"""Jobs as a file, and orders for those that a line or a list of ids names."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.web.conftest import Ask
from tests.web.test_jobs import ended, made
from windlass import Windlass

LATER = {"delay": 3600}
FORMULAS = ('=HYPERLINK("http://evil")', "+1", "-1", "@x", "\t=1", "＝1")


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


async def test_all_that_match_come_as_one_file(app: Windlass, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.web.routes.exporting._AT_ONCE", 2)
    big = 9007199254740993
    for n in range(5):
        await app.enqueue("mail.send", {"to": f"x{n}", "copies": big}, user="ann", tags=("a", "b"))
    await app.enqueue("fail", user="ann")
    async with ask() as ann:
        answer = await ann.get("/queue/export", params={"where": "type:mail.* sort:created", "format": "csv"})
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"] == 'attachment; filename="jobs.csv"'
        rows = table(answer.text)
        assert [json.loads(row["payload"])["to"] for row in rows] == [f"x{n}" for n in range(5)]
        assert str(big) in rows[0]["payload"]
        assert (rows[0]["userId"], rows[0]["tags"], rows[0]["finishedAt"]) == ("ann", '["a", "b"]', "")
        told = await ann.get("/queue/export", params={"format": "json"})
        assert len(told.json()) == 6
        assert str(big) in told.text
        some = await ann.get("/queue/export", params={"id": [told.json()[0]["id"]], "format": "json"})
        assert some.json() == [(await ann.get(f"/queue/{told.json()[0]['id']}")).json()]
        assert (await ann.get("/queue/export", params={"type": "no", "format": "json"})).json() == []
        wrong = await ann.get("/queue/export", params={"where": "statsu:failed"})
        assert (wrong.status_code, "statsu" in wrong.json()["detail"]) == (422, True)


async def test_a_spreadsheet_finds_no_formula(app: Windlass, ask: Ask) -> None:
    for n, text in enumerate(FORMULAS):
        await app.enqueue("mail.send", {"to": text}, entity=("order", text.strip()), correlation=f"={n}", user="ann")
    async with ask() as ann:
        rows = table((await ann.get("/queue/export")).text)
    cells = [cell for row in rows for cell in row.values()]
    assert [cell for cell in cells if cell[:1] in "=+-@\t＝" and cell] == []
    assert {row["correlationId"] for row in rows} == {f"'={n}" for n in range(len(FORMULAS))}


async def test_a_file_has_the_callers_own_jobs(app: Windlass, ask: Ask) -> None:
    handle = await app.enqueue("mail.send", {"to": "x"}, user="bob")
    async with ask() as ann:
        assert table((await ann.get("/queue/export")).text) == []
        assert table((await ann.get("/queue/export", params={"id": handle.id})).text) == []
        assert (await ann.get("/queue/export", params={"userId": "bob"})).status_code == 422
        assert (await ann.get("/queue/export", params={"id": handle.id, "type": "x"})).status_code == 422


async def test_an_order_names_jobs_by_their_ids(app: Windlass, ask: Ask) -> None:
    theirs = await app.enqueue("mail.send", {"to": "x"}, user="bob")
    async with ask() as ann:
        ids = [(await made(ann, **LATER))["id"] for _ in range(3)]
        named = [*ids[:2], ids[0], theirs.id]
        dry = await ann.post("/queue/bulk", json={"action": "cancel", "ids": named, "dryRun": True})
        assert dry.json()["matched"] == 2
        job = await ended(ann, await ann.post("/queue/bulk", json={"action": "cancel", "ids": named}))
        assert (job["result"]["done"], job["result"]["missing"]) == (2, 1)
        assert [(await ann.get(f"/queue/{one}")).json()["status"] for one in ids] == [
            *("cancelled", "cancelled", "scheduled")
        ]
        for wrong in ({"filter": {"type": "x"}}, {"everything": True}, {"limit": 1}, {"action": "replay"}):
            order = {"action": "cancel", "ids": ids, **wrong}
            assert (await ann.post("/queue/bulk", json=order)).status_code == 422
    assert (await app.jobs.get(theirs.id)).status == "queued"


async def test_an_order_is_about_what_a_line_means(app: Windlass, ask: Ask) -> None:
    for tags in (("a",), ("b",), ()):
        await app.enqueue("mail.send", {"to": "x"}, tags=tags, delay=3600)
    async with ask("*", ("admin",)) as root:
        order = {"action": "cancel", "filter": {"where": "type:mail.send -tag:a age<1h"}}
        job = await ended(root, await root.post("/queue/bulk", json=order))
        assert (job["result"]["matched"], job["result"]["done"]) == (2, 2)
        listed = await root.get("/queue", params={"where": "status:scheduled"})
        assert [one["tags"] for one in listed.json()["items"]] == [["a"]]
        assert (await root.post("/queue/bulk", json={"action": "cancel", "filter": {"where": "x:"}})).status_code == 422


async def test_a_file_has_a_bound_and_says_so(app: Windlass, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.web.routes.exporting.MOST", 3)
    for n in range(4):
        await app.enqueue("mail.send", {"to": f"x{n}"}, queue="mail" if n else "other", user="ann")
    async with ask() as ann:
        refused = await ann.get("/queue/export")
        assert refused.status_code == 422
        assert "more than 3 jobs match" in refused.json()["detail"]
        assert "limit=" in refused.json()["detail"]
        newest = await ann.get("/queue/export", params={"limit": 3, "format": "json"})
        assert [one["payload"]["to"] for one in newest.json()] == ["x3", "x2", "x1"]
        assert len(table((await ann.get("/queue/export", params={"limit": 1})).text)) == 1
        assert len(table((await ann.get("/queue/export", params={"queue": "mail"})).text)) == 3
        assert (await ann.get("/queue/export", params={"limit": 100_001})).status_code == 422
