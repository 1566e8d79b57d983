"""Workers that are killed in each step, before and after what it writes: the next one goes on at the last step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apps.resumes.documents import text
from tests.apps.resumes.pairings import PAIRINGS, pairing_at
from tests.support.template import ROOT, Copy, started
from tests.support.until import until
from windlass import Status, Windlass
from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.resumes import Sent, install
from windlass.apps.resumes.settings import ResumesSettings
from windlass.apps.resumes.structuring.rules import structure_by_rules

MOMENTS = (
    "extract begun",
    "extract written",
    "structure begun",
    "structure written",
    "store written",
    "complete written",
)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("name", PAIRINGS)
async def test_a_resume_whose_workers_are_killed_in_each_step_is_processed_once(name: str, tmp_path: Path) -> None:
    ledger, begun = tmp_path / "ledger", list[Copy]()
    # Before a step's own work it is the same everywhere; what differs is what each database has written by then.
    moments = MOMENTS if name == "sqlite" else [one for one in MOMENTS if one.endswith("written")]
    async with pairing_at(name, tmp_path) as pairing:
        url, namespace = pairing.store
        app = Windlass(url, namespace=namespace)
        settings = ResumesSettings(files=str(tmp_path / "files"), database=pairing.database, crashes=1000)
        resumes = install(app, settings)

        def worker(moment: str) -> Copy:
            words = (url, namespace, pairing.database or "", str(tmp_path), moment)
            begun.append(started(*words, module="tests.apps.resumes.dying", folder=ROOT))
            return begun[-1]

        def waits(moment: str) -> Callable[[], bool]:
            return lambda: ledger.exists() and f"waits {moment}" in ledger.read_text()

        async with app:
            [seen] = await resumes.submit("ann", Sent(name="cv.txt", media_type="text/plain", data=text()))
            assert seen.job is not None
            job_id = seen.job.id
            for moment in moments:
                process = worker(moment)
                await until(waits(moment), f"a worker to come to {moment!r}", within=30)
                process.kill()
                process.wait()
            worker("never")

            async def ended() -> bool:
                return (await app.jobs.get(job_id)).status.finished

            await until(ended, "the job to end", within=30)
            job, found = await app.jobs.get(job_id), await resumes.look(seen.record.id, "ann")
            begun[-1].kill()
            begun[-1].wait()
        app.close()
    extracted = extract(text(), "text/plain")
    assert job.status is Status.SUCCEEDED
    assert found is not None
    assert found.record.extracted_text == extracted.text
    assert found.record.structured_content == structure_by_rules(extracted).as_json()
    assert (found.record.draft, found.standing) == (None, "completed")
    done = Counter(line for line in ledger.read_text().splitlines() if not line.startswith("waits"))
    # Begun again where the first was killed before it was written, and never again once it was.
    begun_by = 2 if "extract begun" in moments else 1
    assert (done["extract begun"], done["extract written"]) == (begun_by, 1)
    assert (done["structure begun"], done["structure written"]) == (begun_by, 1)
