"""The whole way over HTTP, with a worker and children that read: upload, watch, generate, forget; nothing stays."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.apps.resumes.documents import DESCRIPTION, DOCX, docx, part, pdf
from tests.apps.resumes.pairings import PAIRINGS, Pairing, pairing_at
from tests.support.until import until
from windlass import Retention, Status, Windlass
from windlass.apps.resumes.records.record import NAME
from windlass.apps.resumes.resumes import TYPE, Resumes, install
from windlass.apps.resumes.settings import ResumesSettings

NAME_, COMPANY, FILE, SOUGHT, WANTED_BY = "Quillfeather", "Zorblatt", "vexwood-cv.pdf", "Plinthmaker", "Norkwind"
PLANTED = (NAME_, NAME_.lower(), COMPANY, FILE.partition(".")[0], SOUGHT, WANTED_BY)


@dataclass
class Journey:
    pairing: Pairing
    app: Windlass
    resumes: Resumes
    web: Any

    @asynccontextmanager
    async def client(self, owner: str, **attributes: Any) -> AsyncGenerator[httpx.AsyncClient, None]:
        made = await self.app.keys.create("a test", owner=owner, scopes=["enqueue", "read"], attributes=attributes)
        headers = {"Authorization": f"Bearer {made.secret}"}
        transport = httpx.ASGITransport(self.web)
        async with httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1", headers=headers) as client:
            yield client


@pytest.fixture(params=PAIRINGS)
async def journey(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Journey, None]:
    async with pairing_at(request.param, tmp_path) as pairing:
        url, namespace = pairing.store
        app = Windlass(url, namespace=namespace)
        settings = ResumesSettings(files=str(tmp_path / "files"), database=pairing.database, children=1)
        resumes = install(app, settings)
        async with app:
            yield Journey(pairing, app, resumes, app.asgi())
        app.close()


async def completed(client: httpx.AsyncClient, id_: str) -> dict[str, Any]:
    async def there() -> dict[str, Any] | None:
        found: dict[str, Any] = (await client.get(f"/resumes/{id_}")).json()
        return found if found["status"] in ("completed", "failed") else None

    found = await until(there, "the resume to be processed", within=30)
    assert found is not None
    assert found["status"] == "completed", found
    return dict(found)


@pytest.mark.timeout(90)
async def test_from_upload_to_oblivion(journey: Journey, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, "windlass")  # drivers quote whole documents at DEBUG, which is not ours
    app, pairing = journey.app, journey.pairing
    async with journey.client("ann", premium=True) as ann, journey.client("bob") as bob, app.worker():
        # Upload: two users, two plans.
        sent = await ann.post("/resumes/upload", files=part(pdf(f"Ada {NAME_}", COMPANY), FILE, "application/pdf"))
        assert sent.status_code == 202, sent.text
        id_ = sent.json()["processingId"]
        theirs = await bob.post("/resumes/upload", files=part(docx("Bob Plain", "Fabrikam"), "b.docx", DOCX))
        assert theirs.status_code == 201, theirs.text
        # Watch.
        found = await completed(ann, id_)
        assert (found["fileName"], found["structuredContent"]["basics"]["name"]) == (FILE, f"Ada {NAME_}")
        assert any(COMPANY in str(one.get("name")) for one in found["structuredContent"]["work"])
        job = await app.jobs.get(found["jobId"])
        assert (job.type, job.status, job.entity_name, job.entity_id) == (TYPE, Status.SUCCEEDED, NAME, id_)
        # Generate, again and again, from what is stored.
        wanted = {
            "processingId": id_,
            "jobDescription": f"{DESCRIPTION} {SOUGHT}",
            "companyName": WANTED_BY,
            "format": "md",
        }
        made = await ann.post("/resumes/generate", json=wanted)
        assert made.status_code == 200, made.text
        assert made.json()["resume"]["basics"]["name"] == f"Ada {NAME_}"
        assert (await bob.post("/resumes/generate", json=wanted)).status_code == 404
        assert (await ann.get(f"/resumes/{id_}")).json()["usageCount"] == 1
        stats = (await ann.get("/resumes/queue-stats")).json()
        assert stats["bull"]["completed"] == 1
        again = await ann.post("/resumes/upload", files=part(pdf(f"Ada {NAME_}", COMPANY), FILE, "application/pdf"))
        assert (again.status_code, again.json()["processingId"]) == (200, id_)

        # What jobs keep, and what is logged, holds nothing of a resume: not even before it is forgotten.
        if pairing.jobs is not pairing.records:
            assert [word for word in PLANTED if await pairing.holds(word, jobs_alone=True)] == []
        assert [word for word in PLANTED if word in str(job) + str(await app.jobs.history(job.id))] == []
        assert [word for word in PLANTED if word in caplog.text] == []
        assert [word for word in (NAME_, COMPANY) if not await pairing.holds(word)] == []

        told = (await ann.delete("/resumes")).json()
        assert told == {"records": 1, "files": 1, "jobs": 1, "missing": 0, "running": []}
        assert [(word, where) for word in PLANTED if (where := await pairing.holds(word))] == []
        assert [word for word in PLANTED if word in caplog.text] == []
        assert (await ann.get(f"/resumes/{id_}")).status_code == 404
        assert await app.jobs.several([job.id]) == [None]
        # Another user keeps all of theirs.
        other = f"/resumes/{theirs.json()['processingId']}"
        assert (await bob.get(other)).json()["status"] == "completed"
        assert (await bob.get(f"{other}/file")).content == docx("Bob Plain", "Fabrikam")


async def test_a_user_is_forgotten_while_their_resumes_are_processed(journey: Journey) -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()
    from windlass.apps.resumes.extraction.extract import extract
    from windlass.apps.resumes.extraction.extracted import Extracted

    async def slowly(data: bytes, media_type: str) -> Extracted:
        reading.set()
        await go_on.wait()
        return await asyncio.to_thread(extract, data, media_type)

    journey.resumes.read = slowly
    async with journey.client("ann", premium=True) as ann, journey.app.worker():
        await ann.post("/resumes/upload", files=part(pdf(f"Ada {NAME_}", COMPANY), FILE, "application/pdf"))
        await reading.wait()
        forgotten = asyncio.ensure_future(ann.delete("/resumes"))
        records = await journey.resumes.records()

        async def gone() -> bool:
            return not await records.find("ann", 1)

        await until(gone, "the record to be gone")
        go_on.set()
        told = (await forgotten).json()
        assert (told["records"], told["files"], told["jobs"], told["running"]) == (1, 1, 1, [])
    assert [word for word in PLANTED if await journey.pairing.holds(word)] == []


async def test_retention_leaves_records_alone(journey: Journey) -> None:
    from tests.apps.resumes.test_routes import here

    journey.resumes.read = here
    async with journey.client("ann", premium=True) as ann:
        id_ = (await ann.post("/resumes/upload", files=part(b"Ada\nada@example.org\n"))).json()["processingId"]
        await journey.app.worker(drain=True).run()
        job = (await ann.get(f"/resumes/{id_}")).json()["jobId"]
        keep_none = Retention(succeeded=timedelta(0))

        async def pruned() -> bool:
            await journey.app.store.jobs.prune(keep_none, 100)
            return await journey.app.jobs.several([job]) == [None]

        await until(pruned, "the job to be pruned")
        found = (await ann.get(f"/resumes/{id_}")).json()
        assert (found["status"], found["jobId"], found["eventsUrl"]) == ("completed", job, None)
        wanted = {"processingId": id_, "jobDescription": DESCRIPTION}
        assert (await ann.post("/resumes/generate", json=wanted)).status_code == 200
