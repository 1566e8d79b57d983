"""Resumes over HTTP: two plans, two users, the same file again; what is refused, generated, counted and forgotten."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.apps.resumes.documents import DESCRIPTION, DOCX, docx, part, pdf, text
from tests.support.apps import app_at
from tests.support.until import until
from tests.web.conftest import Ask
from windlass import Status, Windlass
from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.records.record import Record
from windlass.apps.resumes.resumes import TYPE, Resumes, install
from windlass.apps.resumes.settings import ResumesSettings
from windlass.apps.resumes.structuring.rules import Rules
from windlass.apps.resumes.structuring.structurer import Structured

PREMIUM: dict[str, Any] = {"attributes": {"premium": True}}


class Hands:
    """Rules, before which a test may do something."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.inside = self.most = self.times = 0

    async def structure(self, extracted: Extracted) -> Structured:
        self.times += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.errors:
                raise self.errors.pop()
            return await Rules().structure(extracted)
        finally:
            self.inside -= 1


async def here(data: bytes, media_type: str) -> Extracted:
    """Read without a child, whose start takes longer than most of these tests."""
    return await asyncio.to_thread(extract, data, media_type)


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def resumes(tmp_path: Path, hands: Hands) -> AsyncGenerator[Resumes, None]:
    app = app_at(tmp_path / "jobs.db")
    settings = ResumesSettings(files=str(tmp_path / "files"), largest=200_000, waiting=2, children=1)
    made = install(app, settings, hands)
    made.read = here
    async with app:
        yield made
    app.close()


@pytest.fixture
def app(resumes: Resumes) -> Windlass:
    return resumes.app


async def work(app: Windlass) -> None:
    await app.worker(drain=True).run()


async def sent(client: httpx.AsyncClient, data: bytes, **how: str) -> dict[str, Any]:
    answer = await client.post("/resumes/upload", files=part(data, **how))
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def wanted(id_: str, format_: str = "markdown") -> dict[str, str]:
    return {"processingId": id_, "jobDescription": DESCRIPTION, "companyName": "Northwind", "format": format_}


@pytest.mark.parametrize("path", ["upload", "upload-resume"])
async def test_a_premium_caller_is_served_in_the_background(ask: Ask, app: Windlass, path: str) -> None:
    async with ask("ann", **PREMIUM) as client:
        answer = await client.post(f"/resumes/{path}", files=part(pdf(), "cv.pdf", "application/pdf"))
        told = answer.json()
        assert (answer.status_code, told["status"], told["created"], told["result"]) == (202, "queued", True, None)
        assert answer.headers["location"].endswith(f"/api/v1/resumes/{told['processingId']}")
        one = f"/resumes/{told['processingId']}"
        waiting = (await client.get(one)).json()
        assert (waiting["status"], waiting["structuredContent"]) == ("queued", None)
        early = await client.post("/resumes/generate", json=wanted(told["processingId"]))
        assert early.status_code == 400
        assert early.json()["detail"] == "Resume processing not completed. Status: queued"
        assert waiting["eventsUrl"] == f"/api/v1/queue/{waiting['jobId']}/events"
        await work(app)
        done = (await client.get(one)).json()
        assert (done["status"], done["fileName"], done["usageCount"], done["error"]) == ("completed", "cv.pdf", 0, None)
        assert done["structuredContent"]["basics"]["email"] == "ada.quillfeather@example.org"
        assert done["metadata"]["facts"]["kind"] == "pdf"
        assert "Zorblatt" in done["extractedText"]
        again = await client.post(f"/resumes/{path}", files=part(pdf(), "another name.pdf", "application/pdf"))
        assert (again.status_code, again.json()["processingId"]) == (200, told["processingId"])
        assert again.json()["result"]["fileName"] == "cv.pdf"


async def test_any_other_caller_has_the_result_at_once(ask: Ask, app: Windlass) -> None:
    async with ask("ann") as client:
        answer = await client.post("/resumes/upload", files=part(docx(), "cv.docx", DOCX))
        told = answer.json()
        assert (answer.status_code, told["status"], told["created"]) == (201, "completed", True)
        assert told["result"]["structuredContent"]["basics"]["name"] == "Ada Quillfeather"
        assert told["result"]["jobId"] is None
        assert not (await app.jobs.find(type=TYPE)).jobs
        again = await client.post("/resumes/upload", files=part(docx(), "cv.docx", DOCX))
        assert (again.status_code, again.json()["processingId"]) == (200, told["processingId"])
        listed = (await client.get("/resumes")).json()
        assert [one["processingId"] for one in listed["items"]] == [told["processingId"]]


@pytest.mark.parametrize(("attributes", "status"), [({"plan": "gold"}, 202), ({"plan": "free"}, 201), ({}, 201)])
async def test_which_plan_is_premium_is_a_setting(
    ask: Ask, resumes: Resumes, attributes: dict[str, Any], status: int
) -> None:
    resumes.settings = resumes.settings.model_copy(update={"premium": "plan=gold"})
    async with ask("ann", attributes=attributes) as client:
        assert (await client.post("/resumes/upload", files=part(text()))).status_code == status


async def test_a_tailored_resume_comes_in_each_format_with_its_score(ask: Ask) -> None:
    async with ask("ann") as client:
        id_ = (await sent(client, text()))["processingId"]
        for format_, begins in (("markdown", b""), ("md", b""), ("docx", b"PK\x03\x04"), ("pdf", b"%PDF-")):
            answer = await client.post("/resumes/generate", json=wanted(id_, format_))
            assert answer.status_code == 200, answer.text
            told = answer.json()
            content = told["content"].encode() if told["content"] else base64.b64decode(told["contentBase64"])
            assert content.startswith(begins)
            assert told["fileName"].startswith("resume-Ada-Quillfeather-Northwind.")
            assert told["resume"]["basics"]["name"] == "Ada Quillfeather"
            assert 0 <= told["atsScore"]["total"] <= 100
            assert "not made for ranking" in told["advice"]
            raw = await client.post("/resumes/generate-fast-resume?download=true", json=wanted(id_, format_))
            assert raw.content.startswith(begins)
            assert raw.headers["content-disposition"].startswith('attachment; filename="resume-Ada')
            assert float(raw.headers["x-ats-score"]) == pytest.approx(told["atsScore"]["total"], abs=0.06)
        found = (await client.get(f"/resumes/{id_}")).json()
        assert found["usageCount"] == 8
        assert found["lastUsedAt"] is not None


async def test_the_file_comes_back_as_it_was_sent_and_is_never_shown(ask: Ask) -> None:
    async with ask("ann") as client:
        id_ = (await sent(client, text(), name='a".txt'))["processingId"]
        answer = await client.get(f"/resumes/{id_}/file")
        assert (answer.content, answer.headers["content-type"]) == (text(), "application/octet-stream")
        assert answer.headers["content-disposition"] == f'attachment; filename="resume-{id_[:8]}.txt"'


async def test_two_users_do_not_see_each_other_on_any_route(ask: Ask, app: Windlass) -> None:
    async with ask("ann") as ann, ask("bob") as bob, ask("*", ("read",)) as all_, ask("ann", **PREMIUM) as premium:
        id_ = (await sent(ann, text()))["processingId"]
        job = (await sent(premium, text("Else One")))["processingId"]
        await work(app)
        tracked = (await ann.get(f"/resumes/{job}")).json()["jobId"]
        theirs = await sent(bob, text())
        assert theirs["created"] is True
        assert theirs["processingId"] != id_
        for method, path, body in (
            ("GET", f"/resumes/{id_}", None),
            ("GET", f"/resumes/{id_}/file", None),
            ("DELETE", f"/resumes/{id_}", None),
            ("DELETE", f"/resumes/jobs/{tracked}?cascade=true", None),
            ("POST", "/resumes/generate", wanted(id_)),
            ("POST", "/resumes/generate-fast-resume", wanted(id_)),
        ):
            answer = await bob.request(method, path, json=body)
            assert answer.status_code == 404, (path, answer.text)
        listed = (await bob.get("/resumes")).json()["items"]
        assert [one["processingId"] for one in listed] == [theirs["processingId"]]
        counted = (await bob.get("/resumes/queue-stats")).json()
        assert counted["bull"] == {"waiting": 0, "active": 0, "completed": 0, "failed": 0, "delayed": 0}
        assert (await bob.delete("/resumes?userId=ann")).status_code == 422
        assert (await bob.post("/resumes/upload", files=part(text()), data={"userId": "ann"})).status_code == 422
        assert (await ann.get(f"/resumes/{id_}")).status_code == 200
        assert len((await all_.get("/resumes")).json()["items"]) == 3
        assert (await all_.post("/resumes/upload", files=part(text()))).status_code == 403


async def test_an_administrator_serves_other_users(ask: Ask) -> None:
    async with ask("*", ("admin",)) as admin, ask("ann") as ann, ask("*") as all_:
        made = (await admin.post("/resumes/upload", files=part(text()), data={"userId": "ann"})).json()
        assert made["result"]["userId"] == "ann"
        assert (await ann.get(f"/resumes/{made['processingId']}")).status_code == 200
        assert (await all_.post("/resumes/upload", files=part(text()), data={"userId": "ann"})).status_code == 422
        told = (await admin.delete("/resumes?userId=ann")).json()
        assert told == {"records": 1, "files": 1, "jobs": 0, "missing": 0, "running": []}
        assert (await ann.get(f"/resumes/{made['processingId']}")).status_code == 404


async def test_what_is_asked_wrongly_is_told(ask: Ask) -> None:
    async with ask("ann") as client:
        for file, status, told in (
            (part(b"x" * 250_000), 413, "200,000 bytes"),
            (part(b"x" * 300_000), 413, "265,536 bytes"),
            (part(b"", "cv.txt"), 422, "it is empty"),
            (part(b"%PDF-1.7 nothing", "cv.pdf", "application/pdf"), 422, "cannot be processed"),
            (part(b"MZ\x90\x00" + bytes(200), "cv.pdf", "application/pdf"), 422, "cannot be processed"),
            (part(text(), "cv.exe"), 422, "only .pdf, .docx, .txt"),
            (part(text(), "../../etc/passwd.txt"), 201, ""),
            (part(text(), "cv.txt", "image/png"), 422, "expected a PDF, DOCX or TXT file"),
        ):
            answer = await client.post("/resumes/upload", files=file)
            assert (answer.status_code, told in answer.text) == (status, True), (status, answer.text)
        assert [one["fileName"] for one in (await client.get("/resumes")).json()["items"]] == ["passwd.txt"]
        id_ = (await client.get("/resumes")).json()["items"][0]["processingId"]
        for body in (
            {**wanted(id_), "format": "html"},
            {**wanted(id_), "jobDescription": ""},
            {**wanted(id_), "jobDescription": "x" * 50_001},
            {**wanted("nothing")},
            {**wanted(id_), "more": 1},
        ):
            assert (await client.post("/resumes/generate", json=body)).status_code == 422
        missing = await client.post("/resumes/generate", json=wanted("0" * 8 + id_[8:]))
        assert missing.status_code == 404
        assert (await client.get("/resumes/nothing")).status_code == 404
    async with ask(None) as nobody:
        assert (await nobody.post("/resumes/upload", files=part(text()))).status_code == 401


async def test_a_document_that_is_refused_in_the_background_says_why_and_can_be_sent_again(
    ask: Ask, app: Windlass
) -> None:
    broken = part(b"%PDF-1.7 nothing", "cv.pdf", "application/pdf")
    async with ask("ann", **PREMIUM) as client:
        first = (await client.post("/resumes/upload", files=broken)).json()
        await work(app)
        found = (await client.get(f"/resumes/{first['processingId']}")).json()
        assert found["status"] == "failed"
        assert found["error"]
        early = await client.post("/resumes/generate", json=wanted(first["processingId"]))
        assert early.json()["detail"] == "Resume processing not completed. Status: failed"
        again = await client.post("/resumes/upload", files=broken)
        assert (again.status_code, again.json()["processingId"]) == (202, first["processingId"])
        assert again.json()["status"] == "queued"
        await work(app)
        jobs = (await app.jobs.find(type=TYPE)).jobs
        assert [job.status for job in jobs] == [Status.FAILED] * 2


async def test_what_went_wrong_inside_is_not_told(ask: Ask, app: Windlass, hands: Hands) -> None:
    hands.errors = [ValueError("SECRET-PATH /etc/x")] * 20
    async with ask("ann") as client, ask("bob", **PREMIUM) as premium:
        answer = await client.post("/resumes/upload", files=part(text()))
        assert (answer.status_code, answer.json()["status"]) == (202, "queued")  # a job tries it again
        id_ = (await sent(premium, text()))["processingId"]
        for job in (await app.jobs.find(type=TYPE)).jobs:
            await app.jobs.cancel(job.id)
        found = (await premium.get(f"/resumes/{id_}")).json()
        assert (found["status"], found["error"]) == ("failed", "its processing was cancelled: send it again")
        assert "SECRET" not in answer.text + str(found)


async def test_several_files_at_once_have_one_job(ask: Ask, app: Windlass) -> None:
    files = [("file", (f"{n}.txt", text(f"Name {n}"), "text/plain")) for n in "abc"]
    files.append(("file", ("bad.pdf", b"%PDF-1.7 nothing", "application/pdf")))
    async with ask("ann") as client:
        told = (await client.post("/resumes/batch", files=files)).json()["items"]
        ids = [one["processingId"] for one in told]
        assert len(set(ids)) == 4
        await work(app)
        found = [(await client.get(f"/resumes/{one}")).json() for one in ids]
        assert [one["status"] for one in found] == ["completed"] * 3 + ["failed"]
        assert len({one["jobId"] for one in found}) == 1
        # Of four records that a job tracks, one is deleted; the job stays for the others.
        assert (await client.delete(f"/resumes/{ids[0]}")).json()["jobs"] == 0
        assert (await app.jobs.get(found[0]["jobId"])).status is Status.SUCCEEDED
        too_many = [("file", (f"{n}.txt", b"x", "text/plain")) for n in range(21)]
        assert (await client.post("/resumes/batch", files=too_many)).status_code == 422


async def test_a_deleted_job_leaves_its_records_unless_it_is_asked_for(ask: Ask, app: Windlass) -> None:
    async with ask("ann", **PREMIUM) as client:
        kept, gone, plain = [(await sent(client, text(f"N {n}")))["processingId"] for n in range(3)]
        await work(app)
        jobs = {one: (await client.get(f"/resumes/{one}")).json()["jobId"] for one in (kept, gone, plain)}
        assert (await client.delete(f"/queue/{jobs[plain]}")).status_code == 204
        assert (await client.delete(f"/resumes/jobs/{jobs[kept]}")).json()["records"] == 0
        told = (await client.delete(f"/resumes/jobs/{jobs[gone]}?cascade=true")).json()
        assert (told["records"], told["files"], told["jobs"]) == (1, 1, 1)
        assert [(await client.get(f"/resumes/{one}")).status_code for one in (kept, gone, plain)] == [200, 404, 200]
        assert (await client.get(f"/resumes/{plain}")).json()["status"] == "completed"
        assert (await client.post("/resumes/generate", json=wanted(plain))).status_code == 200
        assert (await client.delete(f"/resumes/{plain}")).json()["records"] == 1


async def test_the_queue_is_counted_live_and_by_status(ask: Ask, app: Windlass) -> None:
    async with ask("ann", **PREMIUM) as client:
        await sent(client, text())
        await client.post("/resumes/upload", files=part(b"%PDF-1.7 nothing", "a.pdf", "application/pdf"))
        await work(app)
        await sent(client, text("Else One"))
        told = (await client.get("/resumes/queue-stats")).json()
        assert told["bull"] == {"waiting": 1, "active": 0, "completed": 1, "failed": 1, "delayed": 0}
        by = told["database"]["resume-processing"]
        assert {name: one["count"] for name, one in by.items()} == {
            "queued": 1,
            "processing": 0,
            "retrying": 0,
            "completed": 1,
            "failed": 1,
        }
        assert by["completed"]["avgDurationMs"] > 0
        assert by["queued"]["avgDurationMs"] is None


async def test_only_so_many_are_processed_at_once_and_wait(ask: Ask, hands: Hands) -> None:
    hands.gate = asyncio.Event()
    async with ask("ann") as client:
        posts = [
            asyncio.ensure_future(client.post("/resumes/upload", files=part(text(f"N {number}"))))
            for number in range(6)
        ]
        done, _ = await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED, timeout=15)
        early = [one.result() for one in done]
        assert {one.status_code for one in early} == {503}
        assert early[0].headers["retry-after"] == "5"
        assert (await client.get("/resumes")).status_code == 200  # the loop is free meanwhile
        await until(lambda: hands.inside == 2, "two of them to be in the middle of it")
        hands.gate.set()
        ends = sorted([one.status_code for one in await asyncio.gather(*posts)])
    assert ends == [201, 201, 201, 201, 503, 503]
    assert hands.most == 2


async def test_the_same_file_twice_at_the_same_moment_is_one_resume(ask: Ask, hands: Hands) -> None:
    async with ask("ann") as client:
        some = await asyncio.gather(*(client.post("/resumes/upload", files=part(text())) for _ in range(3)))
        assert len({one.json()["processingId"] for one in some}) == 1
        assert max(one.status_code for one in some) <= 202
    assert hands.times == 1


async def test_what_cannot_be_done_at_once_is_done_by_a_job(ask: Ask, app: Windlass, hands: Hands) -> None:
    from windlass import Snooze

    hands.errors = [Snooze(0.001)]
    async with ask("ann") as client:
        answer = await client.post("/resumes/upload", files=part(text()))
        assert (answer.status_code, answer.json()["status"]) == (202, "queued")
        await work(app)
        assert (await client.get(f"/resumes/{answer.json()['processingId']}")).json()["status"] == "completed"


async def test_what_a_dead_process_left_is_given_to_a_job(resumes: Resumes, ask: Ask) -> None:
    import datetime as dt
    from dataclasses import replace

    async with ask("ann") as client:
        id_ = (await sent(client, text()))["processingId"]
        records = await resumes.records()
        found = await records.get(id_)
        assert found is not None
        await records.remove([id_])
        old = found.created_at - dt.timedelta(hours=1)
        left: Record = replace(found, structured_content=None, completed_at=None, updated_at=old)
        await records.add(left)
        assert (await client.get(f"/resumes/{id_}")).json()["status"] == "processing"
        assert await resumes.sweep() == 1
        assert (await client.get(f"/resumes/{id_}")).json()["status"] == "queued"
        await work(resumes.app)
        assert (await client.get(f"/resumes/{id_}")).json()["status"] == "completed"
        assert await resumes.sweep() == 0


async def test_pages_of_a_list_go_on(ask: Ask) -> None:
    async with ask("ann") as client:
        made = [(await sent(client, text(f"N {number}")))["processingId"] for number in range(3)]
        first = (await client.get("/resumes?limit=2")).json()
        rest = (await client.get("/resumes", params={"limit": 2, "cursor": first["nextCursor"]})).json()
        assert [one["processingId"] for one in first["items"] + rest["items"]] == made[::-1]
        assert rest["nextCursor"] is None
        assert "extractedText" not in first["items"][0]
